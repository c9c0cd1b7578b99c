"""What makes a cluster safe, without Ray: who owns an episode, and what replicas show together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predimem.serving import wire
from predimem.serving.cluster.command import cluster_config
from predimem.serving.cluster.replica import with_own_log
from predimem.serving.cluster.shown import labelled
from predimem.serving.command import serve_config
from predimem.serving.config import ClusterConfig
from predimem.serving.engine import Engine
from predimem.serving.metrics import Metrics
from predimem.serving.sessions import Client
from tests.serving.support import ROOT, observe, settings, small_config, small_models


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """Two servers with one store, as replicas have it."""
    config = cluster_config(settings(small_config(state={"dir": str(tmp_path / "state"), "sync": False})))
    pair = Engine(config, small_models(planner=False)), Engine(config, small_models(planner=False))
    for engine in pair:
        engine.start()
    yield pair
    for engine in pair:
        engine.close()


def ask(engine: Engine, client: Client, step: int) -> dict[str, Any]:
    message = wire.pack(observe(7, episode_id="e", step=step))
    return wire.unpack(engine.handle(client, message, time.monotonic()), 1 << 20)


def act(engine: Engine, client: Client, step: int) -> dict[str, Any]:
    """Ask until a plan has come, which was stored before."""
    while not (reply := ask(engine, client, step))["subtask"]:
        step += 1
        time.sleep(0.01)
    return reply


def test_an_episode_that_moved_and_comes_back_is_read_anew(engines: tuple[Engine, Engine]) -> None:
    one, other = engines
    first = act(one, Client(), 0)
    moved = ask(other, Client(), first["step"] + 100)
    assert not first["resumed"] and moved["resumed"] and moved["subtask"] == "do it"
    moved = act(other, Client(), first["step"] + 101)
    assert len(one.sessions) == 1  # it still holds what it knew
    one.sessions.refresh("e")  # as a replica does for a connection that it does not know
    back = ask(one, Client(), moved["step"] + 100)
    assert back["resumed"] and back["plan_age_steps"] <= 100 + moved["plan_age_steps"]


def test_who_lost_an_episode_stores_nothing_and_ends_it(engines: tuple[Engine, Engine]) -> None:
    """Even where nobody tells it: its next plan does."""
    one, other = engines
    stale = Client()
    step = act(one, stale, 0)["step"]
    taken = step + 1000
    ask(other, Client(), taken)
    assert other.store is not None
    found = other.store.find("e")
    assert found is not None
    (session,) = one.sessions.all()
    until = time.monotonic() + 30
    while not session.closed and time.monotonic() < until:
        step += 1
        ask(one, stale, step)
        time.sleep(0.01)
    assert session.closed
    again = other.store.find("e")
    assert again is not None
    added = {plan.step for plan in again.plans} - {plan.step for plan in found.plans}
    assert all(plan_step >= taken for plan_step in added)


def test_metrics_of_replicas_carry_their_names() -> None:
    pages = {}
    for name, count in (("a", 1), ("b", 2)):
        metrics = Metrics()
        metrics.rejected.labels("busy").inc(count)
        metrics.reply.observe(0.004)
        pages[name] = metrics.page().decode()
    merged = labelled(pages).decode().splitlines()
    assert 'predimem_rejected_total{code="busy",replica="a"} 1.0' in merged
    assert 'predimem_rejected_total{code="busy",replica="b"} 2.0' in merged
    assert 'predimem_reply_seconds_bucket{le="0.005",replica="b"} 1.0' in merged
    assert merged.count("# TYPE predimem_reply_seconds histogram") == 1


def test_settings_of_a_cluster() -> None:
    shipped = serve_config(ROOT / "configs/serve_cluster.yaml", {"state.dir": "state"})
    assert shipped.cluster == ClusterConfig(address="local")
    assert cluster_config(shipped).state.journal == "rollback"
    with pytest.raises(ValueError, match="a cluster needs --state-dir"):
        cluster_config(settings(small_config()))
    with pytest.raises(ValueError, match=r"max_replicas \(2\) is less than replicas \(3\)"):
        settings(small_config(cluster={"replicas": 3, "max_replicas": 2}))


def test_each_replica_has_a_log_of_its_own_where_there_is_a_folder(tmp_path: Path) -> None:
    in_folder = cluster_config(settings(small_config(state={"dir": str(tmp_path)})))
    assert with_own_log(in_folder, "r1").s2_process.log_dir == str(tmp_path / "log" / "r1")
    database = cluster_config(settings(small_config(state={"store": "postgresql://user@host/database"})))
    assert with_own_log(database, "r1") == database
    chosen = settings(small_config(state={"dir": str(tmp_path)}, s2_process={"log_dir": "mine"}))
    assert with_own_log(chosen, "r1").s2_process.log_dir == "mine"
