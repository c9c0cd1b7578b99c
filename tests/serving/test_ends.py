"""Episodes that their robots end, with an outcome or without, and those that nobody plays any more."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from memory_bank.store.sqlite import FILE
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.page.live import overview
from predimem.serving.page.past import past_episode, past_episodes
from predimem.serving.refusal import Refusal
from predimem.serving.sessions import Client
from tests.serving.support import observe, settings, small_config, small_models, small_server

MakeEngine = Callable[..., Engine]


@pytest.fixture
def make_engine() -> Iterator[MakeEngine]:
    made: list[Engine] = []

    def make(folder: Path | None, **changes: Any) -> Engine:
        state = {"dir": None if folder is None else str(folder)}
        made.append(Engine(settings(small_config(state=state, **changes)), small_models(planner=False)))
        made[-1].start()
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def send(engine: Engine, client: Client, message: dict[str, Any]) -> dict[str, Any]:
    return wire.unpack(engine.handle(client, wire.pack(message), time.monotonic()), 1 << 20)


def end(engine: Engine, client: Client, **fields: Any) -> tuple[Any, ...]:
    reply = send(engine, client, {"done": True, **fields})
    assert reply["done"] is True
    return reply["episode_id"], reply["step"], reply["outcome"]


def refused(engine: Engine, client: Client, message: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as refusal:
        send(engine, client, message)
    return str(refusal.value)


def live(engine: Engine) -> list[str]:
    return [session["id"] for session in overview(engine)["sessions"]]


def outcomes(engine: Engine) -> dict[str, Any]:
    return {one["episode_id"]: one["outcome"] for one in json.loads(past_episodes(engine).body)}


@pytest.mark.parametrize("kept", [True, False])
def test_an_episode_that_is_done_moves_to_the_past(make_engine: MakeEngine, tmp_path: Path, kept: bool) -> None:
    engine, client = make_engine(tmp_path if kept else None), Client()
    for name in ("a", "b", "c"):
        send(engine, client, observe(episode_id=name, step=7))
    assert live(engine) == ["a", "b", "c"]
    assert end(engine, client, episode_id="a", success=True) == ("a", 7, "success")
    assert end(engine, client, episode_id="b", success=False) == ("b", 7, "failure")
    assert end(engine, client, episode_id="c") == ("c", 7, "ended")
    assert live(engine) == [] and len(engine.sessions) == 0
    count = engine.metrics.registry.get_sample_value
    assert count("predimem_outcomes_total", {"outcome": "success"}) == 1
    if kept:
        assert outcomes(engine) == {"a": "success", "b": "failure", "c": "ended"}
        assert json.loads(past_episode(engine, "b").body)["outcome"] == "failure"
    assert end(engine, client, episode_id="a", success=False) == ("a", 7, "success")  # asked again: as it was
    assert count("predimem_outcomes_total", {"outcome": "success"}) == 1
    assert "order: this episode has ended (success); send reset: true" in refused(
        engine, client, observe(episode_id="a", step=8)
    )
    assert send(engine, client, observe(episode_id="a", step=0, reset=True))["step"] == 0
    assert live(engine) == ["a"] and (not kept or outcomes(engine)["a"] is None)
    assert end(engine, client, episode_id="a", success=False) == ("a", 0, "failure")


def test_after_a_restart_the_end_is_known(make_engine: MakeEngine, tmp_path: Path) -> None:
    engine, client = make_engine(tmp_path), Client()
    for name in ("a", "b"):
        send(engine, client, observe(episode_id=name))
    end(engine, client, episode_id="a", success=True)
    engine.close()
    again, client = make_engine(tmp_path), Client()
    assert "this episode has ended (success)" in refused(again, client, observe(episode_id="a"))
    assert len(again.sessions) == 0
    assert end(again, client, episode_id="b", success=False)[2] == "failure"
    assert end(again, client, episode_id="a")[2] == "success"
    assert outcomes(again) == {"a": "success", "b": "failure"}
    assert "order: there is no such episode to end" in refused(again, client, {"done": True, "episode_id": "x"})


def test_an_end_that_the_store_could_not_keep_is_kept_when_the_robot_asks_again(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine, client = make_engine(tmp_path), Client()
    send(engine, client, observe(episode_id="a", step=7))

    def rename(old: str, new: str) -> None:
        with sqlite3.connect(tmp_path / FILE) as database:
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")

    rename("episodes", "away")
    done = {"done": True, "episode_id": "a", "success": True}
    assert "internal: a fault of the server" in refused(engine, client, done)
    rename("away", "episodes")
    assert end(engine, client, episode_id="a", success=False) == ("a", 7, "success")
    assert outcomes(engine) == {"a": "success"}
    count = engine.metrics.registry.get_sample_value
    assert count("predimem_outcomes_total", {"outcome": "success"}) == 1


def test_connections_without_names(make_engine: MakeEngine) -> None:
    engine, client, other = make_engine(None), Client(), Client()
    assert refused(engine, client, {"done": True}).startswith("order: there is no such episode")
    first = send(engine, client, observe())["episode_id"]
    assert end(engine, client, success=True) == (first, 0, "success")
    assert end(engine, client) == (first, 0, "success")
    second = send(engine, client, observe())["episode_id"]
    assert second != first and live(engine) == [second]
    send(engine, client, observe(reset=True))
    assert len(engine.sessions) == 1 and second not in live(engine)  # nobody can go on with the one before
    send(engine, other, observe(episode_id="named"))
    assert "which episode is done?" in refused(engine, other, {"done": True})


def test_another_connection_may_not_end_an_episode(make_engine: MakeEngine) -> None:
    engine, first, second = make_engine(None), Client(), Client()
    send(engine, first, observe(episode_id="a"))
    send(engine, second, observe(episode_id="a", step=4))
    assert refused(engine, first, {"done": True, "episode_id": "a"}).startswith("taken_over")
    assert live(engine) == ["a"] and end(engine, second, episode_id="a")[0] == "a"


def test_a_robot_that_left_is_not_live(make_engine: MakeEngine, tmp_path: Path) -> None:
    """Its episode stays in memory, for when it comes back, but not in the list of those that are played."""
    engine, client = make_engine(tmp_path, limits={"spare_s": 0.1}), Client()
    send(engine, client, observe(episode_id="a"))
    send(engine, client, observe(episode_id="b"))
    time.sleep(0.15)
    assert live(engine) == ["b"]  # its connection plays another one now
    engine.leave(client)
    assert live(engine) == [] and len(engine.sessions) == 2
    assert [one["live"] for one in json.loads(past_episodes(engine).body)] == [False, False]
    send(engine, Client(), observe(episode_id="a"))
    assert live(engine) == ["a"]


def test_over_the_wire(tmp_path: Path) -> None:
    with small_server(tmp_path, {"planner": False}, state={"dir": str(tmp_path / "state")}) as server:
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        client.infer(observe(episode_id="arm/1", step=3))
        reply = client.infer({"done": True, "success": True, "episode_id": "arm/1"})
        assert (reply["done"], reply["step"], reply["outcome"]) == (True, 3, "success")
        with pytest.raises(RuntimeError, match="this episode has ended"):
            client.infer(observe(episode_id="arm/1", step=4))
        assert json.loads(server.get("/page/live.json")[1])["overview"]["sessions"] == []
        assert json.loads(server.get("/page/past/arm%2F1.json")[1])["outcome"] == "success"
