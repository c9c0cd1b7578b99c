"""A robot's earlier episodes reach the memory that asks for them, over the store and the planner's own process."""

from __future__ import annotations

import time
from pathlib import Path

from openpi_client.websocket_client_policy import WebsocketClientPolicy

from tests.serving.support import observe, small_server


def subtask_after(client: WebsocketClientPolicy, episode: str, mark: int, wanted: str) -> str:
    """The subtask that the server comes to within half a minute, as soon as it is the one that is wanted."""
    step, until, told = 0, time.monotonic() + 30, ""
    while told != wanted and time.monotonic() < until:
        told = str(client.infer(observe(mark, episode_id=episode, step=step)).get("subtask"))
        step += 1
        time.sleep(0.01)
    return told


def test_what_a_robot_nominated_in_an_episode_is_there_in_its_next_one(tmp_path: Path) -> None:
    models = {"own_memory": "tests.serving.support:all_sessions"}
    with small_server(tmp_path, models, state={"dir": str(tmp_path / "state")}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        assert subtask_after(client, "arm/1", 210, "mark 210") == "mark 210"
        assert subtask_after(client, "arm/2", 7, "mark 7 after 210") == "mark 7 after 210"
        assert subtask_after(client, "other/1", 8, "mark 8") == "mark 8"
