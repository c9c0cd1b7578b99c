"""The actor that gets its state as a token, says where the target is, and opens or closes, nothing between."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from actor.normalize import NormStats, Quantiles
from actor.pi05 import Pi05, Prompted
from actor.policy import ActorPolicy, load_policy
from actor.preprocess import Preprocessor
from actor.rounds import train_rounds
from actor.tiny.locator import NEAR_M, Locator, position_loss, sketch_loss
from actor.tokenizer import train_word_tokenizer
from actor.train import train
from actor.training.config import ActorTrainConfig, DaggerConfig
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.core.types import Observation
from tests.actor.conftest import CAMERAS, make_episode
from tests.actor.test_train import CONFIG, MODEL

LOCATING = dataclasses.replace(MODEL, state_dim=9, locate=True)
ACTOR = dataclasses.replace(CONFIG.actor, model=LOCATING, state_dim=9, gripper=6, after_grip=1, noise=0.3)
RECIPE = dataclasses.replace(CONFIG, actor=ACTOR, steps=4, val_every=6)
UPRIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def posed(seed: int) -> Episode:
    """An episode whose state is the pose of a gripper."""
    episode = make_episode(seed)
    state = np.concatenate([episode.state[:, :3], np.tile(np.float32(UPRIGHT), (len(episode), 1))], 1)
    return dataclasses.replace(episode, state=state)


def save_posed(root: Path, seeds: range) -> Path:
    for seed in seeds:
        save_episode(episode_path(root, "Squares", seed), posed(seed))
    return root


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_posed(tmp_path_factory.mktemp("posed"), range(1000, 1012))


def inputs(state: torch.Tensor, prompts: int = 2) -> Prompted:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(len(state), 2, 3, 128, 128, generator=generator)
    tokens = torch.arange(3, 3 + 5 * len(state) * prompts).reshape(-1, 5) % 300
    mask = torch.ones(tokens.shape, dtype=torch.bool)
    pose = torch.cat([state[:, :3], torch.tensor(UPRIGHT).expand(len(state), -1)], 1)
    return Prompted(images, torch.ones(len(state), 2, dtype=torch.bool), tokens, mask, state, pose)


def test_the_state_matters_and_each_row_keeps_its_own() -> None:
    torch.manual_seed(0)
    model = Pi05(LOCATING).eval()
    state = torch.randn(2, 9)
    noise = torch.randn(4, LOCATING.action_horizon, 7)
    both = model.sample(inputs(state), noise, 2)
    changed = model.sample(inputs(state + torch.tensor([[0.0], [1.0]])), noise, 2)
    torch.testing.assert_close(both[:2], changed[:2])
    assert (both[2:] - changed[2:]).abs().max() > 1e-3
    aim = model.encode(inputs(state)).aim
    assert aim is not None and aim.position_m.shape == (4, 3) and aim.sketch.shape == (4, 2, 7)


def test_padding_moves_no_aim() -> None:
    """A prompt is padded to the length of the longest one of its batch."""
    torch.manual_seed(0)
    model, given = Pi05(LOCATING).eval(), inputs(torch.randn(2, 9))
    padded = dataclasses.replace(
        given,
        tokens=torch.cat([given.tokens, torch.full((4, 20), 7)], 1),
        token_mask=torch.cat([given.token_mask, torch.zeros(4, 20, dtype=torch.bool)], 1),
    )
    alone, among_others = model.encode(given).aim, model.encode(padded).aim
    assert alone is not None and among_others is not None
    torch.testing.assert_close(among_others.position_m, alone.position_m, atol=1e-5, rtol=0)
    torch.testing.assert_close(among_others.sketch, alone.sketch, atol=1e-5, rtol=0)
    assert (alone.position_m[0] - alone.position_m[1]).abs().max() > 1e-3  # the words do matter


def test_the_pose_is_in_the_frame_of_the_robot_s_base() -> None:
    state = np.tile(np.float32([0.1, 0.2, 0.3, *UPRIGHT]), (2, 1))
    images, given = np.zeros((2, 2, 128, 128, 3), np.uint8), state.copy()
    poses = []
    for base_m in ((0.0, 0.0, 0.0), (-0.6, 0.5, 0.25)):
        config = dataclasses.replace(ACTOR, base_m=base_m)
        range_of = Quantiles(np.full(9, -1, np.float32), np.full(9, 1, np.float32))
        preprocess = Preprocessor(config, NormStats(range_of, range_of), train_word_tokenizer(["touch it"]))
        prompted = preprocess.inputs(images, given, ["touch it"] * 2)
        assert prompted.pose is not None and prompted.state is not None
        np.testing.assert_allclose(prompted.state, state, atol=1e-6)  # the policy's own state is in the world's frame
        poses.append(prompted.pose.numpy())
    np.testing.assert_array_equal(poses[0], state)
    np.testing.assert_allclose(poses[1], np.tile([0.7, -0.3, 0.05, *UPRIGHT], (2, 1)), atol=1e-6)
    np.testing.assert_array_equal(given, state)  # of the observation, and left as it was


def test_a_missing_state_is_an_error() -> None:
    with pytest.raises(ValueError, match="expects a state of 9 numbers, got None"):
        Pi05(LOCATING).encode(dataclasses.replace(inputs(torch.zeros(1, 9)), state=None))
    with pytest.raises(ValueError, match="needs the TCP's pose"):
        Pi05(LOCATING).encode(dataclasses.replace(inputs(torch.zeros(1, 9)), pose=None))
    with pytest.raises(ValueError, match="needs a state with the TCP's pose"):
        dataclasses.replace(ACTOR, state_dim=7, model=dataclasses.replace(LOCATING, state_dim=7))
    with pytest.raises(ValueError, match="locate needs"):
        dataclasses.replace(MODEL, locate=True)


def test_what_a_missing_camera_shows_does_not_move_the_target() -> None:
    torch.manual_seed(0)
    model = Pi05(LOCATING).eval()
    whole = inputs(torch.zeros(1, 9))
    lacking = dataclasses.replace(whole, image_mask=torch.tensor([[True, False]]))
    other = dataclasses.replace(lacking, images=torch.cat([whole.images[:, :1], -whole.images[:, 1:]], dim=1))
    aims = [model.encode(one).aim for one in (whole, lacking, other)]
    (there, without, still) = (aim.position_m for aim in aims if aim is not None)
    torch.testing.assert_close(without, still, atol=0, rtol=0)
    assert (there - without).abs().max() > 1e-6


def test_the_position_loss_ignores_unknown_targets() -> None:
    located = torch.tensor([[0.5, 0.0, 0.1], [9.0, 9.0, 9.0]], requires_grad=True)
    target = torch.tensor([[0.5, 0.0, 0.1], [float("nan")] * 3])
    assert position_loss(located, target) == 0.0
    assert position_loss(located, target + 0.1) > 0.0
    position_loss(located, torch.full((2, 3), float("nan"))).backward()
    assert located.grad is not None and bool((located.grad == 0).all())


def test_the_way_to_the_target_is_exact() -> None:
    """A gripper that is turned and moved sees the same target: the hint changes as the way to it does."""
    torch.manual_seed(0)
    locator = Locator(num_cameras=2, queries=2, width=8, expert_width=8, action_dim=7)
    hints: list[torch.Tensor] = []
    locator.embed.register_forward_hook(lambda module, given, out: hints.append(given[0]))
    rest = torch.randn(1, 2, 2, 8), torch.randn(1, 2, 16), torch.randn(16, 4), torch.randn(1, 8), torch.randn(1, 8)
    turned = torch.tensor([[0.5, 0.1, 0.2, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]])  # a quarter turn about z
    aim = locator(*rest, turned)
    way = aim.position_m[0] - turned[0, :3]
    expected = torch.cat([way / 0.2, (way / NEAR_M).tanh()])
    torch.testing.assert_close(hints[0][0, :6], expected)
    torch.testing.assert_close(hints[0][0, 6:9], torch.stack([way[1], -way[0], way[2]]) / 0.2)


def test_a_sketch_is_the_mean_of_each_half() -> None:
    actions = torch.arange(4.0)[None, :, None].expand(2, 4, 7)
    assert sketch_loss(torch.tensor([0.5, 2.5])[None, :, None].expand(2, 2, 7), actions) == 0.0
    assert sketch_loss(torch.zeros(2, 2, 7), actions) > 0.1


def test_the_gripper_is_open_or_closed_and_the_chunk_ends_after_it_changes(episodes: Path, tmp_path: Path) -> None:
    folder = train(RECIPE, episodes=episodes, out=tmp_path, progress=False)
    policy = load_policy(folder)
    episode = posed(1000)
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
        RECIPE,
        episodes=str(episodes),
        out=str(out),
        dagger=DaggerConfig(rounds=2, expert_episodes=1, episodes=1, steps=2),
    )


def test_rounds_play_learn_and_go_on_after_an_interruption(episodes: Path, tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def collect(weights: Path | None, out: Path, number: int) -> None:
        asked.append((weights.parent.name if weights else "expert", number))
        if number == 2 and len(asked) == 3:
            raise KeyboardInterrupt
        save_posed(out, range(60_000 + number, 60_001 + number))

    config = rounds_config(episodes, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_rounds(config, collect, progress=False)
    first = (tmp_path / "round0" / "weights" / "model.safetensors").read_bytes()
    last = train_rounds(config, collect, progress=False)
    assert asked == [
        ("expert", 0),
        ("round0", 1),
        ("round1", 2),
        ("round1", 2),
    ]  # finished rounds are not collected for
    assert last == tmp_path / "round2" / "weights"
    assert (tmp_path / "round0" / "weights" / "model.safetensors").read_bytes() == first
    assert (last / "model.safetensors").read_bytes() != first
    for name in ("norm_stats.json", "tokenizer.json"):
        assert (last / name).read_text() == (tmp_path / "round0" / "weights" / name).read_text()
    with pytest.raises(ValueError, match=r"round0 was trained with steps = .*, the config says 777"):
        train_rounds(dataclasses.replace(config, steps=777), collect, progress=False)
    kept = (last / "model.safetensors").read_bytes()
    (last / "model.safetensors").unlink()  # as where the export was interrupted
    assert train_rounds(config, collect, progress=False) == last
    assert (last / "model.safetensors").read_bytes() == kept
    assert len(asked) == 4  # nor is one whose training has begun: other episodes would not be those that it began with
    summary = (tmp_path / "round2" / "summary.json").read_text()
    assert json.loads(summary)["validation"]
    assert '"training_episodes": 12' in summary  # 12 and 3 more, of which every sixth validates
