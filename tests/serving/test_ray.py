"""A cluster of two replicas on this machine, real ones, and openpi's client in front of it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from predimem.serving.config import StateConfig
from predimem.serving.store import open_state
from tests.memory_bank.store.postgres import running_server
from tests.processes import descendants, wait_until_ended
from tests.serving.support import ServerProcess, observe, server_process, small_config
from tests.serving.test_restart import mark_of

EPISODES = [f"robot-{k}" for k in range(8)]
KEY = "a key of sixteen+ characters"
AUTHORISED = {"Authorization": f"Api-Key {KEY}"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[ServerProcess]:
    (folder / "key").write_text(KEY)
    changes: dict[str, Any] = {
        "state": {"dir": str(folder / "state")},
        "cluster": {"address": "local", "replicas": 2, "cpus_per_replica": 0.5},
        "access": {"api_key_file": str(folder / "key")},
    }
    command = ["-m", "tests.serving.support", json.dumps([small_config(**changes), {}])]
    with server_process(command, folder / "gateway.log") as server:
        server.wait_ready(timeout_s=300)
        yield server
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0


def connect(server: ServerProcess) -> WebsocketClientPolicy:
    return WebsocketClientPolicy("127.0.0.1", server.port, api_key=KEY)


def status(server: ServerProcess) -> dict[str, Any]:
    return json.loads(server.get("/status.json", AUTHORISED)[1])


def places(server: ServerProcess) -> dict[str, dict[str, Any]]:
    """episode -> report of the replica that plays it."""
    reports = status(server)["replicas"]
    return {session["episode_id"]: report for report in reports for session in report["sessions"]}


def pids(server: ServerProcess) -> set[int]:
    return {report["pid"] for report in status(server)["replicas"]}


def wait_for(what: Callable[[], bool], timeout_s: float = 60.0) -> None:
    until = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


def wait_until_whole(server: ServerProcess) -> None:
    wait_for(lambda: server.get("/healthz") == (200, "ok\n"), 120)


def test_sessions_stay_at_their_replica(cluster: ServerProcess) -> None:
    """Robots on both replicas, each on one alone; the metadata and the replies are those of one server."""
    clients = {episode: connect(cluster) for episode in EPISODES}
    assert clients["robot-0"].get_server_metadata()["cameras"] == ["cam_a", "cam_b"]
    for step in range(20):
        for episode, client in clients.items():
            reply = client.infer(observe(mark_of(step), episode_id=episode, step=step))
            assert (reply["episode_id"], reply["step"], reply["resumed"]) == (episode, step, False)
    wait_for(lambda: len(places(cluster)) == len(EPISODES))
    reports = status(cluster)["replicas"]
    assert len(reports) == 2 and all(report["sessions"] for report in reports)
    assert sum(len(report["sessions"]) for report in reports) == len(EPISODES)


def test_no_key_no_entry(cluster: ServerProcess) -> None:
    assert cluster.get("/status.json")[0] == cluster.get("/metrics")[0] == 401
    assert cluster.get("/healthz") == (200, "ok\n")


def test_metrics_and_pages_of_all_replicas(cluster: ServerProcess) -> None:
    connect(cluster).infer(observe(7, episode_id="shown", step=0))
    page = cluster.get("/metrics", AUTHORISED)[1]
    replicas = {report["replica"] for report in status(cluster)["replicas"]}
    for replica in replicas:
        assert f'predimem_reply_seconds_count{{replica="{replica}"}}' in page
    assert "predimem_gateway_replicas 2.0" in page
    overview = json.loads(cluster.get("/page/live.json", AUTHORISED)[1])["overview"]
    assert overview["ready"] and "shown" in {session["id"] for session in overview["sessions"]}
    live = json.loads(cluster.get("/page/live/shown.json", AUTHORISED)[1])
    assert json.loads(cluster.get("/page/search.json?subtask=no+such+words", AUTHORISED)[1])["keyframes"] == []
    assert live["episode"]["id"] == "shown" and live["overview"]["server"]["cameras"] == ["cam_a", "cam_b"]


def test_a_replica_that_is_killed_loses_no_keyframe(cluster: ServerProcess, folder: Path) -> None:
    """kill -9 of the replica's process, three times in one episode; the same connection goes on, or a new one."""
    wait_until_whole(cluster)
    client, step = connect(cluster), 0
    known: set[int] = set()
    subtask_step, held = -1, set()  # steps whose images are lost with the window: the last one kept holds
    for kill in range(4):
        replies = play_on(client, step)
        first, last = replies[0], replies[-1]
        assert first["resumed"] == (kill > 0)
        assert known <= set(first["keyframe_steps"])
        if kill:
            assert first["subtask"].startswith("mark ") and first["actions_valid"] == 4
            assert first["step"] - first["plan_age_steps"] >= subtask_step
        known, step = set(last["keyframe_steps"]), last["step"] + 1
        subtask_step = last["step"] - last["plan_age_steps"]
        if kill < 3:
            held.add(last["step"])
            wait_for(lambda: "killed" in places(cluster))
            place = places(cluster)["killed"]
            os.kill(place["pid"], signal.SIGKILL)
            if kill == 1:
                client = connect(cluster)
            reply = client.infer(observe(mark_of(step), episode_id="killed", step=step))  # while it is gone
            assert reply["resumed"] and known <= set(reply["keyframe_steps"])
            wait_for(lambda gone=place["pid"]: gone not in pids(cluster))
            wait_until_whole(cluster)
    store = open_state(folder / "state", StateConfig(journal="rollback"))
    episode = store.find("killed")
    assert episode is not None and len(known) >= 3
    for keyframe in known - held:
        assert store.frame(episode.key, keyframe).images["cam_b"][0, 0, 0] == mark_of(keyframe)
    store.close()


