"""Episodes with other numbers of blinks and presses, made from the images of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS
from datagen.demos.mikasa import TaskSeeds
from datagen.demos.recounted_presses import RecountedPressesConfig, recounted_presses_worker
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.jobs.tasks import Job

EASY, HARD = "BlinkCountButtonPressEasy-VLA-v0", "BlinkCountButtonPressHard-VLA-v0"
WATCH, RED, RAISE, BLACK = "watch the lamp", "press the red button", "raise the hand", "press the black button"
DARK, LIT, MOVES, PRESSED, RAISED = 10, 200, 90, 150, 60  # what an image is filled with


def demonstration(task: str, seed: int, blinks: int) -> Episode:
    """The lamp blinks, and the red button is pressed as often, from one camera."""
    fills = [DARK] * 4
    spans, keyframes = [], []
    for _ in range(blinks):
        keyframes.append(len(fills))
        fills += [LIT] * 3 + [DARK] * 3
    spans.append(SubtaskSpan(0, len(fills), WATCH))
    before = DARK
    for _ in range(blinks):
        start = len(fills)
        fills += [before, MOVES, MOVES]
        spans.append(SubtaskSpan(start, len(fills), RED))
        keyframes.append(len(fills))
        fills += [PRESSED, MOVES]
        spans.append(SubtaskSpan(keyframes[-1], len(fills), RAISE))
        before = RAISED
    spans.append(SubtaskSpan(len(fills), len(fills) + 3, BLACK))
    fills += [RAISED, MOVES, MOVES]
    images = np.array(fills, np.uint8)[:, None, None, None].repeat(8, 1).repeat(8, 2).repeat(3, 3)
    return Episode(
        benchmark="mikasa",
        task=task,
        seed=seed,
        instruction="press as often as the lamp blinks",
        control_hz=20.0,
        success=True,
        images={"hand_camera": Frames(images)},
        state=np.arange(len(fills), dtype=np.float32)[:, None].repeat(7, 1),
        actions=np.zeros((len(fills), 7), np.float32),
        subtasks=tuple(spans),
        keyframes=tuple(keyframes),
        goal="",
    )


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for task, blinks in ((EASY, 1), (EASY, 2), (HARD, 3), (HARD, 5)):
        for seed in range(1000 + 10 * blinks, 1010 + 10 * blinks):
            save_episode(episode_path(tmp_path / "real", task, seed), demonstration(task, seed, blinks))
    return tmp_path / "real"


@pytest.mark.slow
@pytest.mark.parametrize(("task", "most"), [(EASY, 3), (HARD, 7)])
def test_there_are_as_many_presses_as_blinks(sources: Path, tmp_path: Path, task: str, most: int) -> None:
    jobs = (TaskSeeds(task, 40, 2000),)
    config = RecountedPressesConfig(sources=(str(sources),), out=str(tmp_path / "out"), tasks=jobs)
    worker = recounted_presses_worker(config)
    counts = set()
    for job in config.jobs():
        assert worker.play(job).kept
        episode = load_episode(episode_path(config.out, task, job.seed))
        fills = np.asarray(episode.images["hand_camera"])[:, 0, 0, 0].tolist()
        watch = episode.subtasks[0]
        blinks = [k for k in episode.keyframes if k < watch.end]
        count = len(blinks)
        lit = [step for step in range(1, watch.end) if fills[step] == LIT and fills[step - 1] == DARK]
        assert lit == blinks  # no blink without its keyframe, none that is not lit
        assert [span.label for span in episode.subtasks] == [WATCH, *(RED, RAISE) * count, BLACK]
        raises = [span.start for span in episode.subtasks if span.label == RAISE]
        assert list(episode.keyframes) == [*blinks, *raises]
        assert {fills[step] for step in raises} == {PRESSED}
        presses = [span for span in episode.subtasks if span.label in (RED, BLACK)]
        assert [fills[span.start] for span in presses] == [DARK, *[RAISED] * count]
        for span in episode.subtasks[1:]:
            at_rest = next(i for i, fill in enumerate(fills[span.start :]) if fill == MOVES)
            assert 5 <= at_rest <= 11  # rests, then what the demonstration did
        made_of = episode.metadata["edited_from"]
        assert made_of[0] in (EASY, HARD) and made_of[1] not in (1028, 1029, 1058, 1059)  # kept for validation
        assert episode.goal == f"press the red button {count} times, then the black button"
        counts.add(count)
    assert counts == set(range(1, most + 1))


def test_a_failed_episode_is_no_source(sources: Path, tmp_path: Path) -> None:
    for path in sources.glob("*/*.h5"):
        save_episode(path, replace(load_episode(path), success=False))
    config = RecountedPressesConfig(sources=(str(sources),), out=str(tmp_path / "out"), tasks=(TaskSeeds(EASY, 1),))
    with pytest.raises(ValueError, match="expected successful episodes of BlinkCount with two presses"):
        recounted_presses_worker(config).play(config.jobs()[0])


def test_an_episode_follows_from_its_seed(sources: Path, tmp_path: Path) -> None:
    images = []
    for folder in ("one", "two"):
        config = RecountedPressesConfig(
            sources=(str(sources),), out=str(tmp_path / folder), tasks=(TaskSeeds(HARD, 1),)
        )
        recounted_presses_worker(config).play(Job(HARD, 1000))
        images.append(np.asarray(load_episode(episode_path(config.out, HARD, 1000)).images["hand_camera"]))
    np.testing.assert_array_equal(*images)


def test_tasks_of_other_families_are_refused() -> None:
    assert KINDS["recounted_presses"] is RecountedPressesConfig
    with pytest.raises(ConfigError, match="RememberColor3"):
        RecountedPressesConfig(tasks=(TaskSeeds("RememberColor3-VLA-v0", 1),))
