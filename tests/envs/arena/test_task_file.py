"""A task in a file of its own goes wherever one of the 26 goes; a faulty one is told what is wrong with it."""

from __future__ import annotations

import multiprocessing
import re
import textwrap
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import predimem.envs.arena
from datagen.decompose.agreement import check_instruction, own_task
from datagen.decompose.references import agrees
from datagen.decompose.rules import decompose
from datagen.decompose.vocabulary import vocabulary_of
from datagen.demos.config import GenerationConfig
from datagen.experts.scripted.solver import OracleSolver
from predimem.core.types import EpisodeResult
from predimem.envs.arena.benchmark import ARENA
from predimem.envs.arena.fixtures import DRAWERS, FIXTURES, KITCHEN, PLACES, POUR_RADIUS_M
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.scene.environment import ArenaEnv
from predimem.envs.arena.subtasks import Subtask, pick, place
from predimem.envs.arena.task import CATEGORIES, Task, Variant
from predimem.envs.arena.task_file import load_task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.envs.arena.visits import Carry, Slide, Visit
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.names import task_files

EXAMPLE = Path(__file__).parents[3] / "examples" / "tidy_the_table.py"

SMALL = """
from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place, pour
from predimem.envs.arena.task import Task, Variant

TASK = Task(
    task_id=101, name="ButterAway", title="Butter Away", category="sequence", objects=("butter",),
    fixtures=("drainer",),
    variants=(
        Variant("Put the butter into the drainer.", (pick("pick butter", "butter"), place("put", "butter", "drainer"))),
    ),
)
"""


