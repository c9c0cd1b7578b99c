"""`predimem train arena`: its stages, what is skipped, how it stops and goes on; and all of it once, tiny."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml

from actor.training.config import DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.dagger.config import PlannerDaggerConfig
from datagen.vision_data.config import VisionDataConfig
from predimem.core.config import ConfigError, from_dict, load_config
from predimem.core.seeds import TRAINING_SEEDS
from predimem.core.weight_files import weights_folder
from predimem.evaluation.run.config import evaluation_settings
from predimem.pipelines.own_tasks import StartConfig, start_of
from predimem.pipelines.retrain import RetrainConfig, plan_stages
from predimem.pipelines.stage import ACTOR, DATA, PLANNER, Stage, choose_stages
from predimem.pipelines.stage_runs import StageError, is_done, run_stages
from tests.processes import children, is_running

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "train_arena.yaml"


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def config(tmp_path: Path) -> RetrainConfig:
    return replace(load_config(RetrainConfig, CONFIG), out=str(tmp_path / "out"))


def test_each_stage_comes_after_what_it_needs(config: RetrainConfig) -> None:
    stages = plan_stages(config)
    names = [stage.name for stage in stages]
    assert len(set(names)) == len(names)
    for stage in stages:
        assert all(names.index(need) < names.index(stage.name) for need in stage.needs)
    assert names.index("dagger-2") < names.index("arena-actor") < names.index("dagger-3")  # it acts there
    assert names.index("dagger-3") < names.index("arena-planner") < names.index("arena-planner-recent")


def test_it_makes_the_weights_of_every_agent(config: RetrainConfig) -> None:
    agents = evaluation_settings(ROOT / "configs" / "eval" / "arena.yaml", {}).agent_configs.values()
    assert {name for agent in agents for name in agent.weights} == {s.weights for s in plan_stages(config)} - {None}


def test_who_drives_and_who_learns_from_what(config: RetrainConfig) -> None:
    stages = {stage.name: stage for stage in plan_stages(config)}
    first, second, third, last = (stages[f"dagger-{number}"].config for number in range(4))
    assert first["driver"] == "oracle" and second["driver"] == str(stages["planner-round-0"].result)
    assert stages["planner-round-0"].config["episodes"] == [first["out"]]
    assert third["driver"] == str(stages["planner-round-1"].result)
    assert [one["low_level_policy"] for one in (first, second, third)] == ["skills", "skills", "expert"]
    assert last["low_level_policy"] == str(stages["arena-actor"].result)
    rounds = [first["out"], second["out"], third["out"], last["out"]]
    trained = [s for s in stages.values() if s.weights and s.config["episodes"] == rounds]
    assert {s.config["vision"]["directory"] for s in trained} == {
        stages["planner-round-0"].config["vision"]["directory"]
    }
    assert {s.config["vision"]["scenes"] for s in trained} == {stages["vision-data"].config["out"]}
    assert len(trained) == 5 and trained[0].config["memory"] != trained[1].config["memory"]
    untrained = stages["arena-planner-untrained"]
    assert untrained.needs == () and untrained.config["vision"] is None and untrained.config["sft"]["epochs"] == 0


def test_another_actor_goes_on_from_the_first_with_all_that_it_had(config: RetrainConfig) -> None:
    from actor.training.config import ActorTrainConfig

    stages = {stage.name: stage for stage in plan_stages(config)}
    first, other = (from_dict(ActorTrainConfig, stages[f"arena-actor{name}"].config) for name in ("", "-reactive"))
    assert other.continue_from == str(stages["arena-actor"].result) and other.episodes == first.episodes
    assert other.more_episodes == tuple(f"{first.out}/rollouts{number}" for number in range(3))
    assert other.dagger.rounds == 0 and other.sampling.instruction_share == 1.0


def test_continuing_begins_every_training_with_weights_and_knows_the_new_words() -> None:
    from actor.training.config import ActorTrainConfig
    from planner.train import TrainConfig

    start = StartConfig(rehearse=("4",), rehearse_episodes=3)
    config = replace(load_config(RetrainConfig, ROOT / "configs" / "continue_arena.yaml"), continue_from=start)
    config = replace(config, tasks=("examples/juice_beside_cookies.py",))
    stages = {stage.name: stage for stage in plan_stages(config)}
    assert list(stages) == [
        "rehearsal", "dagger-0", "planner-round-0", "dagger-1", "actor-data", "arena-actor", "arena-planner"
    ]  # fmt: skip
    own = str(ROOT / "examples" / "juice_beside_cookies.py")
    assert stages["dagger-0"].config["tasks"] == [own] and stages["actor-data"].config["tasks"] == [own, "4"]
    assert stages["rehearsal"].config["tasks"] == ["4"] and stages["rehearsal"].config["episodes"] == 3
    planner = from_dict(TrainConfig, stages["arena-planner"].config)
    assert planner.continue_from == str(weights_folder(None, "arena-planner"))
    assert planner.episodes == tuple(stages[name].config["out"] for name in ("rehearsal", "dagger-0", "dagger-1"))
    known = load_config(TrainConfig, ROOT / "configs" / "planner" / "arena.yaml").base.tokenizer
    assert planner.base.tokenizer.subtasks[: len(known.subtasks)] == known.subtasks
    assert "place juice beside cookies: basket left" in planner.base.tokenizer.subtasks
    assert len(planner.base.tokenizer.instructions) == len(known.instructions) + 1
    actor = from_dict(ActorTrainConfig, stages["arena-actor"].config)
    assert actor.continue_from == str(weights_folder(None, "arena-actor"))


def test_where_a_training_may_go_on_from() -> None:
    assert start_of(None, (), False, None) is None
    assert start_of(None, ("a.py",), True, "mine") == StartConfig(weights="mine")
    assert start_of(StartConfig(actor="mine"), ("a.py",), True, None) == StartConfig(actor="mine")
    with pytest.raises(ConfigError, match="--continue trains on for some tasks: name them"):
        start_of(None, (), True, None)
    with pytest.raises(ConfigError, match="give --continue as well"):
        start_of(None, ("a.py",), False, "mine")
    with pytest.raises(ConfigError, match="with continue_from it has to be null"):
        replace(load_config(RetrainConfig, CONFIG), continue_from=StartConfig())


def test_seeds_are_for_training_and_each_is_used_once(config: RetrainConfig) -> None:
    seeds: list[int] = []
    for stage in plan_stages(config):
        if stage.kind == DATA:
            seeds += range(stage.config["first_seed"], stage.config["first_seed"] + stage.config["episodes"])
        elif dagger := stage.config.get("dagger"):
            seeds += (s for k in range(dagger["rounds"] + 1) for s in from_dict(DaggerConfig, dagger).seeds(k))
    assert len(set(seeds)) == len(seeds) and set(seeds) <= set(TRAINING_SEEDS)


def test_a_config_in_former_words_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text(
        "{suite: practice, driver: truth, hand: skills, truth_spells: {truth_s: [1.0, 2.0]}}"
    )
    (tmp_path / "former.yaml").write_text(f"""
