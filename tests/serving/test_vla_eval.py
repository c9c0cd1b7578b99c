"""vla-eval's own client, model server and runner, with our adapter in between."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from tests.serving.support import ROOT, SIDE, ServerProcess, free_port, server_process, small_config, small_server

pytestmark = pytest.mark.needs("vla_eval")
FILE = ROOT / "predimem/serving/adapters/vla_eval_server.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Without a planner: the actor acts from the second observation on, at the latest."""
    with small_server(tmp_path_factory.mktemp("serve"), {"planner": False}) as made:
        yield made


def model_server(port: int, **options: Any) -> Any:
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.RemoteModelServer(port=port, **options)


@asynccontextmanager
async def harness(made: Any) -> AsyncIterator[Any]:
    """A connection of vla-eval to its model server."""
    from vla_eval.connection import Connection
    from vla_eval.model_servers.serve import serve_async

    async with anyio.create_task_group() as group:
        port = await group.start(partial(serve_async, made, "127.0.0.1", 0))
        async with Connection(f"ws://127.0.0.1:{port}", timeout=60.0) as connection:
            yield connection
        group.cancel_scope.cancel()


def observation(step: int, **changes: Any) -> dict[str, Any]:
    image = np.full((SIDE, SIDE, 3), step, np.uint8)
    images = {"cam_b": np.zeros_like(image), "cam_a": image}
    return {"images": images, "task_description": "do it", "states": np.zeros(3)} | changes


async def act(connection: Any, steps: range) -> list[list[float]]:
    acted = []
    for step in steps:
        acted.append(np.asarray((await connection.act(observation(step)))["actions"]).tolist())
    return acted


def run(play: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(play)


def test_episodes(server: ServerProcess) -> None:
    """Two episodes over one connection, and one that is played again under its own name."""
    made = model_server(server.port)
    assert made.get_action_spec()["actions"].dims == 2
    assert made.get_observation_params() == {"send_wrist_image": True, "send_state": True}

    async def play() -> list[list[list[float]]]:
        episodes = []
        async with harness(made) as connection:
            for eid in ("a", "b", "b"):
                await connection.start_episode({"task": {"name": "any"}, "recording": {"sid": "s 1", "eid": eid}})
                episodes.append(await act(connection, range(30)))
                await connection.end_episode({"metrics": {"success": eid == "a"}})
        return episodes

    for acted in run(play):
        assert acted[-1][0] == 29 and 26 <= acted[-1][1] <= 29
    begun = server.metric('predimem_episodes_total{how="begun"}')
    assert begun >= 3 and "predimem_rejected_total{" not in server.get("/metrics")[1]


def test_the_outcome_is_told(server: ServerProcess) -> None:
    made = model_server(server.port)

    async def play() -> None:
        async with harness(made) as connection:
            for success in (True, False):
                await connection.start_episode({"task": {"name": "any"}})
                await act(connection, range(3))
                await connection.end_episode({"metrics": {"success": success}})

    run(play)
    for outcome in ("success", "failure"):
        assert server.metric(f'predimem_outcomes_total{{outcome="{outcome}"}}') >= 1


def test_the_server_is_killed(tmp_path: Path) -> None:
    """The harness does not notice: no action is missing, and each is for its own step."""
    port = free_port()
    config = small_config(port=port, state={"dir": str(tmp_path / "state")})
    command = ["-m", "tests.serving.support", json.dumps([config, {"planner": False}])]
    stop, resumed = threading.Event(), list[float]()

    async def play() -> tuple[int, list[list[float]]]:
        """At which step the server was killed, and all actions."""
        with server_process(command, tmp_path / "log-0") as first:
            first.wait_ready()
            made = model_server(port, patience_s=50.0)
            async with harness(made) as connection:
                await connection.start_episode({"task": {"name": "any"}})
                acted = await act(connection, range(20))
                while acted[-1][0] == -1 and len(acted) < 2000:  # the first plan takes longer on a busy machine
                    acted += await act(connection, range(len(acted), len(acted) + 1))
                killed = len(acted)
                first.kill()
                again.start()
                acted += await act(connection, range(killed, killed + 20))
                await connection.end_episode({"metrics": {"success": True}})
                return killed, acted

    def restart() -> None:
        with server_process(command, tmp_path / "log-1") as second:
            stop.wait(60)
            resumed.append(second.metric('predimem_episodes_total{how="resumed"}'))

    again = threading.Thread(target=restart)
    killed, acted = run(play)
    stop.set()
    again.join()
    held = [k for k, (step, _) in enumerate(acted) if step == -1]  # until the first plan, before the kill
    assert all(int(step) == k for k, (step, _) in enumerate(acted) if k not in held)
    assert max(held, default=0) < killed - 1 and resumed == [1]


def test_errors_are_the_harness_s(server: ServerProcess) -> None:
    """What cannot be played is an error of the episode, which vla-eval counts in `num_errors`."""
    made = model_server(server.port)

    async def play(wrong: dict[str, Any]) -> None:
        async with harness(made) as connection:
            await connection.start_episode({"task": {"name": "any"}})
            await connection.act(wrong)

    for wrong, words in (
        (observation(0, images={"cam_a": np.zeros((SIDE, SIDE, 3), np.uint8)}), "the server wants the cameras"),
        ({k: v for k, v in observation(0).items() if k != "states"}, "the server wants a state"),
        (observation(0, task_description="<b>"), "prompt"),
    ):
        with pytest.raises(BaseExceptionGroup) as raised:
            run(partial(play, wrong))
        assert words in str(raised.value.exceptions[0])


def test_patience_ends(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}) as server:
        made = model_server(server.port, patience_s=0.5)
        server.kill()

    async def play() -> None:
        async with harness(made) as connection:
            await connection.start_episode({"task": {"name": "any"}})
            await connection.act(observation(0))

    with pytest.raises(BaseExceptionGroup) as raised:
        run(play)
    assert "no answer within 0.5 s" in str(raised.value.exceptions[0])