def write(folder: Path, text: str = SMALL, name: str = "my_task.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def test_the_example_is_found_by_its_path() -> None:
    task = task_of(EXAMPLE)
    assert task is task_of(str(EXAMPLE)) is task_of(task) is load_task(EXAMPLE)
    assert (task.task_id, task.name, task.stages, len(task.variants)) == (101, "TidyTheTable", 8, 2)
    assert task not in TASKS


def test_the_rules_decompose_the_example_and_other_words_for_it() -> None:
    task = task_of(EXAMPLE)
    for instruction in (
        task.variants[0].instruction,
        "Place the butter on the red mat in one of the baskets, then open the top drawer, put the cookies in it "
        "and close it, and finally put the popcorn into the same basket.",
        "Put the butter into the basket with the red mat. After that, put the cookies into the top drawer and shut "
        "it. Then put the popcorn into the marked basket.",
    ):
        steps = decompose(instruction, vocabulary_of(task))
        assert all(agrees(steps, variant) for variant in task.variants)


def test_the_oracle_does_the_example() -> None:
    env = predimem.envs.arena.make(EXAMPLE, obs_mode="none", control_mode="pd_joint_pos", sim_backend="cpu")
    assert env.spec is not None and env.spec.id == "predimem/Arena-TidyTheTable-v0"
    arena = env.unwrapped
    assert isinstance(arena, ArenaEnv)
    for variant in (0, 1):
        env.reset(seed=next(seed for seed in range(99) if draw_layout(arena.task, seed).variant == variant))
        solver, done = OracleSolver(arena), False
        while not done:
            _, _, terminated, truncated, _ = env.step(solver.action())
            done = bool(terminated) or bool(truncated)
        assert bool(arena.evaluate()["success"]), arena.failure()
    env.close()


@pytest.mark.slow
def test_a_worker_process_finds_it_by_the_file_and_results_name_it(tmp_path: Path) -> None:
    """As `predimem eval` hands it to its workers."""
    path = write(tmp_path)
    given = ["4", str(path)]
    assert [ARENA.task_name(task) for task in given] == ["ButterInOccupiedDrawer", "ButterAway"]
    files = task_files("arena", given)
    assert files == {"ButterAway": str(path.resolve())}
    config = PlayConfig(benchmark="arena", task_files=files)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result = pool.apply(_play_oracle, (config,))
    assert (result.task, result.status, result.stages_total, result.message) == ("ButterAway", "success", 2, "")
    categories = ARENA.categories(given)
    assert categories["sequence"][-1] == "ButterAway"
    provenance = BenchmarkPlayer(config).provenance()
    assert "task_files" not in provenance["play"]
    assert provenance["task_files"]["ButterAway"]["text"] == Path(files["ButterAway"]).read_text()
    assert "task_files" not in BenchmarkPlayer(PlayConfig(benchmark="arena")).provenance()


def _play_oracle(config: PlayConfig) -> EpisodeResult:
    player = BenchmarkPlayer(config)
    result = player.play("ButterAway", "oracle", 900_000)
    player.close()
    return result


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    first = task_of(path)
    assert first is task_of(path) and first.title == "Butter Away"
    write(tmp_path, SMALL.replace("Butter Away", "Butter Gone"))
    assert task_of(path).title == "Butter Gone"
    for expected in (2, 3):
        if expected == 3:
            longer = 'place("put", "butter", "drainer"), pick("take it again", "butter")'
            write(tmp_path, SMALL.replace('place("put", "butter", "drainer")', longer))
        env = predimem.envs.arena.make(path, obs_mode="none", sim_backend="cpu")
        assert env.unwrapped.task.stages == expected  # type: ignore[attr-defined]
        env.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("TASK = Task(", "task = Task("), "expected TASK = Task(...), got no TASK; it has a Task under the name task"),
        (("TASK = Task(", "TASK = dict("), "expected TASK = Task(...), got TASK = {"),
        (("TASK = Task(", "TASK = = Task("), "my_task.py, line 5: SyntaxError: invalid syntax"),
        (("import Task,", "import Tusk,"), "my_task.py, line 3: ImportError: cannot import name 'Tusk'"),
        (("title=", "tittle="), "line 5: TypeError: Task.__init__() got an unexpected keyword argument 'tittle'"),
        (("task_id=101", "task_id=7"), "task_id 1 to 26 are taken; choose a larger number than 7"),
        (("task_id=101", "task_id='7'"), "task ButterAway: task_id is a whole number of 1 or more; got '7'"),
        (('"ButterAway"', '"TransferButterCreamcheese"'), "there is a task of the name TransferButterCreamcheese"),
        (('"ButterAway"', '"Butter away"'), "a task's name is letters and digits, such as 'TidyTheTable'"),
        (('"sequence"', '"order"'), "category is one of transferring, occlusion, counting, sequence, long; got"),
        (('objects=("butter",)', 'objects=("butter")'), "objects is a tuple; got 'butter'. A tuple of one has a comma"),
        (('objects=("butter",)', 'objects=("bread",)'), "unknown object 'bread'; there are: cookies, butter, popcorn"),
        (('objects=("butter",)', 'objects=("milk",)'), "'pick butter': add 'butter' to the task's objects (milk)"),
        (('objects=("butter",)', 'objects=("butter", "butter")'), "objects names 'butter' twice"),
        (('("drainer",)', '("sink",)'), "unknown fixture 'sink'; there are: basket_left, basket_right, drainer"),
        (('("drainer",)', '("microwave",)'), "'microwave' stands in every scene: leave it out of the fixtures"),
        (('("drainer",)', '("drainer", "plate_left")'), "drainer and plate_left stand in the same spot: choose one"),
        (('("drainer",)', "()"), "'drainer' is not in the scene: add 'drainer' to the task's fixtures"),
        (('"butter", "drainer")', '"butter", "shelf")'), "'put': unknown place 'shelf'; there are: table, basket_left"),
        (('"put", ', '"pick butter", '), "has two subtasks with the label 'pick butter'"),
        (('"put", ', '"put_it", '), "a label is plain words without _, / and \\; got 'put_it'"),
        (('"Put the butter into the drainer."', '" "'), "needs an instruction, which is what the robot is told"),
        (('place("put", "butter", "drainer")', '"place"'), "'place' is no subtask; make it with pick, place, pour"),
        (('place("put", "butter", "drainer")', 'open_joint("open", "door")'), "unknown joint 'door'; there are: top"),
        (('place("put", "butter", "drainer")', 'pour("pour", "butter", "drainer", 1)'), "nothing pours out of"),
        (('"drainer"))),', '"drainer")), {"milk": "drainer"}),'), "start names 'milk', which is not among the objects"),
        (('"drainer"))),', '"drainer")), {"butter": "table"}),'), "leave 'butter' out of start; what is not in start"),
        (('"drainer"))),', '"drainer")), mats=("basket_left",)),'), "'basket_left' is not in the scene"),
        (("    ),\n)", '        Variant("Open it.", (open_joint("open", "microwave"),)),\n    ),\n)'),
         "variant 1 has Move, Place (2), variant 2 has Open (1)"),
    ],
)  # fmt: skip
def test_a_faulty_file_says_what_is_wrong(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert SMALL.count(change[0]) == 1
    path = write(tmp_path, SMALL.replace(*change))
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        task_of(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no task file .*my_task\.py: expected a Python file"):
        task_of(tmp_path / "my_task.py")


def test_pours_and_room_are_checked() -> None:
    def made(subtasks: str, objects: str, start: str = "{}") -> Task:
        text = f"""
            from predimem.envs.arena.subtasks import pick, place, pour
            from predimem.envs.arena.task import Task, Variant
            variants = (Variant("Pour.", ({subtasks},), {start}),)
            task = Task(101, "Pours", "Pours", "counting", ({objects},), variants, ("mug_red", "mug_white"))
        """
        names: dict[str, Task] = {}
        exec(textwrap.dedent(text), names)
        return names["task"]

    assert made('pour("once", "milk", "mug_red", 1), pour("twice", "milk", "mug_red", 2)', '"milk"').stages == 2
    with pytest.raises(ValueError, match=r"times of the pours is counted up, 1, 2, \.\.\.; got 1, 1"):
        made('pour("once", "milk", "mug_red", 1), pour("twice", "milk", "mug_red", 1)', '"milk"')
    with pytest.raises(ValueError, match="all pours of a task are of one object over one target"):
        made('pour("once", "milk", "mug_red", 1), pour("twice", "milk", "mug_white", 2)', '"milk"')
    with pytest.raises(ValueError, match="unknown receiver of a pour 'butter'; there are: cookies"):
        made('pour("once", "milk", "butter", 1)', '"milk", "butter"')
    with pytest.raises(ValueError, match="add 'cookies' to the task's objects or fixtures"):
        made('pour("once", "milk", "cookies", 1)', '"milk"')
    boxes = '"butter", "cookies", "popcorn", "cream_cheese", "milk"'
    with pytest.raises(ValueError, match="5 objects start on the table, which has room for 4"):
        made('pick("pick", "milk")', boxes)
    assert made('pick("pick", "milk")', boxes, '{"butter": "top_drawer"}').stages == 1
    with pytest.raises(ValueError, match="3 objects start in top_drawer, which has room for 2"):
        made('pick("pick", "milk")', boxes, 'dict.fromkeys(("butter", "cookies", "popcorn"), "top_drawer")')


def test_visits_and_skills_that_cannot_be_played_are_refused() -> None:
    def made(visit: Carry | Slide, subtask: Subtask | None = None) -> Task:
        subtasks = (subtask or pick("pick", "butter"), place("put", "butter", "table"))
        variant = Variant("Put it down.", subtasks, visits=(Visit(0, 0, (visit,)),))
        return Task(101, "Visits", "Visits", "sequence", ("butter", "wine_bottle"), (variant,))

    assert made(Slide("top_drawer", 0.2)).stages == 2
    with pytest.raises(ValueError, match="'plate_left' is not in the scene: add 'plate_left' to the task's fixtures"):
        made(Carry("butter", "plate_left"))
    with pytest.raises(ValueError, match=r"somebody takes 'wine_bottle' to 'top_drawer': it is .* cm tall"):
        made(Carry("wine_bottle", "top_drawer"))
    with pytest.raises(ValueError, match=r"a drawer opens by 0 to 0.2 m; somebody moves it to 0.5 m"):
        made(Slide("top_drawer", 0.5))
    with pytest.raises(ValueError, match="'pick': it is done with an object; name one of butter, wine_bottle"):
        made(Slide("top_drawer", 0.0), pick("pick", ""))


def test_a_condition_of_its_own(tmp_path: Path) -> None:
    """A dataclass in the file, as the conditions of the arena are."""
    text = SMALL.replace("\nTASK", OWN_CONDITION + "\nTASK").replace(
        'place("put", "butter", "drainer")', 'Subtask("put", Skill.PLACE, "drainer", High("butter"), "butter")'
    )
    path = write(tmp_path, "from __future__ import annotations\n" + text)
    env = predimem.envs.arena.make(path, obs_mode="none", sim_backend="cpu")
    env.reset(seed=0)
    arena = env.unwrapped
    assert isinstance(arena, ArenaEnv)
    assert arena.variant().subtasks[1].done(arena.world()).tolist() == [False]
    env.close()


OWN_CONDITION = """
from dataclasses import dataclass
from predimem.envs.arena.subtasks import Skill, Subtask

@dataclass(frozen=True)
class High:
    object: str

    def __call__(self, world):
        return world.bottom_m(self.object) > 0.5

    def lasting(self):
        return None
"""


def test_the_page_has_the_example_and_names_all_that_there_is() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "own-task.md").read_text()
    assert f"```python\n{EXAMPLE.read_text()}```" in page
    names = {*OBJECTS, *PLACES, *FIXTURES, *DRAWERS, *POUR_RADIUS_M, *CATEGORIES} - {"cabinet"}
    assert [name for name in sorted(names) if f"`{name}`" not in page and f'`"{name}"`' not in page] == []


JUST_PICK = Variant("Pick up the butter.", (pick("pick butter", "butter"),))


def test_each_spot_has_room_for_what_the_page_says() -> None:
    """At each side of the robot one fixture, or both mugs."""
    added = {name: spec for name, spec in FIXTURES.items() if name not in KITCHEN}
    for first, second in combinations(added, 2):
        sides = added[first].position_m[1] * added[second].position_m[1]
        apart = sides < 0 or {first, second} == {"mug_red", "mug_white"}
        if apart:
            assert replace(load_task(EXAMPLE), variants=(JUST_PICK,), fixtures=(first, second)).fixtures
        else:
            with pytest.raises(ValueError, match=f"{first} and {second} stand in the same spot"):
                replace(load_task(EXAMPLE), variants=(JUST_PICK,), fixtures=(first, second))


def test_an_instruction_that_disagrees_with_the_subtasks_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL.replace("Put the butter into the drainer.", "Pick up the butter."))
    says = (
        r"my_task.py: task ButterAway: its variant: .* as step 2 the instruction asks for nothing more, the subtasks "
    )
    for read in (
        own_task,
        lambda name: task_files("arena", [name]),
        lambda name: GenerationConfig(tasks=(name,)).jobs(),
    ):
        with pytest.raises(ValueError, match=says + r"for Place drainer"):
            read(str(path))
    free = write(tmp_path, SMALL.replace("Put the butter into", "Would you mind laying the butter to"), "free.py")
    assert own_task(str(free)).name == "ButterAway", "words that the rules do not understand may say the same"
    assert all(check_instruction(task) is None for task in (*TASKS, task_of(EXAMPLE)))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('"butter", "drainer")', '"butter", "drainer", memory="count")', "memory='count'; expected one of 'occlusion'"),
        ('(pick("pick butter", "butter"), place("put", "butter", "drainer"))),',
         '(pick("pick butter", "butter"),), start={"milk": "top_drawer"}),',
         r"'milk' starts in 'top_drawer': it is 10.0 cm tall, and a drawer has room for 8.6 cm; these fit: cookies"),
        ('place("put", "butter", "drainer"))),', 'place("put", "milk", "top_drawer_left"))),',
         r"'put': it is 10.0 cm tall"),
    ],
)  # fmt: skip
def test_a_memory_that_there_is_not_and_tall_things_in_drawers_are_told(
    tmp_path: Path, before: str, after: str, says: str
) -> None:
    assert before in SMALL
    path = write(tmp_path, SMALL.replace(before, after).replace('objects=("butter",)', 'objects=("butter", "milk")'))
    with pytest.raises(ValueError, match=says):
        load_task(path)