def play_on(client: WebsocketClientPolicy, step: int) -> list[dict[str, Any]]:
    """One observation for each step from `step` on, for a second at least and until there is a subtask."""
    replies, until = [], time.monotonic() + 1.0
    while time.monotonic() < until or not replies[-1]["subtask"] or len(replies) < 20:
        replies.append(client.infer(observe(mark_of(step), episode_id="killed", step=step)))
        step += 1
        time.sleep(0.01)
    return replies


def test_a_robot_without_episode_ids_is_told_of_the_loss(cluster: ServerProcess) -> None:
    """Nothing on the disk can be found again for it, so it must not go on as if nothing had happened."""
    wait_until_whole(cluster)
    client = connect(cluster)
    begun = client.infer(observe(7))
    wait_for(lambda: begun["episode_id"] in places(cluster))
    os.kill(places(cluster)[begun["episode_id"]]["pid"], signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"order: the replica of this episode was lost; send reset: true"):
        for _ in range(3):
            client.infer(observe(7))
    with pytest.raises(RuntimeError, match="lost"):
        client.infer(observe(7))
    assert client.infer(observe(7, reset=True))["step"] == 0
    assert client.infer(observe(7))["step"] == 4


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Where the replicas share their memory: in a folder, or in a database and nothing else."""
    if request.param == "folder":
        yield {"dir": str(tmp_path / "state")}
        return
    with running_server() as address:
        yield {"store": address}


def test_sigterm_to_the_whole_process_group_is_no_error(tmp_path: Path, state: dict[str, str]) -> None:
    """As systemd and shells send it: to Ray's own processes, too. All of them are gone afterwards."""
    changes = {"state": state, "cluster": {"address": "local", "cpus_per_replica": 0.5}}
    command = ["-m", "tests.serving.support", json.dumps([small_config(**changes), {}])]
    with server_process(command, tmp_path / "gateway.log") as server:
        server.wait_ready(timeout_s=300)
        WebsocketClientPolicy("127.0.0.1", server.port).infer(observe(7, episode_id="e", step=0))
        below = descendants(server.process.pid)
        assert len(below) > 4  # Ray's servers, a replica and its planner
        os.killpg(server.process.pid, signal.SIGTERM)
        assert server.process.wait(120) == 0 and server.event("stopped")
        wait_until_ended(below, 30)
        said = [line for line in server.faults() if "ServeController" not in line]  # Serve kills its own at its end
        assert not [
            line for line in said if re.search(r"error|fail|Traceback|has died|Terminated", line, re.IGNORECASE)
        ]
