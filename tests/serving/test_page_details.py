"""What the page tells about an episode: times, S2's answers, trajectory, latencies, why keyframes moved."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from predimem.core.types import Plan, Tick
from predimem.serving.page.recording import recording
from predimem.serving.watch import CHANGES, ROWS, SAID, TEXT, EpisodeWatch
from tests.serving.support import ServerProcess, observe, small_server
from tests.serving.test_page import ask, fetch

HZ = 8.0  # of the robot, whose rate should be 20 Hz
STEPS = 24


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("details")
    with small_server(folder, state={"dir": str(folder / "state"), "image_every_steps": 5}) as made:
        play(WebsocketClientPolicy("127.0.0.1", made.port))
        yield made


def play(client: WebsocketClientPolicy) -> None:
    """A slow robot; its frames 6 to 10 are nominated, and that of step 16 cannot be planned."""
    for step in range(STEPS):
        mark = 101 if step == 16 else 210 if 6 <= step <= 10 else 7
        state = np.array([step, step / 2, -1], np.float32)
        client.infer(observe(mark, episode_id="arm", step=step) | {"state": state})
        time.sleep(1 / HZ)


def wait_for_answer(server: ServerProcess) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (told := ask(server, "/page/live/arm.json")["episode"])["said"][-1]["step"] < STEPS - 1:
        assert time.monotonic() < end, told
        time.sleep(0.05)
    return told


def test_a_live_episode_says_when_it_began_how_fast_it_runs_and_what_s2_said(server: ServerProcess) -> None:
    told = wait_for_answer(server)
    assert time.time() - 600 < told["began_s"] < told["at_s"] < time.time()
    failed = [one for one in told["said"] if one["error"]]
    assert [one["step"] for one in failed] == [16] and "raised RuntimeError" in failed[0]["error"]
    nominating = next(one for one in told["said"] if one["nominated"])
    assert nominating["text"] == "{}" and nominating["subtask"] == "mark 210" and nominating["ms"] > 0
    assert nominating["at_s"] > told["began_s"]
    assert [step for step, _, _, used in told["answers"] if not used] == [16]


def test_a_live_episode_tells_why_its_keyframe_moved(server: ServerProcess) -> None:
    told = wait_for_answer(server)
    _, keyframe, before, nominations = told["clusters"][-1]
    assert [keyframe] == told["keyframes"] and {at for at, _ in nominations} <= set(range(6, 11))
    assert any(old and old != [new] for _, new, old, _ in told["clusters"]), "it moved"
    past = ask(server, "/page/past/arm.json")
    assert past["clusters"][-1][1:] == [keyframe, before, nominations] and past["own_memory"] is None


def test_the_trajectory_of_a_live_and_of_a_kept_episode(server: ServerProcess) -> None:
    run = wait_for_answer(server)["run"]
    live = ask(server, f"/page/live/arm/{run}/from/0")
    assert live["steps"] == list(range(STEPS)) and live["state"][6] == [6, 3, -1]
    assert live["action"][0] == [-1, 0] and live["action"][-1][1] == 7  # held until the first plan
    assert ask(server, f"/page/live/arm/{run}/from/20")["steps"] == [20, 21, 22, 23]
    assert fetch(server, "/page/live/arm/00000000/from/0")[0] == 404
    assert max(rate for rate in live["rate_hz"] if rate) < 0.9 * 20 and any(ms is not None for ms in live["s1_ms"])
    past = ask(server, "/page/past/arm.json")
    kept = ask(server, f"/page/past/{past['key']}/trajectory")
    assert past["trajectory"] and kept == live | {"every": 1} and past["end"] == STEPS - 1
    assert [step for step, _ in past["clock"]] == live["steps"]
    np.testing.assert_allclose([at_s for _, at_s in past["clock"]], live["at_s"], rtol=0, atol=0.01)
    assert fetch(server, "/page/past/99/trajectory")[0] == 404


def test_a_kept_episode_has_the_words_of_s2_and_its_latencies(server: ServerProcess) -> None:
    wait_for_answer(server)
    past = ask(server, "/page/past/arm.json")
    said = {answer[0]: words for answer, words in zip(past["answers"], past["said"], strict=True)}
    word = {None: None} | dict(enumerate(past["words"]))
    at_s, subtask, nominated, _, error = said[16]
    assert (
        "raised RuntimeError" in (word[error] or "")
        and word[subtask] is None
        and nominated == []
        and at_s > past["began_s"]
    )
    assert word[said[8][1]] == "mark 210" and word[said[8][3]] == "{}" and said[8][2]
    assert all(ms > 0 for _, _, ms, _ in past["answers"])
    assert "below its 20 Hz for" in past["slow"]


@pytest.mark.slow
@pytest.mark.needs("rerun")
def test_a_recording_can_be_downloaded(server: ServerProcess, tmp_path: Path) -> None:
    from tests.serving.test_rerun import read, verify

    wait_for_answer(server)
    status, headers, body = fetch(server, "/page/past/arm.rrd", timeout_s=150)
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream"), body[:500]
    out = tmp_path / "episode.rrd"
    out.write_bytes(body)
    verify(out)
    assert [row["Scalars:scalars"] for row in read(out, "/state")][6] == [6, 3, -1]
    assert len(read(out, "/actions")) == STEPS and len(read(out, "/latency/s1_ms")) > 3
    assert any("raised RuntimeError" in row["TextLog:text"][0] for row in read(out, "/planner/answer"))
    clock = [row["clock"] for row in read(out, "/state", index="clock")]
    assert len(clock) == STEPS and abs(clock[-1].timestamp() - time.time()) < 600
    assert fetch(server, "/page/past/nobody.rrd")[0] == 404


def test_without_the_extra_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)  # as where it is not installed
    told = recording(tmp_path, "arm", 20)
    assert told.status == 501 and b"pip install 'predimem[export]'" in told.body


def test_what_is_not_to_be_kept_is_not(tmp_path: Path) -> None:
    """Without trajectories, and in simulated time, where the clock on the wall says nothing about control."""
    state = {"dir": str(tmp_path / "state"), "trajectory": False}
    simulated = {"mode": "simulated", "s1_latency_steps": 0, "s2_latency_steps": 1}
    with small_server(tmp_path, state=state, time=simulated) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        for step in range(8):
            client.infer(observe(7, episode_id="arm", step=step))
            time.sleep(0.2)
        told = ask(server, "/page/live/arm.json")
        assert told["episode"]["slow"] is None and told["overview"]["sessions"][0]["slow"] is None
        assert len(ask(server, f"/page/live/arm/{told['episode']['run']}/from/0")["steps"]) == 8
        past = ask(server, "/page/past/arm.json")
        assert not past["trajectory"] and past["slow"] is None and len(past["clock"]) >= 1
        assert fetch(server, f"/page/past/{past['key']}/trajectory")[0] == 404


def test_a_slow_robot_is_told_while_it_plays_and_what_is_kept_is_bounded() -> None:
    watch = EpisodeWatch(control_hz=20)
    state = np.zeros(17, np.float32)
    for step in range(ROWS + 100):  # at once: far above 20 Hz
        watch.note(Tick(step, "go", 0, False, False), state, state[:7], nominations=((5 * step,),))
        watch.note_answer(Plan("e", step, "go", text="x" * 3 * TEXT), 0.1)
    assert watch.slowness() is None
    told, rows = watch.view(), watch.trajectory()
    assert rows is not None and len(rows) == ROWS and rows.steps[-1] == ROWS + 99
    assert len(told["clusters"]) == CHANGES and len(told["said"]) == SAID and len(told["said"][0]["text"]) == TEXT
    watch.begin()
    for step in range(6):
        watch.note(Tick(step, "go", 0, False, False, s1_latency_s=0.1), state, state[:7])
        time.sleep(0.25)
    assert "below its 20 Hz" in str(watch.slowness()) and watch.view()["slow"] == watch.slowness()


def test_the_same_trouble_is_told_once() -> None:
    """While there is no planner, each step would have the same answer."""
    watch = EpisodeWatch()
    for step in range(100):
        watch.note_answer(Plan("e", step, None, error="the planner is restarting"), 0.0)
    assert [one["step"] for one in watch.view()["said"]] == [0]
    watch.note_answer(Plan("e", 100, "go", text="{}"), 0.1)
    watch.note_answer(Plan("e", 101, None, error="the planner is restarting"), 0.0)
    assert [one["step"] for one in watch.view()["said"]] == [0, 100, 101]


def test_a_memory_of_ones_own_has_no_clusters_and_the_page_says_so(tmp_path: Path) -> None:
    models = {"own_memory": "tests.memory_bank.own_memories:Sound"}
    with small_server(tmp_path, models, state={"dir": str(tmp_path / "state")}) as server:
        client, step = WebsocketClientPolicy("127.0.0.1", server.port), 0
        while not ask(server, "/page/live.json")["overview"]["sessions"] or not told_keyframes(server):
            client.infer(observe(210, episode_id="arm", step=step))
            step += 1
            assert step < 1000
        told = ask(server, "/page/live/arm.json")["episode"]
        past = ask(server, "/page/past/arm.json")
        for one in (told, past):
            assert one["own_memory"] == "Sound" and one["clusters"] == []
        assert any(answer["nominated"] for answer in told["said"])


def told_keyframes(server: ServerProcess) -> bool:
    return bool(ask(server, "/page/live/arm.json")["episode"]["keyframes"])