planners:
  practice: {tmp_path}/data.yaml
  practice_changes: {{max_overtime_s: 3.0}}
  scenes: configs/datagen_scenes.yaml
  scene_changes: {{frames: 4}}
  rounds: [{{episodes: 1, first_seed: 46000, hand: expert}}]
  recipes: {{arena-planner: configs/planner/arena.yaml}}
actor: {{recipe: configs/actor/arena.yaml, skills: configs/datagen_skills.yaml, skill_changes: {{frames: 2}}}}
""")
    stages = {stage.name: stage.config for stage in plan_stages(load_config(RetrainConfig, tmp_path / "former.yaml"))}
    dagger = from_dict(PlannerDaggerConfig, stages["dagger-0"])
    assert (dagger.driver, dagger.low_level_policy, dagger.max_overtime_s) == ("oracle", "expert", 3.0)
    assert dagger.oracle_spells.oracle_s == (1.0, 2.0)
    assert from_dict(VisionDataConfig, stages["vision-data"]).frames == 4
    assert from_dict(ActorDataConfig, stages["actor-data"]).frames == 2


@pytest.mark.parametrize("tiny", [False, True])
def test_every_config_is_one_that_its_command_reads(tmp_path: Path, tiny: bool) -> None:
    from actor.training.config import ActorTrainConfig
    from planner.train import TrainConfig

    (tmp_path / "tiny.yaml").write_text(TINY)
    data_kinds = {"dagger": PlannerDaggerConfig, "actor_data": ActorDataConfig, "vision_data": VisionDataConfig}
    for stage in plan_stages(load_config(RetrainConfig, tmp_path / "tiny.yaml" if tiny else CONFIG)):
        kinds: dict[str, Any] = {PLANNER: TrainConfig, ACTOR: ActorTrainConfig}
        cls = kinds.get(stage.kind) or data_kinds[stage.config["kind"]]
        path = tmp_path / f"{stage.name}.yaml"
        path.write_text(yaml.safe_dump(stage.config))
        loaded = load_config(cls, path)
        assert Path(loaded.out) in (stage.result, *stage.result.parents)


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ([{"episodes": 4, "first_seed": 2000}, {"episodes": 4, "first_seed": 2003}], "round 1 plays seed 2003"),
        ([{"episodes": 4, "first_seed": 900000}], "not a training seed"),
        ([], "at least one round"),
    ],
)
def test_faulty_rounds(tmp_path: Path, rounds: list[dict[str, int]], says: str) -> None:
    data = yaml.safe_load(CONFIG.read_text())
    data["planners"]["rounds"] = rounds
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(ValueError, match=says):
        load_config(RetrainConfig, tmp_path / "bad.yaml")


def test_some_stages_and_what_they_need(config: RetrainConfig) -> None:
    stages = plan_stages(config)
    chosen = lambda *only: [stage.name for stage in choose_stages(stages, only)]  # noqa: E731
    assert chosen() == [stage.name for stage in stages]
    assert chosen("actor") == ["actor-data", "arena-actor", "arena-actor-reactive"]
    assert chosen("arena-planner-untrained") == ["arena-planner-untrained"]
    assert chosen("dagger-1") == ["vision-data", "dagger-0", "planner-round-0", "dagger-1"]
    assert not {"actor-data", "arena-actor"} & set(chosen("dagger-2"))
    assert {"actor-data", "arena-actor"} < set(chosen("dagger-3"))
    assert chosen("practice-1", "scenes", "skills") == chosen("dagger-1", "vision-data", "actor-data"), "former names"
    with pytest.raises(ConfigError, match="no stage 'plannr'; there are: data, planner, actor"):
        chosen("plannr")


def make_stage(out: Path, name: str, *command: str, **config: object) -> Stage:
    """A stage of a cheap command of `predimem`: the answer is its output folder."""
    return Stage(name, DATA, command, out / "configs" / f"{name}.yaml", {**config}, out / name)


def test_a_failing_stage_is_named_and_run_again(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, "broken", "datagen", "--config", "nowhere.yaml")
    for _ in range(2):
        with pytest.raises(StageError, match=r"broken ended with code 1; .*predimem datagen --config nowhere.yaml"):
            run_stages([stage], tmp_path)
        assert not is_done(stage, tmp_path)


def test_a_stage_without_its_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="left no"):
        run_stages([make_stage(tmp_path, "empty", "--help")], tmp_path)


def test_stages_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Each writes to a log of its own, the one that needs another waits for it, and the first that fails is named."""
    first, second = (make_stage(tmp_path, name, "--help") for name in ("first", "second"))
    third = replace(make_stage(tmp_path, "third", "--help"), needs=("first",))
    for stage in (first, second, third):
        stage.result.mkdir(parents=True)
    run_stages([first, second, third], tmp_path, at_once=3)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    assert lines[0].startswith("[1/3] first: predimem") and lines[1].startswith("[2/3] second: predimem")
    begun = next(i for i, line in enumerate(lines) if line.startswith("[3/3] third: predimem"))
    assert any("[1/3] first: done in" in line for line in lines[:begun])
    assert "Usage" in (tmp_path / "logs" / "second.log").read_text()
    broken = make_stage(tmp_path, "broken", "datagen", "--config", "nowhere.yaml")
    with pytest.raises(StageError, match=r"broken ended with code 1; .*its output is in .*logs/broken.log"):
        run_stages([first, broken], tmp_path, at_once=2)
    assert "nowhere.yaml" in (tmp_path / "logs" / "broken.log").read_text()


