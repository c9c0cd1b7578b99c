"""Robots that are told deltas and robots that are told joint positions: both are held still until there is a plan."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from actor.gemma import GemmaConfig
from actor.normalize import NormStats, Quantiles
from actor.pi05 import Pi05, Pi05Config
from actor.policy import load_policy
from actor.tiny.conv_stem import ConvStemConfig
from actor.tokenizer import train_word_tokenizer
from actor.weights import Actor, ActorConfig, save_actor
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.hold import Hold
from predimem.serving.robot import RobotConfig, RobotSpec, Served, check_robot
from predimem.serving.sessions import Client
from tests.serving.support import CAMERAS, MEMORY, SIDE, MarkPlanner, observe, server_process, settings

CHUNK = 6
ARMS = 14  # two arms of six joints and a gripper, as ALOHA's: actions and state are the same absolute positions
SIZES = {"depth": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 16}
MODEL = {
    "vision": "conv",
    "conv": ConvStemConfig(image_size=32, channels=(4, 8, 8), queries=2),
    "paligemma": GemmaConfig(width=32, mlp_dim=32, **SIZES),
    "action_expert": GemmaConfig(width=32, mlp_dim=32, **SIZES),
    "vocab_size": 300,
    "max_token_len": 32,
    "action_horizon": CHUNK,
}


def save_tiny(folder: Path, width: int) -> Path:
    """An actor that was never trained, with as many actions as its state has numbers."""
    torch.manual_seed(0)
    model = Pi05Config(**MODEL, action_dim=width)
    config = ActorConfig(model, CAMERAS, (SIDE, SIDE), width, width, num_steps=1)
    range_of = Quantiles(np.full(width, -1, np.float32), np.full(width, 1, np.float32))
    tokenizer = train_word_tokenizer(["do it", "mark 7"])
    save_actor(folder, Actor(config, Pi05(model), NormStats(range_of, range_of), tokenizer))
    return folder


MakeEngine = Callable[..., Engine]


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[MakeEngine]:
    """An engine with a tiny actor, and a planner that takes its time."""
    made: list[Engine] = []

    def make(width: int, robot: dict[str, Any], planner_s: float = 1.0, **changes: Any) -> Engine:
        config = settings({"robot": {"example_prompt": "do it", **robot}, "limits": {"deadline_s": 60.0}, **changes})
        policy = load_policy(save_tiny(tmp_path / "actor", width))
        spec = RobotSpec(CAMERAS, (SIDE, SIDE), width, width)
        made.append(Engine(config, Served(spec, policy, partial(MarkPlanner, planner_s), MEMORY)))
        made[-1].start()
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def ask(engine: Engine, client: Client, state: np.ndarray, **fields: Any) -> dict[str, Any]:
    message = observe(7, episode_id="a", **fields) | {"state": state.astype(np.float32)}
    return wire.unpack(engine.handle(client, wire.pack(message), time.monotonic()), 1 << 20)


def test_seven_deltas_are_held_with_zeros(make_engine: MakeEngine) -> None:
    engine, client, state = make_engine(7, {}), Client(), np.linspace(0.1, 0.7, 7)
    reply = ask(engine, client, state, step=0)
    assert reply["actions_valid"] == 0 and reply["actions"].tolist() == [[0, 0, 0, 0, 0, 0, 1]] * 4
    while not reply["actions_valid"]:
        reply = ask(engine, client, state, step=reply["step"] + 1)
        time.sleep(0.01)
    assert reply["actions"].shape == (4, 7) and np.abs(reply["actions"]).max() > 0


def test_a_hand_that_does_not_get_on_is_sent_home(make_engine: MakeEngine) -> None:
    homing = {"after_steps": {"mark *": 5}, "opens": ["mark *"]}
    engine, client = make_engine(7, {}, planner_s=0.0, agent={"homing": homing}), Client()
    home, away = np.zeros(7), np.array([0.3, 0, -0.1, 0, 0, 0.5, 0])
    ask(engine, client, home, step=0)
    step, reply = 0, {"actions_valid": 0}
    while not reply["actions_valid"]:
        step += 1
        reply = ask(engine, client, away, step=step)
        time.sleep(0.01)
    replies = [ask(engine, client, away, step=later) for later in range(step + 1, step + 20)]
    opening = next(i for i, one in enumerate(replies) if one["actions"][0].tolist() == [0, 0, 0, 0, 0, 0, 1])
    assert replies[opening]["actions_valid"] == 1  # what comes then depends on where the hand is then
    np.testing.assert_allclose(replies[opening + 4]["actions"][0], [-1, 0, 1, 0, 0, -1, 1], atol=1e-6)
    for wrong, why in ((6, "7 entries, got 6"), (5, "a rotation as rpy, 6 numbers, got 5")):
        with pytest.raises(ValueError, match=f"agent: homing: .*{why}"):
            make_engine(wrong, {"hold": [0.0] * wrong, "hold_keeps": []}, agent={"homing": homing})
    with pytest.raises(ValueError, match="this robot's are absolute joint positions"):
        make_engine(7, {"joints": list(range(7))}, agent={"homing": homing})


def test_fourteen_absolute_joints_are_held_where_they_are(make_engine: MakeEngine) -> None:
    robot = {"joints": list(range(ARMS)), "action_horizon": CHUNK + 2}
    engine, client = make_engine(ARMS, robot), Client()
    start = np.linspace(-1.5, 1.5, ARMS).astype(np.float32)
    reply = ask(engine, client, start, step=0)
    assert reply["actions_valid"] == 0
    np.testing.assert_array_equal(reply["actions"], [start] * (CHUNK + 2))
    step = 0
    while not reply["actions_valid"]:  # an arm that sags is told where it was, not where it has sagged to
        np.testing.assert_array_equal(reply["actions"], [start] * (CHUNK + 2))
        step += 1
        reply = ask(engine, client, start - np.float32(0.001 * step), step=step)
        time.sleep(0.01)
    assert step > 0 and reply["actions_valid"] == CHUNK and not np.allclose(reply["actions"][0], start)
    np.testing.assert_array_equal(reply["actions"][CHUNK:], [reply["actions"][CHUNK - 1]] * 2)
    elsewhere = start[::-1].copy()
    again = ask(engine, client, elsewhere, step=0, reset=True)
    np.testing.assert_array_equal(again["actions"], [elsewhere] * (CHUNK + 2))


def test_a_gripper_beside_joints_is_held_as_the_config_says() -> None:
    robot = RobotConfig(hold=(9, 9, 0.5), hold_keeps=(2,), joints=(3, 1, None))
    check_robot(robot, RobotSpec(CAMERAS, (SIDE, SIDE), 4, 3))
    hold = Hold(robot, 3)
    hold.see(np.array([0, 10, 20, 30], np.float32))
    assert hold(None).tolist() == [30, 10, 0.5]
    hold.see(np.array([0, 11, 21, 31], np.float32))
    assert hold(np.array([30, 10, 0.25], np.float32)).tolist() == [30, 10, 0.25]
    assert hold.after(np.array([1, 2, 0.75], np.float32)).tolist() == [1, 2, 0.75]
    hold.release()
    assert hold(np.array([1, 2, 0.75], np.float32)).tolist() == [31, 11, 0.75]


@pytest.mark.parametrize(
    ("robot", "why"),
    [
        ({}, "`robot: hold` has 7 numbers, and the actor gives 14 actions"),
        ({"joints": [0] * 7}, "has 7 entries, and the actor gives 14 actions"),
        ({"joints": [*range(13), 14]}, r"the state has the entries 0 to 13, got \[14\]"),
        ({"joints": [*range(13), -1]}, r"the state has the entries 0 to 13, got \[-1\]"),
        ({"joints": [*range(13), None]}, "`robot: hold` has 7 numbers"),
        ({"hold": [0.0] * 14, "hold_keeps": [14]}, "indices of the 14 actions"),
    ],
)
def test_a_config_for_another_robot_is_refused_at_start(robot: dict[str, Any], why: str, tmp_path: Path) -> None:
    config = settings({"robot": robot})
    policy = load_policy(save_tiny(tmp_path, ARMS))
    with pytest.raises(ValueError, match=why):
        Engine(config, Served(RobotSpec(CAMERAS, (SIDE, SIDE), ARMS, ARMS), policy, None, MEMORY))


@pytest.mark.slow
def test_openpis_broker_makes_no_lunge(tmp_path: Path) -> None:
    """The whole way, from `predimem serve --actor DIR`: the broker plays what it gets, valid or not."""
    config = tmp_path / "serve.yaml"
    robot = {"joints": list(range(ARMS)), "example_prompt": "do it"}
    config.write_text(json.dumps({"port": 0, "robot": robot, "limits": {"deadline_s": 120}}))
    command = ["-m", "predimem.cli", "serve", "--config", str(config), "--planner", "instruction"]
    command += ["--actor", str(save_tiny(tmp_path / "mine" / "actor", ARMS))]
    with server_process(command, tmp_path / "serve.log") as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        told = client.get_server_metadata()
        assert list(told["weights"]) == ["mine/actor"] and told["action_dim"] == ARMS
        broker, state = ActionChunkBroker(client, told["action_horizon"]), np.linspace(-1, 1, ARMS, dtype=np.float32)
        played = [broker.infer(observe(7) | {"state": state}) for _ in range(24)]
        held = [np.abs(one["actions"] - state).max() for one in played if one["actions_valid"] == 0]
        assert held and max(held) == 0.0
        assert played[-1]["actions_valid"] == 4 and np.abs(played[-1]["actions"] - state).max() > 0
