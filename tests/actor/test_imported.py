"""An imported checkpoint of a robot with two arms: trained on, with episodes that lack a camera, and served."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from actor.dataset import SamplingConfig
from actor.exchange.convert import export_actor, import_actor
from actor.normalize import load_stats
from actor.policy import load_policy
from actor.tiny.auxiliary import AuxiliaryConfig
from actor.train import train
from actor.training.config import ActorTrainConfig
from actor.weights import load_actor
from predimem.core.config import from_dict, load_config
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan
from predimem.core.types import Observation, ObservationError
from predimem.serving.config import ServeConfig
from predimem.serving.robot import RobotSpec, check_robot
from tests.actor import checkpoints as tiny
from tests.actor.checkpoints import ARMS, CAMERAS, RELATIVE
from tests.serving.support import ROOT, server_process

ROBOT = {"cameras": CAMERAS, "optional_cameras": CAMERAS[1:], "camera_shape": [48, 64]}
ROBOT |= {"state_dim": ARMS, "action_dim": ARMS, "relative_to_state": RELATIVE}
STEPS = 12


def write_episodes(folder: Path) -> Path:
    """Every third episode lacks the right wrist's camera."""
    for seed in range(1000, 1006):
        rng = np.random.default_rng(seed)
        names = CAMERAS[:2] if seed % 3 == 0 else CAMERAS
        cameras = {name: (48, 64) for name in names}
        with EpisodeWriter(episode_path(folder, "TwoArms", seed), "mine", "TwoArms", seed, 50.0, cameras) as writer:
            for _ in range(STEPS):
                state = rng.uniform(-1, 1, ARMS).astype(np.float32)
                images = {name: rng.integers(0, 255, (48, 64, 3), np.uint8) for name in names}
                writer.add(images, state, state + np.float32(0.1))
            spans = (SubtaskSpan(0, STEPS, tiny.SUBTASKS[0]),)
            writer.finish("Pick up the cup.", success=True, subtasks=spans, keyframes=[0])
    return folder


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    tokenizer = tiny.write_tokenizer(folder / "tokenizer.model")
    import_actor(tiny.write_openpi(folder / "from"), folder / "actor", ROBOT, tokenizer)
    return folder / "actor"