def test_what_is_done_is_skipped_and_another_config_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    stage = make_stage(tmp_path, "help", "--help", steps=3)
    stage.result.mkdir(parents=True)
    run_stages([stage], tmp_path)
    assert "done in" in capsys.readouterr().out and yaml.safe_load(stage.config_path.read_text()) == {"steps": 3}
    run_stages([replace(stage, command=("no", "such", "command"))], tmp_path)
    assert "[1/1] help: is there" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"the stage help of another config: steps \(was 3, is 4\)"):
        run_stages([replace(stage, config={"steps": 4})], tmp_path)
    stage.result.rmdir()
    assert not is_done(stage, tmp_path)


def test_a_folder_that_an_earlier_version_began_is_refused(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "practice-0.json").write_text("{}")
    with pytest.raises(ConfigError, match="its stage practice-0 is dagger-0 now; choose another --out"):
        run_stages([make_stage(tmp_path, "dagger-0", "--help")], tmp_path)


def test_weights_are_placed_and_placed_again_when_they_are_lost(tmp_path: Path) -> None:
    stage = replace(make_stage(tmp_path, "help", "--help"), weights="arena-planner")
    stage.result.mkdir(parents=True)
    (stage.result / "model.safetensors").write_text("numbers")
    for _ in range(2):
        weights = run_stages([stage], tmp_path)
        placed = weights / "arena-planner" / "model.safetensors"
        assert placed.read_text() == "numbers"
        placed.write_text("altered")


