"""The actor that gets its state as a token, says where the target is, and opens or closes, nothing between."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from actor.locator import position_loss
from actor.pi05 import Pi05, Prompted
from actor.policy import ActorPolicy, load_policy
from actor.rounds import train_rounds
from actor.train import ActorTrainConfig, DaggerConfig, train
from predimem.types import Observation
from tests.actor.conftest import CAMERAS, make_episode, save_episodes
from tests.actor.test_train import CONFIG, MODEL

LOCATING = dataclasses.replace(MODEL, state_dim=7, locate=True)
RECIPE = dataclasses.replace(
    CONFIG, actor=dataclasses.replace(CONFIG.actor, model=LOCATING, gripper=6, after_grip=1), steps=4, val_every=6
)


def inputs(state: torch.Tensor, prompts: int = 2) -> Prompted:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(len(state), 2, 3, 128, 128, generator=generator)
    tokens = torch.arange(3, 3 + 5 * len(state) * prompts).reshape(-1, 5) % 300
    mask = torch.ones(tokens.shape, dtype=torch.bool)
    return Prompted(images, torch.ones(len(state), 2, dtype=torch.bool), tokens, mask, state)


def test_the_state_matters_and_each_row_keeps_its_own() -> None:
    torch.manual_seed(0)
    model = Pi05(LOCATING).eval()
    state = torch.randn(2, 7)
    noise = torch.randn(4, LOCATING.action_horizon, 7)
    both = model.sample(inputs(state), noise, 2)
    changed = model.sample(inputs(state + torch.tensor([[0.0], [1.0]])), noise, 2)
    torch.testing.assert_close(both[:2], changed[:2])
    assert (both[2:] - changed[2:]).abs().max() > 1e-3
    located = model.encode(inputs(state)).located_m
    assert located is not None and located.shape == (4, 3)


def test_a_missing_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="expects a state of 7 numbers, got None"):
        Pi05(LOCATING).encode(dataclasses.replace(inputs(torch.zeros(1, 7)), state=None))
    with pytest.raises(ValueError, match="locate needs"):
        dataclasses.replace(MODEL, locate=True)


def test_the_position_loss_ignores_unknown_targets() -> None:
    located = torch.tensor([[0.5, 0.0, 0.1], [9.0, 9.0, 9.0]], requires_grad=True)
    target = torch.tensor([[0.5, 0.0, 0.1], [float("nan")] * 3])
    assert position_loss(located, target) == 0.0
    assert position_loss(located, target + 0.1) > 0.0
    position_loss(located, torch.full((2, 3), float("nan"))).backward()
    assert located.grad is not None and bool((located.grad == 0).all())


def test_the_gripper_is_open_or_closed_and_the_chunk_ends_after_it_changes(episodes: Path, tmp_path: Path) -> None:
    folder = train(RECIPE, episodes=episodes, out=tmp_path, progress=False)
    policy = load_policy(folder)
    episode = make_episode(1000)
    seen = Observation(3, {name: episode.images[name][3] for name in CAMERAS}, episode.state[3])
    actions = policy.infer(seen, "touch the red square").actions
    assert set(np.unique(actions[:, 6])) <= {-1.0, 1.0}
    gated = gate(policy, [0.3, -0.2, -0.9, -1.0])
    np.testing.assert_array_equal(gated[:, 6], [1.0, -1.0])
    assert len(gate(policy, [0.3, 0.2, 0.9, 1.0])) == 4


def gate(policy: ActorPolicy, gripper: list[float]) -> np.ndarray:
    chunk = np.zeros((len(gripper), 7), np.float32)
    chunk[:, 6] = gripper
    return policy._gated(chunk)


def rounds_config(episodes: Path, out: Path) -> ActorTrainConfig:
    return dataclasses.replace(
        RECIPE, episodes=str(episodes), out=str(out), dagger=DaggerConfig(rounds=2, episodes=1, steps=2)
    )


def test_rounds_play_learn_and_go_on_after_an_interruption(episodes: Path, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def collect(weights: Path, out: Path, number: int) -> None:
        asked.append((weights.parent.name, number))
        if number == 2 and len(asked) == 2:
            raise KeyboardInterrupt
        save_episodes(out, range(60_000 + number, 60_001 + number))

    config = rounds_config(episodes, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_rounds(config, collect, progress=False)
    first = (tmp_path / "round0" / "weights" / "model.safetensors").read_bytes()
    last = train_rounds(config, collect, progress=False)
    assert asked == [("round0", 1), ("round1", 2), ("round0", 1), ("round1", 2)]
    assert last == tmp_path / "round2" / "weights"
    assert (tmp_path / "round0" / "weights" / "model.safetensors").read_bytes() == first
    assert (last / "model.safetensors").read_bytes() != first
    for name in ("norm_stats.json", "tokenizer.json"):
        assert (last / name).read_text() == (tmp_path / "round0" / "weights" / name).read_text()
    summary = (tmp_path / "round2" / "summary.json").read_text()
    assert '"training_episodes": 11' in summary  # 12 and 2 more, of which every sixth validates
