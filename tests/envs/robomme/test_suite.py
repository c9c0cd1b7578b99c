"""RoboMME through its own package: the same physics and success with and without images, its planners, its labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from actor.training.config import ActorTrainConfig
from predimem.core.config import load_config
from predimem.envs.robomme import expert, package
from predimem.envs.robomme.labels import FRONT, label_of_words, pixel
from predimem.envs.robomme.suite import RobommeEnvironment

ROOT = Path(__file__).parents[3]
needs_robomme = pytest.mark.needs("robomme")
TEST_0 = package.seed_of("test", 0)


@pytest.fixture
def environment() -> Iterator[RobommeEnvironment]:
    made = RobommeEnvironment("ButtonUnmask", image_px=64, rendering="fast")
    yield made
    made.close()


def test_seeds_stand_for_episodes() -> None:
    assert package.episode_of(900_000) == ("test", 0) and package.episode_of(900_149) == ("val", 49)
    assert package.episode_of(1_099) == ("train", 99) and package.episode_of(1_100) == ("more", 0)
    with pytest.raises(ValueError, match="seed 900050 is no episode of RoboMME: 1000 to 1099 are its train episodes"):
        package.episode_of(900_050)
    with pytest.raises(ValueError, match="has 50 test episodes"):
        package.seed_of("test", 50)


def test_tasks_that_cannot_be_played() -> None:
    with pytest.raises(ValueError, match=r"PatternLock needs RoboMME's own fork of ManiSkill .* other 14 tasks"):
        package.check_task("PatternLock")
    with pytest.raises(ValueError, match=r"no task 'PickXTimes'.*PickXtimes"):
        package.check_task("PickXTimes")


def test_words_of_the_data_become_labels() -> None:
    name, grounded = "pick up the container that hides the red cube", "pick up the container at <77, 170> that hides it"
    assert label_of_words(name, grounded, 256) == "pick up the container at row 4 column 10"
    assert label_of_words(name, name, 256) is None
    assert label_of_words("Pick up the peg", "Pick up the peg at <1, 2>", 256) == "pick up the peg"


@needs_robomme
def test_physics_and_success_are_those_of_robomme(environment: RobommeEnvironment) -> None:
    """The same actions in RoboMME's own environment, with all its images, and in ours with none and with some."""
    environment.camera_every = None
    environment.reset(TEST_0)
    player = expert.oracle(environment)
    actions, joints, status = [], [], "ongoing"
    while status == "ongoing":
        actions.append(player.action())
        result = environment.step(actions[-1])
        joints.append(result.observation.state[:7])
        status = str(result.info["status"])
    assert (status, result.success, result.terminated) == ("success", True, True)
    player.reset()

    theirs = package.make_episode("ButtonUnmask", TEST_0)
    theirs.reset()
    for place, action in enumerate(actions[:40]):  # with images a step costs a hundred times as much
        observed, *_, info = theirs.step(action)
        np.testing.assert_array_equal(np.asarray(observed["joint_state_list"][-1]), joints[place])
        assert info["status"] == "ongoing"
    theirs.close()

    environment.camera_every = 50
    environment.reset(TEST_0)
    for place, action in enumerate(actions):
        result = environment.step(action)
        np.testing.assert_array_equal(result.observation.state[:7], joints[place])
    assert result.success and result.info["stages_passed"] == result.info["stages_total"] == 2


@needs_robomme
def test_an_episode_ends_at_its_horizon_and_says_what_was_due(environment: RobommeEnvironment) -> None:
    environment.camera_every = None
    environment.reset(TEST_0)
    for step in range(environment.horizon):
        result = environment.step(environment.hold_action(None))
        assert result.truncated == (step == environment.horizon - 1) and not result.terminated
    assert not result.success and str(result.info["failure"]).startswith("out of time: press the button")


@needs_robomme
def test_images_are_taken_when_somebody_looks(environment: RobommeEnvironment) -> None:
    environment.camera_every = 3
    first = environment.reset(TEST_0)
    assert {name: image.shape for name, image in first.images.items()} == {
        "base_camera": (64, 64, 3),
        "hand_camera": (64, 64, 3),
    }
    hold = environment.hold_action(None)
    seen = [environment.step(hold).observation.images for _ in range(3)]
    assert seen[0] is first.images and seen[1] is first.images and seen[2] is not first.images


@needs_robomme
def test_a_video_has_steps_below_zero_and_shows_what_is_hidden_later() -> None:
    environment = RobommeEnvironment("VideoUnmask", image_px=64, rendering="fast", video_every=8)
    observation = environment.reset(TEST_0)
    steps = [frame.step for frame in environment.video]
    assert observation.step == 0 and steps == list(range(-len(steps), 0)) and len(steps) > 50
    assert {"uncovered", ""} == set(environment.shown_in_video)
    images = {id(frame.images) for frame in environment.video}
    assert 3 <= len(images) <= len(steps) / 8 + 2
    environment.close()


@needs_robomme
def test_skills_carry_out_labels_and_know_no_answers(environment: RobommeEnvironment) -> None:
    environment.camera_every = None
    observation = environment.reset(TEST_0)
    policy, due = expert.skills(environment, None), expert.true_subtask(environment)
    labels = [due()]
    for _ in range(400):
        if labels[-1] != due():
            labels.append(due())
        result = environment.step(policy.infer(observation, due()).actions[0])
        observation = result.observation
        if result.terminated:
            break
    assert result.success
    assert labels[0] == "press the button" and re.fullmatch(r"pick up the container at row \d+ column \d+", labels[1])
    policy.reset()  # type: ignore[attr-defined]  # else the motion that holds something is carried on to its end
    still = policy.infer(observation, "dance on the table").actions[0]
    np.testing.assert_allclose(policy.infer(observation, "dance on the table").actions[0], still)


@needs_robomme
def test_the_actor_s_recipe_knows_the_front_camera(environment: RobommeEnvironment) -> None:
    environment.reset(TEST_0)
    recipe = load_config(ActorTrainConfig, ROOT / "configs" / "actor" / "robomme.yaml")
    assert recipe.hindsight is not None
    button = environment.simulation.button
    found = recipe.hindsight.pixel(FRONT, np.asarray(button.pose.p[0].cpu()))
    np.testing.assert_allclose(found, pixel(button, environment.simulation), atol=1e-3)


@needs_robomme
def test_a_planner_that_wavers_between_cells_gets_there(environment: RobommeEnvironment) -> None:
    """Each answer names the cell beside the last one's, which means the same container."""
    environment.camera_every = None
    observation = environment.reset(TEST_0)
    policy, due = expert.skills(environment, None), expert.true_subtask(environment)
    for step in range(600):
        result = environment.step(policy.infer(observation, beside(due(), step // 10 % 2)).actions[0])
        observation = result.observation
        if result.terminated:
            break
    assert result.success


def beside(label: str, columns: int) -> str:
    return re.sub(r"column (\d+)", lambda found: f"column {int(found[1]) + columns}", label)