@pytest.fixture(scope="module")
def recipe(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> ActorTrainConfig:
    episodes = write_episodes(tmp_path_factory.mktemp("episodes"))
    return ActorTrainConfig(
        episodes=str(episodes),
        continue_from=str(imported),
        steps=2,
        val_every=4,
        validate_every=2,
        log_every=1,
        flow_samples=1,
        actor=dataclasses.replace(
            load_actor(imported).config, num_steps=2, tokenizer=str(imported / "tokenizer.model")
        ),
        sampling=SamplingConfig(3, 1, instruction_share=0.0),
        auxiliary=AuxiliaryConfig(pointing=0.0, position=0.0),
    )


def observe(names: tuple[str, ...] = CAMERAS) -> Observation:
    rng = np.random.default_rng(0)
    images = {name: rng.integers(0, 255, (48, 64, 3), np.uint8) for name in CAMERAS}
    return Observation(0, {name: images[name] for name in names}, rng.uniform(-1, 1, ARMS).astype(np.float32))


def test_trains_on_keeps_its_statistics_and_goes_out_again(recipe: ActorTrainConfig, imported: Path, tmp_path: Path):
    folder = train(recipe, out=tmp_path / "run", progress=False)
    assert (folder / "norm_stats.json").read_text() == (imported / "norm_stats.json").read_text()
    chunk = load_policy(folder).infer(observe(), tiny.SUBTASKS[0])
    assert chunk.actions.shape == (50, ARMS) and np.isfinite(chunk.actions).all()
    export_actor(folder, tmp_path / "openpi", "openpi")
    import_actor(tmp_path / "openpi", tmp_path / "again", ROBOT, folder / "tokenizer.model")
    again = load_policy(tmp_path / "again", num_steps=2).infer(observe(), tiny.SUBTASKS[0])
    np.testing.assert_array_equal(again.actions, chunk.actions)


def test_its_own_statistics_are_those_of_relative_actions(recipe: ActorTrainConfig, tmp_path: Path):
    own = dataclasses.replace(recipe, steps=1, stats_from="data")
    stats = load_stats(train(own, out=tmp_path / "run", progress=False) / "norm_stats.json")
    assert stats.actions.q01[6] > -1.1 and stats.actions.q99[6] < 1.2  # the gripper stays absolute
    assert stats.actions.q99[0] > 1.5  # a joint is told positions up to 1.1 from a state down to -1
    other = dataclasses.replace(recipe, actor=dataclasses.replace(recipe.actor, relative_to_state=()))
    with pytest.raises(ValueError, match=r"actor\.relative_to_state is \(\).*stats_from: data"):
        train(other, out=tmp_path / "other", progress=False)


def test_a_camera_that_is_missing_is_not_looked_at(imported: Path):
    policy = load_policy(imported, num_steps=2)
    both = policy.infer_batch([observe(), observe(CAMERAS[:2])], [tiny.SUBTASKS[0]] * 2)
    assert np.abs(both[0].actions - both[1].actions).max() > 1e-4
    black = observe()
    masked = policy.infer(observe(CAMERAS[:2]), tiny.SUBTASKS[0]).actions
    np.testing.assert_allclose(masked, both[1].actions, atol=1e-5)
    shown = dict(black.images) | {CAMERAS[2]: np.zeros((48, 64, 3), np.uint8)}
    seen = policy.infer(dataclasses.replace(black, images=shown), tiny.SUBTASKS[0]).actions
    assert np.abs(seen - masked).max() > 1e-4  # black is a sight, missing is none
    with pytest.raises(
        ObservationError, match=r"\(cam_left_wrist, cam_right_wrist may be missing\), got \['cam_left_wrist'\]"
    ):
        policy.infer(observe(CAMERAS[1:2]), tiny.SUBTASKS[0])


def test_bad_input_is_named(imported: Path):
    policy, good = load_policy(imported, num_steps=1), observe()
    bad = good.state.copy()
    bad[9] = np.nan
    with pytest.raises(ObservationError, match="state: expected finite numbers, got nan at entry 9"):
        policy.infer(dataclasses.replace(good, state=bad), tiny.SUBTASKS[0])
    with pytest.raises(ObservationError, match=r"subtask: the prompt of 'pick .* has \d+ tokens, the actor reads 200"):
        policy.infer(good, "pick up the cup " * 60)


def test_the_shipped_configs_describe_this_robot():
    recipe = load_config(ActorTrainConfig, ROOT / "configs" / "actor" / "pi05_dual_arm.yaml")
    actor = recipe.actor
    assert (len(actor.cameras), actor.action_dim, actor.model.action_horizon) == (3, ARMS, 50)
    assert actor.relative_to_state == RELATIVE and actor.openpi_exact and actor.long_prompts == "refuse"
    spec = RobotSpec(actor.cameras, (224, 224), ARMS, ARMS, actor.optional_cameras, actor.relative_to_state)
    serve = load_config(ServeConfig, ROOT / "configs" / "serve_dual_arm.yaml")
    check_robot(serve.robot, spec)
    zeros = from_dict(ServeConfig, {"robot": {"hold": [0.0] * ARMS, "hold_keeps": [6, 13]}})
    with pytest.raises(ValueError, match=r"action 0 is the absolute position .* a held robot would lunge"):
        check_robot(zeros.robot, spec)
    tiny_recipe = load_config(ActorTrainConfig, ROOT / "examples" / "dual_arm_tiny.yaml")
    assert tiny_recipe.actor.relative_to_state == RELATIVE and tiny_recipe.continue_from is None


@pytest.mark.slow
def test_is_served_in_a_process_and_stays_up(imported: Path, tmp_path: Path):
    """`predimem serve --config configs/serve_dual_arm.yaml --actor DIR`: held at its joints, then absolute actions."""
    config = tmp_path / "serve.yaml"
    config.write_text(f"extends: {ROOT}/configs/serve_dual_arm.yaml\nport: 0\nlimits: {{deadline_s: 60}}\n")
    command = ["-m", "predimem.cli", "serve", "--config", str(config), "--actor", str(imported)]
    with server_process(command, tmp_path / "log") as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        told = client.get_server_metadata()
        assert told["cameras"] == list(CAMERAS) and told["optional_cameras"] == list(CAMERAS[1:])
        message = {**observe(CAMERAS[:2]).images, "state": observe().state, "prompt": tiny.SUBTASKS[0]}
        reply, step = client.infer({**message, "episode_id": "a", "step": 0}), 0
        while not reply["actions_valid"]:
            np.testing.assert_array_equal(reply["actions"][0], message["state"])
            step += 1
            reply = client.infer({**message, "episode_id": "a", "step": step})
        assert reply["actions"].shape == (25, ARMS)
        step = reply["step"]
        expected = load_policy(imported).infer(dataclasses.replace(observe(CAMERAS[:2]), step=step), tiny.SUBTASKS[0])
        np.testing.assert_allclose(reply["actions"], expected.actions[:25], atol=1e-4)
        bad = {**message, "prompt": "pick up the cup " * 60, "episode_id": "b", "step": 0}
        with pytest.raises(RuntimeError, match="malformed: subtask: the prompt of"):
            for number in range(200):
                client.infer({**bad, "step": number})
        assert server.get("/healthz")[0] == 200
        assert client.infer({**message, "episode_id": "c", "step": 0})["actions"].shape == (25, ARMS)
