"""RoboMME's videos as earlier sessions, played by its own package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from predimem.envs.benchmark import EnvironmentRequest, load_benchmark
from predimem.envs.interference.benchmark import InterferenceOptions
from predimem.envs.interference.conditions import OWN, condition_of, draw_videos
from predimem.envs.interference.videos import DISTRACTORS_FROM, FAMILIES, VideoInterferenceEnvironment, VideoPool
from predimem.envs.robomme import package

TEST_1 = package.seed_of("test", 1)


def test_the_lesson_is_the_video_of_the_episode_and_distractors_are_others() -> None:
    drawn = draw_videos("MoveCube", FAMILIES, condition_of("k7"), TEST_1, 4)
    assert [(s.family, s.number) for s in drawn.sessions if s.relevant] == [("MoveCube", OWN)]
    assert all(s.family != "MoveCube" and 0 <= s.number < 4 for s in drawn.sessions[1:])
    assert (
        draw_videos("MoveCube", FAMILIES, condition_of("k3"), TEST_1, 4).sessions[1].number == drawn.sessions[1].number
    )
    older = draw_videos("MoveCube", FAMILIES, condition_of("k3-older"), TEST_1, 4).sessions
    assert [s.family for s in older] == ["MoveCube"] * 4 and older[-1].relevant
    ages = [s.age_s for s in older]
    assert ages == sorted(ages, reverse=True)
    others = draw_videos("MoveCube", FAMILIES, condition_of("k3-others"), TEST_1, 4)
    assert all((s.robot, s.person) != (others.robot, others.person) for s in others.sessions[1:])
    assert not any(s.relevant for s in draw_videos("MoveCube", FAMILIES, condition_of("k3-absent"), TEST_1, 4).sessions)


def test_families_of_both_kinds_are_named_alike() -> None:
    benchmark = load_benchmark("interference")
    assert benchmark.in_conditions(("MoveCube", "drawer"), ("k0",)) == ("MoveCube-k0", "drawer-k0")
    assert benchmark.subtasks("MoveCube-k0") is None and benchmark.horizon("MoveCube-k0") == 1300
    assert benchmark.describe("MoveCube-k0") == "what RoboMME's video shows; the lesson alone"
    with pytest.raises(ValueError, match="no newer video can count in its place; expected another condition"):
        benchmark.in_conditions(("MoveCube",), ("k1-newer",))
    with pytest.raises(ValueError, match=r"unknown family 'Movecube'.*MoveCube"):
        benchmark.in_conditions(("Movecube",), ("k0",))


@pytest.mark.needs("vulkan")
@pytest.mark.needs("robomme")
def test_the_robot_sees_the_video_only_in_its_history(tmp_path: Path) -> None:
    options = InterferenceOptions(str(tmp_path), pool=1, image_px=64)
    environment = load_benchmark("interference").make_environment("VideoUnmask-k1", options, EnvironmentRequest())
    assert isinstance(environment, VideoInterferenceEnvironment) and not hasattr(environment, "video")
    try:
        observation = environment.reset(TEST_1)
        lesson, distractor = environment.history.sessions
        again = environment.history.sessions[1]
    finally:
        environment.close()
    assert observation.step == 0 and lesson.relevant and not distractor.relevant
    assert lesson.instruction == environment.instruction != distractor.instruction
    steps = [frame.step for frame in lesson.frames]
    assert len(steps) >= 2 and steps == sorted(steps) and steps[-1] < 0
    covered, uncovered = (lesson.frames[i].images["base_camera"].astype(int) for i in (0, 1))
    assert np.abs(covered - uncovered).max() > 50  # the cubes, which containers cover before and after
    (path,) = tmp_path.rglob("video-*.npz")
    assert path.parent.name in FAMILIES and len(again.frames) == len(distractor.frames) >= 2
    assert np.array_equal(again.frames[0].images["base_camera"], distractor.frames[0].images["base_camera"])


@pytest.mark.needs("vulkan")
@pytest.mark.needs("robomme")
def test_a_distractor_whose_scene_cannot_be_built_is_another_one(tmp_path: Path) -> None:
    number = 6
    with pytest.raises(package.NoScene, match="RoboMME cannot build episode 5006"):
        package.make_episode("VideoPlaceButton", DISTRACTORS_FROM + number, 64)
    video = VideoPool(str(tmp_path), 64, "fast").video("VideoPlaceButton", number)
    assert len(video.frames) >= 2 and video.frames[-1].step < 0
