"""The suite's lamps without the mesh that its releases lack, and observations without images."""

import numpy as np
import pytest

from predimem.envs.mikasa import light_bulb, suite

pytestmark = pytest.mark.needs("suite")
TASK = "BlinkCountButtonPressEasy-VLA-v0"


def test_the_27_tasks_with_lamps() -> None:
    assert sum(map(light_bulb.has_bulb, suite.tasks())) == 27


@pytest.mark.slow
def test_the_lamp_is_seen_to_blink_and_figures_say_how_it_is_drawn() -> None:
    environment = suite.MikasaEnvironment(TASK, "fast")
    base = environment._env.unwrapped
    observation = environment.reset(3)
    shown = []
    while not bool(base.evaluate()["phase_ready"][0]):
        image = observation.images["base_camera"].astype(int)
        blue = (image[..., 2] > 150) & (image[..., 0] < 100) & (image[..., 1] < 100)
        shown.append(int(blue.sum()) >= 3)
        observation = environment.step(environment.hold_action(None)).observation
    environment.close()
    blinks = sum(now and not before for before, now in zip([False, *shown], shown, strict=False))
    assert blinks == int(base.target_blinks[0])
    said = light_bulb.NOTE if light_bulb.is_missing() else ""
    assert suite.benchmark_version().endswith(said) and suite.describe(TASK).endswith(f"({said})" if said else "")


@pytest.mark.slow
def test_states_are_the_same_without_images() -> None:
    seeing, blind = suite.MikasaEnvironment(TASK, "fast"), suite.MikasaEnvironment(TASK, images=False)
    assert seeing.horizon == blind.horizon
    rng = np.random.default_rng(0)
    pairs = [(seeing.reset(5), blind.reset(5))]
    for _ in range(3):
        action = rng.uniform(-1, 1, 7)
        pairs.append((seeing.step(action).observation, blind.step(action).observation))
    for one, other in pairs:
        np.testing.assert_array_equal(one.state, other.state)
        assert one.images and not other.images and one.time_s == other.time_s
    assert seeing.instruction == blind.instruction
    seeing.close()
    blind.close()
