"""Episodes that outlive their server: `kill -9` at any moment loses no keyframe and no subtask."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from memory_bank.store import open_store
from predimem.serving.config import StateConfig
from predimem.serving.store import open_state
from tests.memory_bank.store.conftest import database, postgres  # noqa: F401
from tests.processes import wait_until_ended
from tests.serving.support import free_port, observe, planner_pid, small_server

MARK_EVERY = 7  # steps; the planner nominates these images


def mark_of(step: int) -> int:
    return 200 + step // MARK_EVERY % 50 if step % MARK_EVERY == 0 else 7


def play(client: WebsocketClientPolicy, step: int, seconds: float) -> list[dict[str, Any]]:
    """Replies to one observation for each step, from `step` on; at least until there is a subtask."""
    replies, end = [], time.monotonic() + seconds
    while time.monotonic() < end or not replies or not replies[-1]["subtask"]:
        replies.append(client.infer(observe(mark_of(step), episode_id="robot/1", step=step)))
        step += 1
        time.sleep(0.01)
    return replies


def cycles(folder: Path, count: int) -> int:
    """Kill a server `count` times while it plays one episode; the keyframes at the end."""
    rng, port, state = np.random.default_rng(0), free_port(), folder / "state"
    step, known, subtask_step = 0, set(), -1
    held = set()  # steps whose images were lost with the window: the last one that was kept holds
    for cycle in range(count + 1):
        with small_server(folder, port=port, state={"dir": str(state)}) as server:
            client = WebsocketClientPolicy("127.0.0.1", port)
            replies = play(client, step, 0.5 + rng.random())
            first, last = replies[0], replies[-1]
            assert first["resumed"] == (cycle > 0)
            assert known <= set(first["keyframe_steps"])
            if cycle:
                assert first["subtask"].startswith("mark ") and first["actions_valid"] == 4
                assert first["step"] - first["plan_age_steps"] >= subtask_step
            known = set(last["keyframe_steps"])
            if last["plan_age_steps"] is not None:
                subtask_step = last["step"] - last["plan_age_steps"]
            step = last["step"] + 1
            held.add(last["step"])
            child = planner_pid(server)
            server.kill()
            wait_until_ended([child])
    store = open_state(state, StateConfig())
    episode = store.find("robot/1")
    assert episode is not None
    for keyframe in known - held:
        assert store.frame(episode.key, keyframe).images["cam_b"][0, 0, 0] == mark_of(keyframe)
    store.close()
    return len(known)


@pytest.mark.slow
def test_three_kills(tmp_path: Path) -> None:
    assert cycles(tmp_path, 3) >= 3


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    assert cycles(tmp_path, 20) >= 20


def test_a_restart_without_steps_goes_on_counting(tmp_path: Path) -> None:
    """A client that counts nothing, and a task that another prompt would contradict."""
    state = {"dir": str(tmp_path / "state")}
    with small_server(tmp_path, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        while (reply := client.infer(observe(210, episode_id="a")))["keyframe_steps"] == []:
            time.sleep(0.02)
        keyframe = reply["keyframe_steps"][0]
        while (planned := reply["step"] - reply["plan_age_steps"]) < keyframe + 100:  # far from the last image
            reply = client.infer(observe(7, episode_id="a"))
            time.sleep(0.02)
        server.kill()
    with small_server(tmp_path, state=state) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        with pytest.raises(RuntimeError, match="another prompt"):
            client.infer(observe(210, episode_id="a", prompt="do that"))
        with pytest.raises(RuntimeError, match="step 5 after step"):
            client.infer(observe(210, episode_id="a", step=5))
        again = client.infer(observe(210, episode_id="a", prompt=None))
        assert again["resumed"] and again["step"] > planned
        assert again["keyframe_steps"][0] == reply["keyframe_steps"][0] and again["subtask"] == "mark 7"
        anew = client.infer(observe(7, episode_id="a", prompt="do that", reset=True))
        assert (anew["resumed"], anew["keyframe_steps"], anew["subtask"]) == (False, [], "")


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_restart_with_a_database(tmp_path: Path, database: str) -> None:  # noqa: F811
    """As `predimem serve --store postgresql://...`: no folder, and another server goes on with the episode."""
    names = {"episode_id": "arm/1", "robot_id": "left-arm", "session_id": "monday"}
    with small_server(tmp_path, state={"store": database}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        while (reply := client.infer(observe(210, **names)))["keyframe_steps"] == []:
            time.sleep(0.02)
        server.kill()
    with small_server(tmp_path, state={"store": database}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        again = client.infer(observe(7, **names))
        assert again["resumed"] and again["keyframe_steps"][0] == reply["keyframe_steps"][0]
        assert again["subtask"] == "mark 210"
        [listed] = json.loads(server.get("/page/past.json")[1])
        assert (listed["episode_id"], listed["robot"], listed["session"]) == ("arm/1", "left-arm", "monday")
    store = open_store(database)
    episode = store.find("arm/1")
    assert episode is not None and (episode.robot, episode.session) == ("left-arm", "monday")
    assert store.frame(episode.key, reply["keyframe_steps"][0]).images["cam_b"][0, 0, 0] == 210
    store.close()
