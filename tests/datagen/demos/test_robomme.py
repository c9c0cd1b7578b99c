"""Demonstrations of RoboMME: which are asked for, and one as it is stored."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from datagen.demos.robomme import RobommeDataConfig, RobommeWorker, record
from predimem.core.config import ConfigError
from predimem.core.episode_reader import load_episode
from predimem.envs.interference.videos import DISTRACTORS_FROM
from predimem.envs.robomme.suite import RobommeEnvironment
from predimem.jobs.tasks import Job

UNBUILT = DISTRACTORS_FROM + 6  # an episode of VideoPlaceButton that RoboMME cannot build


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ("MoveCube", "MoveCube")}, "each task may be listed once"),
        ({"image_every": 0}, "image_every must be >= 1"),
        ({"first_seed": 900_000}, "seed 900000 is not a training seed"),
    ],
)
def test_configs_that_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=message):
        RobommeDataConfig(**changes)  # type: ignore[arg-type]


@pytest.mark.needs("robomme")
@pytest.mark.parametrize("driver", ["motions", "skills"])
def test_an_episode_begins_with_its_video(tmp_path: Path, driver: str) -> None:
    config = RobommeDataConfig(out=str(tmp_path), image_px=32, image_every=16, driver=driver)  # type: ignore[arg-type]
    environment = RobommeEnvironment("VideoUnmask", 32, "fast", video_every=16)
    environment.camera_every = 16
    cause, steps = record(environment, Job("VideoUnmask", 1000), config)
    environment.close()
    episode = load_episode(tmp_path / "VideoUnmask/seed0000001000.h5")
    video = episode.video_steps
    assert (cause, steps, episode.success) == ("", len(episode), True) and video > 50
    assert (episode.subtasks[0].label, episode.subtasks[0].end) == ("watch the video", video)
    assert re.fullmatch(r"pick up the container at row \d+ column \d+", episode.subtasks[1].label)
    uncovered, starts = [k for k in episode.keyframes if k < video], [k for k in episode.keyframes if k >= video]
    assert uncovered and 0 not in uncovered and video in starts
    assert episode.metadata["episode"] == ["train", 0] and episode.metadata["driver"] == driver
    assert len(episode.images["base_camera"].images) <= len(episode) / 16 + 4


@pytest.mark.needs("robomme")
def test_rows_do_not_hold_the_noise_that_moved_the_arm(tmp_path: Path) -> None:
    """The same seed with and without noise: the first commands are the same waypoints, the arm is elsewhere."""
    environment = RobommeEnvironment("ButtonUnmask", 32, "fast", video_every=16)
    environment.camera_every = 64
    episodes = []
    for noise_rad in (0.0, 0.04):
        out = str(tmp_path / str(noise_rad))
        config = RobommeDataConfig(out=out, image_px=32, driver="skills", delay_steps=0, noise_rad=noise_rad)
        cause, _ = record(environment, Job("ButtonUnmask", 1003), config)
        assert cause == ""
        episodes.append(load_episode(tmp_path / str(noise_rad) / "ButtonUnmask/seed0000001003.h5"))
    environment.close()
    clean, noisy = episodes
    np.testing.assert_allclose(noisy.actions[:30], clean.actions[:30], atol=1e-4)
    assert np.abs(noisy.state[:60, :7] - clean.state[:60, :7]).max() > 0.01


@pytest.mark.needs("vulkan")
@pytest.mark.needs("robomme")
def test_a_seed_whose_scene_cannot_be_built_is_discarded_for_that_reason(tmp_path: Path) -> None:
    worker = RobommeWorker(RobommeDataConfig(out=str(tmp_path), image_px=32, driver="skills"))
    try:
        outcome = worker.play(Job("VideoPlaceButton", UNBUILT))
    finally:
        worker.close()
    assert (outcome.kept, outcome.cause, outcome.steps) == (False, "no scene", 0)
    assert not list(tmp_path.rglob("*.h5"))
