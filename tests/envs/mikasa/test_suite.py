"""The suite's environments in SAPIEN, through our interface. Decimated meshes unless said otherwise."""

from collections.abc import Iterator

import numpy as np
import pytest

from predimem.core.interfaces import Environment
from predimem.core.types import StepResult
from predimem.envs.benchmark import EnvironmentRequest
from predimem.envs.mikasa import suite as mikasa
from predimem.envs.mikasa.benchmark import MIKASA, MikasaOptions
from predimem.envs.mikasa.expert import FamilyExpert
from predimem.envs.mikasa.families.rollout import alternatives
from predimem.envs.mikasa.families.touch_one import REMEMBER, FirstTouch, touch

pytestmark = pytest.mark.needs("suite")
TASK = "RememberColor3-VLA-v0"
SEED = 900_001


@pytest.fixture(scope="module")
def environment() -> Iterator[mikasa.MikasaEnvironment]:
    environment = mikasa.MikasaEnvironment(TASK, "fast")
    yield environment
    environment.close()


def play_expert(environment: mikasa.MikasaEnvironment, seed: int) -> list[StepResult]:
    environment.reset(seed)
    script = FamilyExpert(environment)
    return [environment.step(script.action()) for _ in range(environment.horizon)]


def test_the_contract(environment: mikasa.MikasaEnvironment) -> None:
    assert isinstance(environment, Environment)
    assert (environment.action_dim, environment.horizon, environment.control_hz) == (7, 25, 20.0)
    assert environment._env.unwrapped.control_freq == mikasa.CONTROL_HZ
    assert environment.instruction.startswith("Observe the cube's color, wait")
    observation = environment.reset(SEED)
    assert list(observation.images) == ["base_camera", "hand_camera"]
    assert {(i.shape, i.dtype.name) for i in observation.images.values()} == {((128, 128, 3), "uint8")}
    assert observation.state.shape == (7,) and observation.state.dtype == np.float32
    assert observation.step == 0 and observation.time_s == 0.0
    result = environment.step(environment.hold_action(None))
    assert result.observation.step == 1 and result.observation.time_s == 0.05
    state = environment.privileged()
    np.testing.assert_allclose(result.observation.state[:3], state["tcp_m"], atol=1e-6)


def test_the_expert_succeeds_and_the_seed_determines_everything(
    environment: mikasa.MikasaEnvironment,
) -> None:
    first = play_expert(environment, SEED)
    assert first[-1].success and first[-1].truncated and not any(r.terminated for r in first)
    assert [r.success for r in first] == sorted(r.success for r in first)  # once true, it stays true
    assert first[-1].info["wrong_first_touch"] == 0.0
    assert first[-1].info["target_distance_m"] < 0.05  # type: ignore[operator]
    play_expert(environment, SEED + 1)
    for before, again in zip(first, play_expert(environment, SEED), strict=True):
        np.testing.assert_array_equal(before.observation.state, again.observation.state)
        for name, image in before.observation.images.items():
            np.testing.assert_array_equal(image, again.observation.images[name])


def test_a_success_stays_one_when_the_arm_moves_away(environment: mikasa.MikasaEnvironment) -> None:
    environment.reset(SEED)
    results: list[StepResult] = []
    away = np.array([0, 0, 1, 0, 0, 0, 1], np.float32)
    for _ in range(environment.horizon):
        won = bool(results) and results[-1].success
        results.append(environment.step(away if won else FamilyExpert(environment).action()))
    now = [bool(result.info["success_now"]) for result in results]
    first = now.index(True)
    assert not now[-1] and [result.success for result in results] == [step >= first for step in range(len(results))]
    environment.reset(SEED)
    assert not environment.step(away).success


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, None])
def test_leaving_images_out_changes_nothing_else(environment: mikasa.MikasaEnvironment, every: int | None) -> None:
    environment.camera_every = 1
    seen = play_expert(environment, SEED)
    environment.camera_every = every
    try:
        assert bool(environment.reset(SEED).images) == (every is not None)
        sparse = play_expert(environment, SEED)
    finally:
        environment.camera_every = 1
    for step, (all_images, few) in enumerate(zip(seen, sparse, strict=True), start=1):
        assert all_images.info == few.info and all_images.success == few.success
        np.testing.assert_array_equal(all_images.observation.state, few.observation.state)
        last = environment.horizon if step == environment.horizon else step - step % 3
        if every is None:
            assert few.observation.images == {}
        elif last:
            for name, image in few.observation.images.items():
                np.testing.assert_array_equal(image, seen[last - 1].observation.images[name])
    assert not np.array_equal(seen[0].observation.images["base_camera"], seen[-1].observation.images["base_camera"])


def test_the_benchmarks_environment_can_leave_images_out() -> None:
    made = MIKASA.make_environment(TASK, MikasaOptions("fast"), EnvironmentRequest())
    made.camera_every = None  # type: ignore[attr-defined]
    assert made.reset(SEED).images == {}
    made.camera_every = 1  # type: ignore[attr-defined]
    assert set(made.reset(SEED).images) == set(mikasa.CAMERAS)
    made.close()


