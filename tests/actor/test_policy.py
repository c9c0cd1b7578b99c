import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from actor.engine.config import EngineConfig
from actor.policy import ActorPolicy, load_policy
from actor.train import train
from actor.weights import WeightsError, load_actor, save_actor
from predimem.core.interfaces import ContinuingPolicy, Policy
from predimem.core.types import Observation, ObservationError
from tests.actor.conftest import APPEAR, CAMERAS, HORIZON, make_episode
from tests.actor.test_train import CONFIG


@pytest.fixture(scope="module")
def weights(episodes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = dataclasses.replace(CONFIG, steps=3)
    return train(config, episodes=episodes, out=tmp_path_factory.mktemp("run"), progress=False)


@pytest.fixture
def copy(weights: Path, tmp_path: Path) -> Path:
    for path in weights.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def observe(step: int = APPEAR) -> Observation:
    episode = make_episode(3000)
    return Observation(step, {name: episode.images[name][APPEAR] for name in CAMERAS}, episode.state[APPEAR])


def test_chunk_is_physical_and_starts_now(weights: Path):
    policy = load_policy(weights)
    assert isinstance(policy, Policy)
    chunk = policy.infer(observe(step=7), "touch the red square")
    assert (chunk.start_step, chunk.subtask) == (7, "touch the red square")
    assert chunk.actions.shape == (HORIZON, 7) and chunk.actions.dtype == np.float32
    np.testing.assert_allclose(chunk.actions[:, 2:], [[0, 0, 0, 0, -1]] * HORIZON, atol=1e-6)  # constants


def test_repeatable_given_seed_and_step(weights: Path):
    first, second = load_policy(weights, seed=3), load_policy(weights, seed=3)
    first.infer(observe(1), "wait")  # a policy has no memory: earlier calls change nothing
    a, b = first.infer(observe(2), "wait"), second.infer(observe(2), "wait")
    np.testing.assert_array_equal(a.actions, b.actions)
    for other in (load_policy(weights, seed=4).infer(observe(2), "wait"), second.infer(observe(3), "wait")):
        assert np.abs(other.actions - a.actions).max() > 1e-4
    assert np.abs(load_policy(weights, seed=3, num_steps=1).infer(observe(2), "wait").actions - a.actions).max() > 0


def test_half_the_bits_give_nearly_the_same_actions(weights: Path):
    exact, rounded = (load_policy(weights, dtype=dtype).infer(observe(), "wait") for dtype in (None, "bfloat16"))
    assert rounded.actions.dtype == np.float32
    scale = np.abs(exact.actions).max()
    assert 0 < np.abs(rounded.actions - exact.actions).max() < 0.05 * scale


def test_the_noise_is_as_large_as_the_config_says(weights: Path):
    actor = load_actor(weights)

    def with_noise(noise: float, seed: int) -> ActorPolicy:
        return ActorPolicy(dataclasses.replace(actor, config=dataclasses.replace(actor.config, noise=noise)), seed)

    drawn = [(noise, seed) for noise in (0, 0.5, 1) for seed in (3, 4)]
    chunks = {which: with_noise(*which).infer(observe(2), "wait").actions for which in drawn}
    np.testing.assert_array_equal(chunks[0, 3], chunks[0, 4])  # without noise there is nothing to draw
    spread = {noise: np.abs(chunks[noise, 3] - chunks[noise, 4]).max() for noise in (0.5, 1)}
    assert 1e-4 < spread[0.5] < spread[1]
    np.testing.assert_array_equal(with_noise(0.5, 3)._noise(2), 0.5 * with_noise(1, 3)._noise(2))


def test_the_subtask_and_the_state_matter(weights: Path):
    policy, observation = load_policy(weights), observe()
    red = policy.infer(observation, "touch the red square").actions
    assert np.abs(policy.infer(observation, "touch the blue square").actions - red).max() > 0
    moved = dataclasses.replace(observation, state=observation.state + np.float32(0.3))
    assert np.abs(policy.infer(moved, "touch the red square").actions - red).max() > 0


def test_an_unknown_or_endless_subtask_still_gives_a_chunk(weights: Path):
    policy = load_policy(weights)
    with pytest.warns(UserWarning, match="subtask cut"):
        chunk = policy.infer(observe(), "zzz qqq " * 400)
    assert np.isfinite(chunk.actions).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"images": {"base_camera": np.zeros((128, 128, 3), np.uint8)}},
            r"expects the cameras .*hand_camera",
        ),
        (
            {"images": {name: np.zeros((64, 128, 3), np.uint8) for name in CAMERAS}},
            r"base_camera should be uint8 of shape \(128, 128, 3\), got uint8 of shape \(64, 128, 3\)",
        ),
        ({"images": {name: np.zeros((128, 128, 3), np.float32) for name in CAMERAS}}, "got float32"),
        ({"state": np.zeros(9, np.float32)}, r"state of 7 numbers, got shape \(9,\)"),
    ],
)
def test_observations_that_do_not_fit(weights: Path, change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        load_policy(weights).infer(dataclasses.replace(observe(), **change), "wait")


def test_missing_weights(tmp_path: Path):
    with pytest.raises(WeightsError, match=r"no actor in .*config\.json is missing.*predimem train actor"):
        load_policy(tmp_path / "nowhere")


def test_truncated_weights(copy: Path):
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(WeightsError, match=r"model\.safetensors cannot be read \(truncated"):
        load_policy(copy)


def test_weights_of_another_size(copy: Path):
    data = json.loads((copy / "config.json").read_text())
    data["model"]["conv"]["queries"] = 5
    (copy / "config.json").write_text(json.dumps(data))
    with pytest.raises(WeightsError, match=r"vision\.query should have shape \(5, 48\) .* got \(4, 48\)"):
        load_policy(copy)
    (copy / "config.json").write_text("{")
    with pytest.raises(WeightsError, match="not valid JSON"):
        load_policy(copy)


def test_saving_and_loading_is_lossless_after_the_first_time(weights: Path, tmp_path: Path):
    save_actor(tmp_path, load_actor(weights))
    for path in weights.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_a_tokenizer_that_is_missing_is_a_fault_of_the_weights(weights: Path, tmp_path: Path):
    save_actor(tmp_path, load_actor(weights))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match=r"tokenizer not found: .*copy the whole folder"):
        load_actor(tmp_path)


