"""S1 on another machine: a real websocket server in a process of its own, which is slow, fails, ends and comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from actor.remote import RemoteConfig, RemotePolicy, RemotePolicyError
from predimem.agent.config import AgentConfig
from predimem.core.interfaces import Policy
from predimem.core.types import Observation, ObservationError
from predimem.serving.config import ModelsConfig
from predimem.serving.engine import Engine
from predimem.serving.models import make_served
from predimem.serving.robot import RobotSpec, Served
from tests.serving.support import MEMORY, ROOT, ServerProcess, free_port, server_process, settings

OPTIONS = RemoteConfig(
    cameras={"front": "images.cam_high"},
    state={"joints": (1, 2)},
    image_size=28,
    channels_first=True,
    action_dim=4,
    patience_s=60.0,
    reply_s=1.0,
    pause_s=0.05,
    max_pause_s=0.2,
)


def observe(mark: int = 7) -> Observation:
    return Observation(3, {"front": np.full((48, 48, 3), mark, np.uint8)}, np.array([9, 5, 6], np.float32))


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    command = ["-m", "tests.actor.openpi_server", str(port)]
    with server_process(command, tmp_path_factory.mktemp("openpi") / "log") as process:
        yield process


def impatient(port: int) -> RemotePolicy:
    return RemotePolicy(f"ws://127.0.0.1:{port}", replace(OPTIONS, patience_s=0.0))


def test_asks_with_the_servers_names(server: ServerProcess, port: int):
    policy = RemotePolicy(f"ws://127.0.0.1:{port}", OPTIONS)
    assert isinstance(policy, Policy)
    chunk = policy.infer(observe(), "open it")
    assert (chunk.start_step, chunk.subtask, chunk.actions.shape, chunk.actions.dtype) == (
        3, "open it", (50, 4), np.float32
    )  # fmt: skip
    assert chunk.actions[2].tolist() == [2, 7, 5, len("open it")]
    assert policy.metadata["reset_pose"] == [0.0]
    policy.close()
    assert policy.infer(observe(8), "open it").actions[0, 1] == 8  # on a new connection


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (100, r"did not answer within .* reply_s 1\.0"),
        (101, r"refused the observation: KeyError: 'observation/wrist_image'; compare the names"),
        (102, r"should give `actions` \[H, 4\], it gave NoneType"),
        (103, "gave actions that are not finite numbers"),
    ],
)
def test_what_goes_wrong_is_said_and_does_not_last(server: ServerProcess, port: int, mark: int, why: str):
    policy, began_s = impatient(port), time.monotonic()
    with pytest.raises(RemotePolicyError, match=why):
        policy.infer(observe(mark), "open it")
    assert time.monotonic() - began_s < 3
    from dataclasses import replace

    policy.config = replace(policy.config, patience_s=60.0, reply_s=10.0)
    assert policy.infer(observe(), "open it").actions[0, 1] == 7


def test_a_server_of_another_kind_is_not_waited_for():
    """It says what it is when somebody connects; that does not change with time."""
    from openpi_client import msgpack_numpy
    from websockets.sync.server import ServerConnection, serve

    connected: list[None] = []

    def greet(connection: ServerConnection) -> None:
        connected.append(None)
        connection.send(msgpack_numpy.packb({"server": "predimem"}))
        connection.recv()

    with serve(greet, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        policy = RemotePolicy(f"ws://127.0.0.1:{server.socket.getsockname()[1]}", OPTIONS)
        with pytest.raises(RemotePolicyError, match="is a predimem server, which has a planner of its own"):
            policy.infer(observe(), "open it")
        server.shutdown()
        thread.join()
    assert len(connected) == 1


def test_a_key_that_is_not_there(tmp_path: Path):
    from dataclasses import replace

    with pytest.raises(ValueError, match=r"actor_options: api_key_file: there is no file .*key"):
        RemotePolicy("ws://127.0.0.1:1", replace(OPTIONS, api_key_file=str(tmp_path / "key")))


def test_an_observation_that_lacks_what_the_options_name():
    policy = RemotePolicy("ws://127.0.0.1:1", OPTIONS)
    with pytest.raises(ObservationError, match=r"name the camera 'front', the observation has \['other'\]"):
        policy.infer(Observation(0, {"other": np.zeros((8, 8, 3), np.uint8)}, np.zeros(3, np.float32)), "open it")
    with pytest.raises(ObservationError, match=r"joints has the entries \[1, 2\], the state 2 numbers"):
        policy.infer(Observation(0, observe().images, np.zeros(2, np.float32)), "open it")


def test_a_server_that_ends_and_comes_back(tmp_path: Path):
    """Killed under an open connection: asked with pauses that double, and answered once it is there again."""
    port = free_port()
    policy = RemotePolicy(f"ws://127.0.0.1:{port}", OPTIONS)
    command = ["-m", "tests.actor.openpi_server", str(port)]
    with server_process(command, tmp_path / "first"):
        policy.infer(observe(), "open it")
    quick = impatient(port)
    with pytest.raises(RemotePolicyError, match=r"cannot be reached .*is it running"):
        quick.infer(observe(), "open it")
    with pytest.raises(RemotePolicyError, match="is away; it is asked again in"):
        quick.infer(observe(), "open it")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    again = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        assert policy.infer(observe(9), "open it").actions[0, 1] == 9
    finally:
        again.send_signal(signal.SIGKILL)
        again.wait()


def test_pauses_double_up_to_the_longest(tmp_path: Path):
    """In simulated time, against a port where nobody listens."""
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 3))
        now[0] += seconds

    options = RemoteConfig(patience_s=10.0, pause_s=0.5, max_pause_s=3.0)
    policy = RemotePolicy(f"ws://127.0.0.1:{free_port()}", options, clock=lambda: now[0], sleep=sleep)
    with pytest.raises(RemotePolicyError, match="cannot be reached"):
        policy.infer(observe(), "open it")
    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_configs_name_a_server(tmp_path: Path):
    agent = AgentConfig("arena-planner", "ws://gpu:8000", actor_options={"image_size": None})
    assert agent.weights == ("arena-planner",)
    with pytest.raises(ValueError, match="actor_options: they are for a server"):
        AgentConfig("arena-planner", "arena-actor", actor_options={"image_size": None})
    with pytest.raises(ValueError, match="actor_options: cameras, camera_shape, state_dim, action_dim missing"):
        make_served(ModelsConfig(planner="instruction", actor="ws://gpu:8000"))
    with pytest.raises(ValueError, match=r"image_sizes.*image_size"):
        make_served(ModelsConfig(planner="instruction", actor="ws://gpu:8000", actor_options={"image_sizes": 3}))


def test_a_predimem_server_that_starts_before_its_s1(server: ServerProcess, port: int, tmp_path: Path):
    """It waits for one that is away, and says what is wrong with one that waiting does not change."""

    def engine(policy: RemotePolicy) -> Engine:
        config = settings({"robot": {"hold": [0] * 4, "hold_keeps": [], "example_prompt": "open it"}, "port": 0})
        return Engine(config, Served(RobotSpec(("front",), (48, 48), 3, 4), policy, None, MEMORY, {}))

    later = free_port()
    waiting = engine(impatient(later))
    starting = threading.Thread(target=waiting.start, daemon=True)
    starting.start()
    starting.join(1.0)
    assert starting.is_alive() and waiting.health() == (False, "warming up")
    with server_process(["-m", "tests.actor.openpi_server", str(later)], tmp_path / "log"):
        starting.join(60)
        assert waiting.health() == (True, "ok")
    waiting.close()
    wrong = engine(RemotePolicy(f"ws://127.0.0.1:{port}", replace(OPTIONS, patience_s=0.0, action_dim=9)))
    with pytest.raises(ValueError, match=r"the actor cannot be used: the S1 server .* `actions` \[H, 9\]"):
        wrong.start()
    wrong.close()


@pytest.mark.slow
def test_a_predimem_server_with_its_s1_elsewhere(server: ServerProcess, port: int, tmp_path: Path):
    """Robots get the other server's actions, an error at once where it fails, and actions again after that."""
    config = tmp_path / "serve.yaml"
    options = {"cameras": OPTIONS.cameras, "state": {"joints": [1, 2]}, "image_size": 28, "channels_first": True}
    options |= {"camera_shape": [48, 48], "state_dim": 3, "action_dim": 4, "reply_s": 10.0, "pause_s": 0.1}
    models = {"planner": "instruction", "actor": f"ws://127.0.0.1:{port}", "actor_options": options}
    robot = {"hold": [0, 0, 0, 0], "hold_keeps": [], "example_prompt": "open it"}
    agent = {"execute_steps": 1}
    config.write_text(json.dumps(
        {"port": 0, "models": models, "robot": robot, "agent": agent, "limits": {"deadline_s": 60}}
    ))  # fmt: skip
    command = ["-m", "predimem.cli", "serve", "--config", str(config)]
    with server_process(command, tmp_path / "log") as ours:
        client = WebsocketClientPolicy("127.0.0.1", ours.port)

        def ask(step: int, mark: int) -> dict:
            message = {"front": observe(mark).images["front"], "state": observe().state, "prompt": "open it"}
            return client.infer({**message, "episode_id": "a", "step": step})

        reply, step = ask(0, 7), 0
        while not reply["actions_valid"]:
            step += 1
            reply = ask(step, 7)
        assert reply["actions"][0].tolist() == [0, 7, 5, len("open it")]
        with pytest.raises(RuntimeError, match="deadline: the actor, on another machine, gave no actions"):
            ask(step + 1, 101)
        time.sleep(0.2)
        assert ask(step + 2, 9)["actions"][0, 1] == 9