TINY = """
workers: 1
tasks: ["6"]
planners:
  dagger: configs/datagen_dagger.yaml
  dagger_changes: {max_overtime_s: 3.0}
  vision_data: configs/datagen_vision_data.yaml
  vision_data_changes: {episodes: 2, frames: 4}
  rounds: [{episodes: 1, first_seed: 46000}, {episodes: 1, first_seed: 44000}]
  recipes:
    arena-planner: configs/planner/arena.yaml
    arena-planner-recent: configs/planner/arena_recent.yaml
    arena-planner-untrained: configs/planner/arena_untrained.yaml
  recipe_changes:
    vision: {steps: 3, batch_size: 4, max_frames: 60}
    dataset: {samples: 16}
    sft: {batch_size: 4}
actor:
  data: configs/datagen_actor_data.yaml
  data_changes: {tasks: ["2"], episodes: 2, frames: 2}
  recipe: configs/actor/arena.yaml
  variants: {arena-actor-reactive: configs/actor/arena_reactive.yaml}
  recipe_changes:
    steps: 3
    threads: 1
    val_every: 2
    sampling: {frames_per_batch: 2}
    dagger: {rounds: 1, episodes: 1, steps: 2}
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "predimem.cli", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_it_ends_with_its_stage(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    process = start("train", "arena", "--config", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "out"))
    assert process.stdout is not None and "[1/10] vision-data" in process.stdout.readline()
    while not (running := children(process.pid)):
        time.sleep(0.05)
    process.send_signal(how)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0 and "interrupted in vision-data: the same command goes on" in output
    assert not any(map(is_running, running))


def test_in_the_background_of_a_script_a_later_stage_is_stopped_as_well(tmp_path: Path) -> None:
    """SIGINT is ignored there, and stages are stopped by it: none may inherit that."""
    first = make_stage(tmp_path, "first", "--help")
    second = replace(make_stage(tmp_path, "second", "serve", "--port", "0"), needs=("first",))
    first.result.mkdir(parents=True)
    log, needed_force = tmp_path / "logs" / "second.log", Event()

    def stop() -> None:
        while not log.is_file() or "listening" not in log.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        if not ended.wait(30):
            needed_force.set()
            os.kill(os.getpid(), signal.SIGTERM)

    ended, stopper = Event(), Thread(target=stop)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_stages([first, second], tmp_path, at_once=2)
    finally:
        ended.set()
        stopper.join()
        signal.signal(signal.SIGINT, before)
    assert not needed_force.is_set()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_training_on_for_a_task_of_ones_own(tmp_path: Path) -> None:
    """From a fresh folder with a small config that extends the shipped one; stopped once, it goes on where it was."""
    (tmp_path / "small.yaml").write_text(SMALL_CONTINUATION)
    task = ROOT / "examples" / "juice_beside_cookies.py"
    command = [sys.executable, "-m", "predimem.cli", "train", "arena", "--continue", "--tasks", str(task)]
    command += ["--config", "small.yaml", "--out", "mine"]
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert first.stdout is not None
    while "arena-planner: predimem train" not in (line := first.stdout.readline()):
        assert line, "it ended before it came to the planner"
    time.sleep(2)
    first.send_signal(signal.SIGINT)
    assert "interrupted in arena-planner: the same command goes on" in first.communicate(timeout=300)[0]
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "dagger-0: is there" in again.stdout and "tokens are new to" in again.stdout
    spec = json.loads((tmp_path / "mine" / "weights" / "arena-planner" / "predimem.json").read_text())
    assert "pick juice" in spec["training"]["config"]["base"]["tokenizer"]["subtasks"]
    evaluate = ["eval", "--config", "configs/eval/arena.yaml", "--weights", "mine/weights", "--tasks", str(task)]
    evaluate += ["--agent", "predimem", "--episodes", "1", "--workers", "1", "--out", "eval"]
    verify = ["eval", "--verify", "eval/results.json", "--sample", "1"]
    for words in (evaluate, verify):
        cli = [sys.executable, "-m", "predimem.cli", *words]
        done = subprocess.run(cli, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and "was not trained for" not in done.stderr, done.stderr[-3000:]


SMALL_CONTINUATION = """
extends: configs/continue_arena.yaml
workers: 1
planners:
  rounds: [{episodes: 2, first_seed: 46000}]
  recipe_changes: {dataset: {samples: 64}}