@pytest.mark.parametrize("kind", ["plain", "fused"])
def test_a_chunk_continues_what_the_robot_is_doing(weights: Path, kind: str):
    policy = load_policy(weights, num_steps=8, engine=EngineConfig(kind))
    assert isinstance(policy, ContinuingPolicy)
    alone = policy.infer(observe(), "wait").actions
    queued = alone + np.float32([0.05, -0.05, 0, 0, 0, 0, 0])
    same = policy.continue_chunk(observe(), "wait", queued[:0], 2, "guided")
    np.testing.assert_array_equal(same.actions, alone)  # nothing is queued
    continued = policy.continue_chunk(observe(step=APPEAR), "wait", queued, 2, "guided")
    assert (continued.start_step, continued.subtask) == (APPEAR, "wait")
    far, near = (np.abs(chunk[:2, :2] - queued[:2, :2]).mean() for chunk in (alone, continued.actions))
    assert near < 0.6 * far
    with pytest.raises(ValueError, match="trained to continue after at most 0 actions, and 2 are given"):
        policy.continue_chunk(observe(), "wait", queued, 2, "trained")
    wrong = dataclasses.replace(observe(), state=np.full(7, np.nan, np.float32))
    with pytest.raises(ObservationError, match="state"):
        policy.continue_chunk(wrong, "wait", queued, 2, "guided")


def test_actions_that_are_no_numbers_reach_no_robot(copy: Path):
    actor = load_actor(copy)
    with torch.no_grad():
        actor.model.action_expert.action_out_proj.bias[0] = np.nan
    for kind in ("plain", "fused"):
        with pytest.raises(FloatingPointError, match="not finite"):
            ActorPolicy(actor, engine=EngineConfig(kind)).infer(observe(), "wait")


def test_a_policy_in_bfloat16_is_near_the_one_in_float32(weights: Path):
    exact = load_policy(weights).infer(observe(), "touch the red square").actions
    for kind in ("plain", "fused"):
        low = load_policy(weights, engine=EngineConfig(kind, dtype="bfloat16"))
        error = np.abs(low.infer(observe(), "touch the red square").actions - exact).max()
        assert 0 < error < 0.05
