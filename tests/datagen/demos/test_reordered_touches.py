"""Episodes of several touches in another order, made from the images of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS
from datagen.demos.mikasa import TaskSeeds
from datagen.demos.reordered_touches import ReorderedTouchesConfig, reordered_touches_worker
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.core.scene_facts import KEY, SceneFacts
from predimem.jobs.tasks import Job

COLOURS = {"red cube": (200, 20, 20), "lime cube": (20, 200, 20), "blue cube": (20, 20, 200)}
COLOURS |= {
    "teal cube": (20, 200, 200),
    "olive cube": (200, 200, 20),
}  # in the suite's order, as far as it matters here
TABLE, SIDE, HALF, TOUCH_STEPS = 120, 64, 3, 6
SEQ, BUNCH = "SeqOfColors5-VLA-v0", "BunchOfColors5-VLA-v0"


def demonstration(task: str, seed: int) -> Episode:
    """A cue, an empty table, five touches, the press and the lift, from one camera. The image after a touch is filled
    with the colour that was touched; after the press it is white."""
    rng = np.random.default_rng(seed)
    names = list(COLOURS)
    due = names if task == BUNCH else [names[i] for i in rng.permutation(5)]
    spans, keyframes, images = [], [], []

    def image(fill: object = TABLE, shown: tuple[str, ...] = ()) -> None:
        picture = np.full((SIDE, SIDE, 3), fill, np.uint8)
        for name in shown:
            u, v = middle(name)
            picture[v - HALF : v + HALF, u - HALF : u + HALF] = COLOURS[name]
        images.append(picture)

    cue = [tuple(due)] * 5 if task == BUNCH else [(name,) for name in due]
    keyframes += [0] if task == BUNCH else range(5)
    for shown in cue:
        image(shown=shown)
    image()
    spans += [SubtaskSpan(0, 5, "watch"), SubtaskSpan(5, 6, "wait")]
    last: object = 90
    for label in (*(f"touch the {name}" for name in due), "press the button", "lift the arm"):
        start = len(images)
        if label != f"touch the {due[0]}":
            keyframes.append(start)
        image(last)
        for step in range(1, TOUCH_STEPS):
            image(130 + step)
        spans.append(SubtaskSpan(start, len(images), label))
        last = COLOURS.get(label.removeprefix("touch the "), 255)
    pixels = np.full((len(images), 5, 1, 2), np.nan, np.float32)
    for step, shown in enumerate(cue):
        for name in shown:
            pixels[step, names.index(name), 0] = np.array(middle(name)) / SIDE
    rows, nothing = len(images), np.full((len(images), 1, 2), np.nan, np.float32)
    facts = SceneFacts(
        tuple(names),
        (("table",) * 5,) * rows,
        pixels,
        ("",) * rows,
        nothing,
        ("",) * rows,
        ("gripper",),
        np.ones((rows, 1), np.float32),
    )
    return Episode(
        benchmark="mikasa",
        task=task,
        seed=seed,
        instruction="touch them",
        control_hz=20.0,
        success=True,
        images={"hand_camera": Frames(np.stack(images))},
        state=0.02 * np.arange(rows, dtype=np.float32)[:, None].repeat(7, 1),  # metres
        actions=np.zeros((rows, 7), np.float32),
        subtasks=tuple(spans),
        keyframes=tuple(keyframes),
        goal="touch them",
        metadata={KEY: facts.as_json()},
    )


def middle(name: str) -> tuple[int, int]:
    return 8 + 12 * list(COLOURS).index(name), 20


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for task in (SEQ, BUNCH):
        for seed in range(1000, 1010):
            save_episode(episode_path(tmp_path / "real", task, seed), demonstration(task, seed))
    return tmp_path / "real"


def colours_in(image: np.ndarray) -> set[str]:
    return {name for name, colour in COLOURS.items() if (image == colour).all(-1).sum() >= 30}


@pytest.mark.parametrize("task", ["SeqOfColors3-VLA-v0", "BunchOfColors3-VLA-v0", SEQ])
def test_what_has_to_be_remembered_says_what_is_due(sources: Path, tmp_path: Path, task: str) -> None:
    jobs = (TaskSeeds(task, 20, 2000),)
    config = ReorderedTouchesConfig(sources=(str(sources),), out=str(tmp_path / "out"), tasks=jobs)
    worker = reordered_touches_worker(config)
    orders = set()
    for job in config.jobs():
        assert worker.play(job).kept
        episode = load_episode(episode_path(config.out, task, job.seed))
        shown = episode.images["hand_camera"]
        size = int(task[-8])
        due = [span.label.removeprefix("touch the ") for span in episode.subtasks if span.label.startswith("touch")]
        cues = [k for k in episode.keyframes if episode.subtask_at(k) == "watch"]
        if task.startswith("Bunch"):
            assert len(cues) == 1 and colours_in(shown[cues[0]]) == set(due)
            assert due == sorted(due, key=list(COLOURS).index)
        else:
            assert [colours_in(shown[k]) for k in cues] == [{name} for name in due]
        assert [span.label for span in episode.subtasks] == [
            *("watch", "wait"),
            *(f"touch the {name}" for name in due),
            *("press the button", "lift the arm"),
        ]
        touched = [k for k in episode.keyframes if episode.subtask_at(k) != "watch"]
        assert [colours_in(shown[k]) for k in touched] == [*({name} for name in due), set()]
        assert (shown[touched[-1]] == 255).all() and episode.subtask_at(touched[-1]) == "lift the arm"
        assert touched == [span.start for span in episode.subtasks[3:]]
        for span in episode.subtasks[2:]:
            at_rest = (shown[span.start] == shown[span.start : span.end]).all((1, 2, 3))
            assert 4 <= at_rest.sum() <= 10 and at_rest[: at_rest.sum()].all()  # at rest first, then on the way
            if span.label != "lift the arm":
                away = episode.state[span.end] - episode.state[span.end - 1]
                assert np.linalg.norm(away[:3]) >= 0.008  # nearer by, images look as those of the end
        assert len(due) == size and episode.metadata["edited_from"][1] < 1009  # the last tenth is kept for validation
        orders.add(tuple(due))
    assert len(orders) > 5


def test_an_arm_that_waited_is_seen_as_it_waited(sources: Path, tmp_path: Path) -> None:
    """After the first touch it settles by 3 mm for two steps, and leaves with the third."""
    demo = demonstration(SEQ, 1000)
    after = demo.subtasks[3].start
    state = demo.state.copy()
    state[after : after + 3, :3] = state[after, :3] + np.array([[0, 0, 0], [0, 0, -0.003], [0, 0, 0.02]], np.float32)
    for path in sources.glob("*/*.h5"):
        path.unlink()
    save_episode(episode_path(sources, SEQ, 1000), replace(demo, state=state))
    task = "SeqOfColors3-VLA-v0"
    config = ReorderedTouchesConfig((str(sources),), str(tmp_path / "out"), (TaskSeeds(task, 30, 2000),), left_out=0)
    worker = reordered_touches_worker(config)
    first, seen = demo.subtasks[2].label, 0
    for job in config.jobs():
        worker.play(job)
        episode = load_episode(episode_path(config.out, task, job.seed))
        spans = [k for k, span in enumerate(episode.subtasks) if span.label == first]
        for k in spans:
            begins = episode.subtasks[k + 1].start
            np.testing.assert_allclose(
                episode.state[begins : begins + 4, 2] - state[after, 2], [0, *[-0.003] * 3], atol=1e-6
            )
            seen += 1
    assert seen > 5


def failed(episode: Episode) -> Episode:
    return replace(episode, success=False)


def seen_every_other_step(episode: Episode) -> Episode:
    """Two of the five cubes of the cue are on no image."""
    rows = np.arange(len(episode)) // 2
    return replace(episode, images={"hand_camera": Frames(np.asarray(episode.images["hand_camera"])[::2], rows)})


@pytest.mark.parametrize("spoilt", [failed, seen_every_other_step])
def test_it_is_no_source(sources: Path, tmp_path: Path, spoilt: Callable[[Episode], Episode]) -> None:
    for seed in range(1000, 1010):
        save_episode(episode_path(sources, SEQ, seed), spoilt(demonstration(SEQ, seed)))
    config = ReorderedTouchesConfig(sources=(str(sources),), out=str(tmp_path / "out"), tasks=(TaskSeeds(SEQ, 1),))
    with pytest.raises(ValueError, match="expected successful episodes of SeqOfColors with 5 cubes or more"):
        reordered_touches_worker(config).play(config.jobs()[0])


def test_an_episode_follows_from_its_seed(sources: Path, tmp_path: Path) -> None:
    images = []
    for folder in ("one", "two"):
        config = ReorderedTouchesConfig(sources=(str(sources),), out=str(tmp_path / folder), tasks=(TaskSeeds(SEQ, 1),))
        reordered_touches_worker(config).play(Job(SEQ, 1000))
        images.append(np.asarray(load_episode(episode_path(config.out, SEQ, 1000)).images["hand_camera"]))
    np.testing.assert_array_equal(*images)


def test_tasks_of_other_families_are_refused() -> None:
    assert KINDS["reordered_touches"] is ReorderedTouchesConfig
    with pytest.raises(ConfigError, match="RememberColor3"):
        ReorderedTouchesConfig(tasks=(TaskSeeds("RememberColor3-VLA-v0", 1),))
