"""Which images are rendered by hand, and whole episodes with few images."""

import numpy as np
import pytest

from datagen.demos.controllers import PerturbationConfig
from datagen.demos.record import record_episode
from datagen.demos.thrift import ThriftConfig, image_steps, only_fresh, sparse_frames
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.core.scene_facts import SceneFacts
from predimem.core.types import Observation, StepResult
from predimem.envs.mikasa.suite import MikasaEnvironment
from tests.envs.mikasa.point_environment import PointEnvironment

CLEAN = PerturbationConfig(noise_share=0.0, detour_share=0.0)
NOISY = PerturbationConfig(noise_share=1.0, detour_share=1.0)


def test_images_lie_on_a_grid_and_around_what_happens() -> None:
    spans = (SubtaskSpan(0, 13, "a"), SubtaskSpan(13, 30, "b"))
    assert image_steps(30, spans, (21,), ThriftConfig(every=10, around_steps=1)) == {0, 1, 10, 12, 13, 14, 20, 21, 22}
    assert image_steps(5, spans[:1], (), ThriftConfig()) == set(range(5))


def test_frames_hold_until_the_next_and_only_fresh_ones_are_labelled() -> None:
    images = [np.full((2, 2, 3), t, np.uint8) for t in (0, 0, 2, 2, 4)]
    frames = sparse_frames(images, frozenset({0, 2, 4}))
    assert frames[:, 0, 0, 0].tolist() == [0, 0, 2, 2, 4] and frames.stored.tolist() == [True, False] * 2 + [True]
    labels = Alternatives(
        ("a",), np.zeros((3, 1, 8, 7)), np.ones((3, 1), bool), np.zeros((3, 1, 3)), np.zeros((3, 1, 1, 2))
    )
    assert only_fresh(labels, frozenset({1})).valid.tolist() == [[False], [True], [False]]


def record(thrift: ThriftConfig | None, perturbation: PerturbationConfig = CLEAN) -> Episode:
    return record_episode(PointEnvironment("point"), "point", 1001, perturbation, KeyframeConfig(), thrift)


@pytest.mark.parametrize("perturbation", [CLEAN, NOISY])
def test_a_thrifty_episode_is_the_same_with_fewer_images(perturbation: PerturbationConfig) -> None:
    whole, few = record(None, perturbation), record(ThriftConfig(every=5, around_steps=0), perturbation)
    np.testing.assert_array_equal(few.actions, whole.actions)
    np.testing.assert_array_equal(few.state, whole.state)
    assert (few.subtasks, few.keyframes, few.success) == (whole.subtasks, whole.keyframes, whole.success)
    fresh = np.flatnonzero(few.image_steps)
    assert set(fresh) == {*range(0, len(whole), 5), *few.keyframes, *(span.start for span in few.subtasks)} and len(
        fresh
    ) < 0.7 * len(whole)
    np.testing.assert_array_equal(few.images["base_camera"][fresh], whole.images["base_camera"][fresh])
    assert few.alternatives is not None and whole.alternatives is not None
    np.testing.assert_array_equal(few.alternatives.valid[fresh], whole.alternatives.valid[fresh])
    assert few.alternatives.valid.any(axis=1).tolist() == few.image_steps.tolist()


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_the_simulator_is_played_twice_the_same_way() -> None:
    environment = MikasaEnvironment("RememberColor3-VLA-v0", "fast")
    thrift = ThriftConfig(every=6, around_steps=0)
    task = environment.task_id
    few = record_episode(environment, task, 1003, NOISY, None, thrift)
    whole = record_episode(environment, task, 1003, NOISY, None)
    environment.close()
    np.testing.assert_array_equal(few.state, whole.state)
    fresh = np.flatnonzero(few.image_steps)
    assert len(fresh) < len(whole) / 2
    for camera, frames in few.images.items():
        np.testing.assert_array_equal(frames[fresh], whole.images[camera][fresh])


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_what_was_gathered_is_gathered_again_in_the_replay() -> None:
    environment = MikasaEnvironment("GatherAndRecall3-VLA-v0", "fast")
    thrift = ThriftConfig(every=3, around_steps=1)
    episode = record_episode(environment, environment.task_id, 1000, CLEAN, None, thrift)
    environment.close()
    assert episode.success and len(episode) / 4 < episode.image_steps.sum() < len(episode) / 2


class Slippery(PointEnvironment):
    """From the second time on, an object slides away at step 9, whatever the arm does."""

    plays = 0

    def reset(self, seed: int) -> Observation:
        self.plays += 1
        self._objects[0, 0] = -0.2
        return super().reset(seed)

    def step(self, action: np.ndarray) -> StepResult:
        if self.plays > 1 and self._step == 8:
            self._objects[0, 0] += 0.02
        return super().step(action)


def test_a_replay_in_which_an_object_slips_is_not_taken_for_the_same() -> None:
    environment = Slippery("point")
    episode = record_episode(environment, "point", 1001, CLEAN, KeyframeConfig(), ThriftConfig(every=5, around_steps=0))
    assert environment.plays == 3 and episode.image_steps.all(), "played once more, with all images"
    facts = SceneFacts.of_metadata(episode.metadata, "the episode")
    assert len(facts) == len(episode)


def test_what_cannot_be_rendered_is_refused() -> None:
    with pytest.raises(ConfigError, match="every"):
        ThriftConfig(every=0)


def test_facts_are_about_the_steps_of_images() -> None:
    episode = record_episode(
        PointEnvironment("point"), "point", 1001, CLEAN, None, ThriftConfig(every=4, around_steps=0)
    )
    facts = SceneFacts.of_metadata(episode.metadata, "the episode")
    assert len(facts) == episode.image_steps.sum() < len(episode)