def test_the_phases_are_what_the_images_show(environment: mikasa.MikasaEnvironment) -> None:
    environment.reset(SEED)
    hidden = []
    for step in range(environment.horizon):
        state = environment.privileged()
        assert state["step"] == step
        hidden.append(int(np.isnan(state["objects_m"][:, 0]).sum()))
        expected = [2] if step < state["cue_end_step"] else [3] if step < state["appear_step"] else [0]
        assert hidden[-1:] == expected
        if step == 0:
            assert not np.isnan(state["objects_m"][state["target_index"]]).any()
            assert REMEMBER.subtask(state) == "watch"
        environment.step(environment.hold_action(None))
    assert REMEMBER.subtask(environment.privileged()) == f"touch the {state['target_label']}"


def test_projected_targets_lie_on_pixels_of_their_colour(environment: mikasa.MikasaEnvironment) -> None:
    observation = environment.reset(SEED)
    while environment.privileged()["step"] < environment.privileged()["appear_step"]:
        observation = environment.step(environment.hold_action(None)).observation
    state = environment.privileged()
    pixels = alternatives(REMEMBER, [state], REMEMBER.subtasks(TASK)).pixels[0, 2:]  # [3 cubes, 2 cameras, (u, v)]
    channel = {"red cube": 0, "lime cube": 1, "blue cube": 2}
    seen = 0
    for label, per_camera in zip(state["labels"], pixels, strict=True):
        for name, uv in zip(mikasa.CAMERAS, per_camera, strict=True):
            if np.isfinite(uv).all():
                column, row = (uv * 128).astype(int)
                rgb = observation.images[name][row, column].astype(int)
                assert rgb[channel[label]] > 100 and rgb.sum() - rgb[channel[label]] < 60
                seen += 1
    assert seen >= 5


def test_touching_another_cube_first_is_reported(environment: mikasa.MikasaEnvironment) -> None:
    environment.reset(SEED)
    state = environment.true_state()
    other = touch(state["labels"][(state["target_index"] + 1) % 3])
    results = [environment.step(REMEMBER.act(environment.true_state(), other)) for _ in range(environment.horizon)]
    assert results[0].info["wrong_first_touch"] == 0.0 and results[-1].info["wrong_first_touch"] == 1.0
    assert not results[-1].success


@pytest.mark.parametrize(
    ("action", "message"),
    [(np.zeros(6), r"shape \(7,\)"), (np.zeros((1, 7)), r"shape \(7,\)"), (np.full(7, np.nan), "finite")],
)
def test_bad_actions(environment: mikasa.MikasaEnvironment, action: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        environment.step(action)


def test_bad_seeds_tasks_and_renderings(environment: mikasa.MikasaEnvironment) -> None:
    with pytest.raises(ValueError, match="expected a seed"):
        environment.reset(-1)
    with pytest.raises(ValueError, match=r"unknown MIKASA task 'RememberColor4-VLA-v0'.*RememberColor9-VLA"):
        mikasa.MikasaEnvironment("RememberColor4-VLA-v0")
    with pytest.raises(ValueError, match="'stock' or 'fast'"):
        mikasa.MikasaEnvironment(TASK, "pretty")  # type: ignore[arg-type]


def test_the_registry_has_every_remember_task() -> None:
    wanted = [f"Remember{kind}{n}-VLA-v0" for kind in ("Color", "Shape") for n in (3, 5, 9)]
    wanted += [f"RememberShapeAndColor{n}-VLA-v0" for n in ("3x2", "3x3", "5x3")]
    assert set(wanted) <= set(mikasa.tasks())


def test_hold_action_keeps_the_gripper() -> None:
    assert mikasa.hold_action(None).tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert mikasa.hold_action(np.array([1, 1, 1, 0, 0, 0, -1.0])).tolist() == [0, 0, 0, 0, 0, 0, -1]


def test_first_touch_by_hand() -> None:
    def state(step: int, tcp_x: float) -> dict:
        objects = np.array([[0.0, 0, 0], [0.2, 0, 0]]) if step >= 2 else np.full((2, 3), np.nan)
        return {
            "step": step,
            "appear_step": 2,
            "tcp_m": np.array([tcp_x, 0, 0]),
            "objects_m": objects,
            "target_index": 1,
            "labels": ("red cube", "teal cube"),
            "target_label": "teal cube",
        }

    touches = FirstTouch()
    assert touches.update(state(1, 0.0), True) == {
        "success_now": False,
        "wrong_first_touch": 0.0,
    }  # nothing to touch yet
    first = {"success_now": True, "wrong_first_touch": 0.0, "target_distance_m": 0.1}
    assert touches.update(state(2, 0.1), True) == first
    wrong = touches.update(state(3, 0.04), False)
    assert wrong["wrong_first_touch"] == 1.0
    assert wrong["mistake"] == "touched the red cube; the teal cube was right"
    later = touches.update(state(4, 0.2), False)
    assert later["wrong_first_touch"] == 1.0 and "mistake" not in later  # the first touch counts, and is told once
    other = FirstTouch()
    assert other.update(state(2, 0.16), False)["wrong_first_touch"] == 0.0
    assert other.update(state(3, 0.0), False)["wrong_first_touch"] == 0.0