actor:
  data_changes: {episodes: 2, frames: 2}
  recipe_changes:
    steps: 3
    threads: 1
    val_every: 2
    sampling: {frames_per_batch: 2}
    dagger: {rounds: 1, expert_episodes: 0, episodes: 1, steps: 2}
"""


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_everything_from_nothing_to_an_evaluation(tmp_path: Path) -> None:
    """Every stage for real, with as little of everything as works; then the weights play."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    out = tmp_path / "out"
    arguments = ("train", "arena", "--config", str(tmp_path / "tiny.yaml"), "--out", str(out))
    process = start(*arguments)
    output, _ = process.communicate()
    assert process.returncode == 0, output[-3000:]
    weights = out / "weights"
    assert sorted(p.name for p in weights.iterdir()) == [
        "arena-actor",
        "arena-actor-reactive",
        "arena-planner",
        "arena-planner-recent",
        "arena-planner-untrained",
    ]
    tower = "model-00001-of-00002.safetensors"
    assert (weights / "arena-planner-recent" / tower).readlink() == Path("..", "arena-planner", tower)
    again = subprocess.run(
        [sys.executable, "-m", "predimem.cli", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert again.stdout.count("is there") == 10
    agents = ("predimem", "no-keyframes-skills", "no-robot-data-skills")
    evaluated = start(
        "eval", "--config", "configs/eval/arena.yaml", "--weights", str(weights), "--tasks", "6", "--episodes", "1",
        "--agents", ",".join(agents), "--workers", "1", "--out", str(tmp_path / "eval"),
    )  # fmt: skip
    output, _ = evaluated.communicate()
    assert evaluated.returncode == 0, output[-3000:]
    results = json.loads((tmp_path / "eval" / "results.json").read_text())
    assert set(results["provenance"]["agent_configs"]) >= set(agents)
    assert os.environ.get("HF_HUB_OFFLINE") == "1"  # nothing was downloaded
