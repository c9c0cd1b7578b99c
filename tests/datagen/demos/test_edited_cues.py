"""Cues that are made by erasing objects from images of the choice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS
from datagen.demos.edited_cues import EditedCuesConfig, edited_cues_worker
from datagen.demos.mikasa import TaskSeeds
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.core.scene_facts import KEY, SceneFacts
from predimem.jobs.tasks import Job

COLOURS = {"red cube": (200, 20, 20), "lime cube": (20, 200, 20), "blue cube": (20, 20, 200)}
TABLE, SIDE, HALF = 120, 64, 3
FIND, REMEMBER = "FindImposterColor3-VLA-v0", "RememberColor3-VLA-v0"


def demonstration(task: str, seed: int) -> Episode:
    """A cue, an empty table, and two images of the choice, from one camera."""
    rng = np.random.default_rng(seed)
    names = tuple(sorted(COLOURS))
    places = np.stack([rng.integers(8, 56, 3), 12 + 20 * rng.permutation(3)], axis=1)  # (u, v) in pixels
    goal = str(rng.choice(names))
    shown = [goal] if task == REMEMBER else [name for name in names if name != goal]
    images = np.full((4, SIDE, SIDE, 3), TABLE, np.uint8) + rng.integers(0, 4, (1, SIDE, SIDE, 3), np.uint8)
    pixels = np.full((4, 3, 1, 2), np.nan, np.float32)
    for step, visible in enumerate((shown, [], names, names)):
        for name in visible:
            u, v = places[names.index(name)]
            images[step, v - HALF : v + HALF, u - HALF : u + HALF] = COLOURS[name]
            pixels[step, names.index(name), 0] = (u / SIDE, v / SIDE)
    facts = SceneFacts(
        names,
        (("table",) * 3,) * 4,
        pixels,
        ("",) * 4,
        np.full((4, 1, 2), np.nan, np.float32),
        ("",) * 4,
        ("gripper",),
        np.ones((4, 1), np.float32),
    )
    subtasks = ("watch", "wait", *(f"touch the {name}" for name in names))
    alternatives = Alternatives(
        subtasks, np.zeros((4, 5, 8, 7)), np.ones((4, 5), bool), np.zeros((4, 5, 3)), np.zeros((4, 5, 1, 2))
    )
    return Episode(
        benchmark="mikasa",
        task=task,
        seed=seed,
        instruction="touch it",
        control_hz=20.0,
        success=True,
        images={"base_camera": Frames(images.astype(np.uint8))},
        state=np.zeros((4, 7), np.float32),
        actions=np.zeros((4, 7), np.float32),
        subtasks=(SubtaskSpan(0, 1, "watch"), SubtaskSpan(1, 2, "wait"), SubtaskSpan(2, 4, f"touch the {goal}")),
        keyframes=(0,),
        goal=f"touch the {goal}",
        alternatives=alternatives,
        metadata={KEY: facts.as_json()},
    )


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for task in (FIND, REMEMBER):
        for seed in range(1000, 1010):
            save_episode(episode_path(tmp_path / "real", task, seed), demonstration(task, seed))
    return tmp_path / "real"


def colours_in(image: np.ndarray) -> set[str]:
    return {name for name, colour in COLOURS.items() if (image == colour).all(-1).sum() >= 30}


@pytest.mark.parametrize("task", [FIND, REMEMBER])
def test_the_label_follows_from_the_edited_cue(sources: Path, tmp_path: Path, task: str) -> None:
    config = EditedCuesConfig(sources=(str(sources),), out=str(tmp_path / "out"), tasks=(TaskSeeds(task, 30, 2000),))
    worker = edited_cues_worker(config)
    goals, cues = set(), []
    for job in config.jobs():
        assert worker.play(job).kept
        episode = load_episode(episode_path(config.out, task, job.seed))
        shown, label = episode.images["base_camera"], episode.goal.removeprefix("touch the ")
        cue = colours_in(shown[0])
        assert cue == ({label} if task == REMEMBER else set(COLOURS) - {label})
        assert not colours_in(shown[1]) and colours_in(shown[2]) == colours_in(shown[3]) == set(COLOURS)
        assert [episode.subtask_at(step) for step in range(4)] == ["watch", "wait", episode.goal, episode.goal]
        facts = SceneFacts.of_metadata(episode.metadata, "the episode")
        seen = {name for name, (u, _) in zip(facts.objects, facts.pixels[0, :, 0], strict=True) if np.isfinite(u)}
        assert seen == cue and len(facts) == episode.image_steps.sum() == 3
        own, other = episode.metadata["edited_from"]
        assert own != other and max(own, other) < 1008  # the last fifth is kept for validation
        goals.add(label)
        cues.append(shown[0])
    assert goals == set(COLOURS)


def test_an_episode_follows_from_its_seed(sources: Path, tmp_path: Path) -> None:
    images = []
    for folder in ("one", "two"):
        config = EditedCuesConfig(sources=(str(sources),), out=str(tmp_path / folder), tasks=(TaskSeeds(FIND, 1),))
        edited_cues_worker(config).play(Job(FIND, 1000))
        images.append(np.asarray(load_episode(episode_path(config.out, FIND, 1000)).images["base_camera"]))
    np.testing.assert_array_equal(*images)


def test_failed_episodes_are_no_sources(tmp_path: Path) -> None:
    for seed in range(1000, 1006):
        episode = replace(demonstration(REMEMBER, seed), success=seed in (1001, 1003))
        save_episode(episode_path(tmp_path, REMEMBER, seed), episode)
    config = EditedCuesConfig(
        sources=(str(tmp_path),), out=str(tmp_path / "out"), tasks=(TaskSeeds(REMEMBER, 8, 2000),)
    )
    worker = edited_cues_worker(config)
    for job in config.jobs():
        worker.play(job)
        episode = load_episode(episode_path(config.out, REMEMBER, job.seed))
        assert set(episode.metadata["edited_from"]) == {1001, 1003}


def test_what_cannot_be_edited_is_refused(sources: Path, tmp_path: Path) -> None:
    assert KINDS["edited_cues"] is EditedCuesConfig
    with pytest.raises(ConfigError, match="ChainOfColors3"):
        EditedCuesConfig(tasks=(TaskSeeds("ChainOfColors3-VLA-v0", 1),))
    config = EditedCuesConfig(
        sources=(str(sources),), out=str(tmp_path / "out"), tasks=(TaskSeeds("RememberShape3-VLA-v0", 1),)
    )
    with pytest.raises(ValueError, match="at least two successful episodes"):
        edited_cues_worker(config).play(config.jobs()[0])
