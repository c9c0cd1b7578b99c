"""RoboMME's challenge protocol: a restatement of its client asks a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from predimem.serving import robomme
from predimem.serving.engine import Engine
from tests.serving.robomme import CHUNK, ROBOT, ChallengeClient, EchoPolicy, command, seen
from tests.serving.support import ServerProcess, server_process, settings, small_models
from tests.serving.test_page import fetch


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("serve")
    with server_process(command(state={"dir": str(folder / "state")}), folder / "log") as made:
        made.wait_ready()
        yield made


@pytest.fixture
def client(server: ServerProcess) -> ChallengeClient:
    return ChallengeClient(server.port)


def test_an_episode_without_a_video(client: ChallengeClient) -> None:
    """Steps are counted by the frames that come, and all rows of a chunk are the actor's."""
    assert client.metadata["server"] == "predimem"
    assert client.reset() == {"reset_finished": True}
    first = client.ask(seen([10], first=True))
    assert first["actions"].shape == (CHUNK, 8) and first["actions_valid"] == CHUNK
    np.testing.assert_allclose(first["actions"][:, 0], [0, 1, 2, 3])
    np.testing.assert_allclose(first["actions"][0, 1:6], [10, 5, 0.1, 0.04, 0.01], rtol=1e-6)
    second = client.ask(seen([11, 12, 13, 14], first=False))
    assert second["step"] == 4
    np.testing.assert_allclose(second["actions"][0, :3], [4, 14, 7])


def test_the_video_is_remembered(client: ChallengeClient) -> None:
    """A keyframe of the video, long out of the window, is still seen at the first step, under a step below 0."""
    client.reset()
    reply = client.ask(seen([10, 10, 200, 10, 10, 10, 10, 10, 10], first=True))
    assert (reply["step"], reply["memory_from_step"]) == (0, -8)
    assert reply["keyframe_steps"] == [-6] and reply["subtask"] == "keyframes [-6]"
    assert reply["actions"][0, 7] == 1
    later = client.ask(seen([10] * 4, first=False))
    assert later["subtask"] == "keyframes [-6]"


def test_the_page_shows_what_the_video_showed(server: ServerProcess, client: ChallengeClient) -> None:
    client.reset()
    client.ask(seen([10, 10, 200, 10, 10, 10, 10, 10, 10], first=True))
    session = json.loads(server.get("/page/live.json")[1])["overview"]["sessions"][-1]  # the newest
    episode = quote(session["id"], safe="")
    run = json.loads(server.get(f"/page/live/{episode}.json")[1])["episode"]["run"]
    assert fetch(server, f"/page/live/{episode}/{run}/-6/0.jpg")[0] == 200


def ended(server: ServerProcess) -> int:
    """How many stored episodes have ended."""
    return sum(past["outcome"] == "ended" for past in json.loads(server.get("/page/past.json")[1]))


def test_what_happens_while_a_chunk_is_carried_out_is_remembered(client: ChallengeClient) -> None:
    client.reset()
    client.ask(seen([10], first=True))
    client.ask(seen([10, 201, 10, 10], first=False))
    assert client.ask(seen([10] * 4, first=False))["subtask"] == "keyframes [2]"


def test_a_reset_forgets(server: ServerProcess, client: ChallengeClient) -> None:
    client.reset()
    client.ask(seen([200, 10, 10, 10], first=True))
    before = ended(server)
    client.reset()
    client.reset()
    assert ended(server) == before + 1 == server.metric('predimem_outcomes_total{outcome="ended"}')
    with pytest.raises(RuntimeError, match="order: no episode has begun: its first message has is_first_step"):
        client.ask(seen([10], first=False))
    assert client.ask(seen([10, 10, 10, 10], first=True))["keyframe_steps"] == []


def test_a_first_step_begins_anew_without_a_reset(client: ChallengeClient) -> None:
    client.reset()
    client.ask(seen([200, 10, 10, 10], first=True))
    reply = client.ask(seen([10, 10, 10], first=True))
    assert (reply["step"], reply["keyframe_steps"]) == (0, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_first_step": None}, "is_first_step: expected true or false, got nothing"),
        ({"task_goal": "put it down"}, "task_goal: expected a list of wordings of the task, at least one, got str"),
        ({"front_rgb_list": []}, "front_rgb_list: expected a list of 1 to 4000 frames, the newest last, got 0 of them"),
        ({"wrist_rgb_list": None}, "wrist_rgb_list: expected a list .* got nothing"),
        (
            {"joint_state_list": [np.zeros(7)] * 3},
            "expected lists of one length, .* front_rgb_list 1, .* joint_state_list 3",
        ),
        (
            {"front_rgb_list": [np.zeros((8, 8), np.uint8)]},
            r"front_rgb_list\[0\]: expected uint8 .* got uint8 \[8, 8\]",
        ),
        ({"joint_state_list": [np.zeros(6)]}, r"joint_state_list\[0\]: expected 7 finite numbers, got \[6\]"),
        ({"eef_state_list": [np.full(6, np.nan)]}, r"eef_state_list\[0\]: expected 6 finite numbers"),
    ],
)
def test_what_is_wrong_is_said(client: ChallengeClient, changes: dict[str, Any], message: str) -> None:
    client.reset()
    with pytest.raises(RuntimeError, match=f"malformed: {message}"):
        client.ask(seen([10], first=True, **changes))
    assert client.ask(seen([10], first=True))["actions_valid"] == CHUNK  # and nothing is lost


def test_models_of_another_robot_are_refused() -> None:
    with pytest.raises(ValueError, match=r"RoboMME: expected an actor with states of 12 numbers .* got 7 and 8"):
        robomme.check_models(replace(ROBOT, state_dim=7))
    with pytest.raises(ValueError, match="RoboMME has a front and a wrist camera"):
        robomme.check_models(replace(ROBOT, cameras=("a", "b", "c")))
    served = replace(small_models(planner=False), policy=EchoPolicy())
    with pytest.raises(ValueError, match="RoboMME: expected an actor"):
        Engine(settings({"protocol": "robomme", "robot": {"joints": [], "hold": [0.0, 0.0], "hold_keeps": []}}), served)
