"""What a robot is told was kept before, and belongs to the episode that it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_bank.store import StoreFault
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.refusal import Refusal
from predimem.serving.sessions import Client
from tests.serving.support import observe, settings, small_config, small_models


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """With a planner that nominates each image of value 200 or more, and a folder for what is kept."""
    made = Engine(settings(small_config(state={"dir": str(tmp_path / "state"), "sync": False})), small_models())
    made.start()
    yield made
    made.close()


def ask(engine: Engine, mark: int, **fields: Any) -> dict[str, Any]:
    message = wire.pack(observe(mark, episode_id="a", **fields))
    return wire.unpack(engine.handle(Client(), message, time.monotonic()), 1 << 20)


def ask_until(
    engine: Engine, mark: int, step: int, done: Callable[[dict[str, Any]], bool], **fields: Any
) -> dict[str, Any]:
    end = time.monotonic() + 60
    while not done(reply := ask(engine, mark, step=step, **fields)):
        assert time.monotonic() < end, reply
        step += 1
        time.sleep(0.01)
    return reply


def test_a_plan_that_cannot_be_kept_is_not_used(engine: Engine, tmp_path: Path) -> None:
    """Neither its subtask nor its keyframes, until it can."""
    in_the_way = tmp_path / "state" / "pictures"
    in_the_way.write_text("not a folder")
    replies: list[dict[str, Any]] = []
    ask_until(engine, 210, 0, lambda reply: replies.append(reply) or len([r for r in replies if r["plan_error"]]) > 3)
    assert {reply["plan_error"] for reply in replies} == {None, "the plan cannot be stored"}
    assert all((reply["subtask"], reply["keyframe_steps"]) == ("", []) for reply in replies)
    in_the_way.unlink()
    reply = ask_until(engine, 220, len(replies), lambda reply: reply["subtask"] == "mark 220")
    assert engine.store is not None
    found = engine.store.find("a")
    assert found is not None
    for step in reply["keyframe_steps"]:
        assert step in found.image_steps and engine.store.frame(found.key, step).images["cam_a"].min() >= 210


def test_an_episode_that_begins_again_under_its_name_gets_nothing_of_the_last_one(engine: Engine) -> None:
    """Though the step is the one that was answered last, and a plan for it is there."""
    last = ask_until(engine, 210, 0, lambda reply: len(reply["keyframe_steps"]) > 1)
    time.sleep(0.1)
    anew = ask(engine, 9, step=last["step"], reset=True)
    assert (anew["subtask"], anew["keyframe_steps"], anew["plan_age_steps"]) == ("", [], None)
    np.testing.assert_array_equal(anew["actions"], [[-1, 0]] * 4)
    reply = ask_until(engine, 9, last["step"] + 1, lambda reply: reply["subtask"] != "")
    assert reply["subtask"] == "mark 9" and reply["keyframe_steps"] == []


def test_a_reset_that_could_not_be_kept_is_made_up_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old episode stays as it is, whatever the client sends next."""
    ask_until(engine, 210, 0, lambda reply: len(reply["keyframe_steps"]) > 1)
    store = engine.store
    assert store is not None
    old = store.find("a")
    assert old is not None
    with monkeypatch.context() as full:
        full.setattr(store, "begin", _full_disk)
        with pytest.raises(Refusal, match="internal"):
            ask(engine, 9, step=0, reset=True, prompt="do that")
    message = observe(9, episode_id="a", step=0)
    del message["prompt"]  # it was sent once
    wire.unpack(engine.handle(Client(), wire.pack(message), time.monotonic()), 1 << 20)
    reply = ask_until(engine, 9, 0, lambda reply: reply["subtask"] == "mark 9", prompt="do that")
    found = store.find("a")
    assert found is not None and found.key != old.key and found.instruction == "do that"
    assert reply["keyframe_steps"] == [] and not reply["resumed"]


def test_a_request_that_comes_while_an_episode_begins_is_refused_and_does_no_harm(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(engine, 7, step=0)
    assert engine.store is not None
    begin, begins, go_on = engine.store.begin, threading.Event(), threading.Event()

    def slowly(*given: Any) -> int:
        begins.set()
        assert go_on.wait(60)
        return begin(*given)

    monkeypatch.setattr(engine.store, "begin", slowly)
    replies: list[dict[str, Any]] = []
    reset = threading.Thread(target=lambda: replies.append(ask(engine, 9, step=0, reset=True)))
    reset.start()
    assert begins.wait(60)
    with pytest.raises(Refusal, match="busy"):
        ask(engine, 9, step=1)
    go_on.set()
    reset.join()
    assert not replies[0]["resumed"] and not ask(engine, 9, step=1)["resumed"]


def _full_disk(*_: Any) -> int:
    raise StoreFault("the disk is full")
