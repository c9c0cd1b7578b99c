"""Sessions, steps and limits, without a network: the engine with small models."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from predimem.serving import wire
from predimem.serving.engine import Engine, status
from predimem.serving.refusal import Refusal
from predimem.serving.sessions import Client
from tests.serving.support import HORIZON, observe, settings, small_config, small_models

MakeEngine = Callable[..., Engine]


@pytest.fixture
def make_engine() -> Iterator[MakeEngine]:
    """Engines without a planner: the task is the subtask, so that every reply is known."""
    made: list[Engine] = []

    def make(policy_s: float = 0.0, **changes: Any) -> Engine:
        made.append(Engine(settings(small_config(**changes)), small_models(planner=False, policy_s=policy_s)))
        made[-1].start()
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def ask(engine: Engine, client: Client, mark: int = 7, **fields: Any) -> dict[str, Any]:
    return wire.unpack(engine.handle(client, wire.pack(observe(mark, **fields)), time.monotonic()), 1 << 20)


def refused(engine: Engine, client: Client, **fields: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        ask(engine, client, **fields)
    return str(refusal.value)


def act(engine: Engine, client: Client, mark: int = 7, **fields: Any) -> dict[str, Any]:
    """Ask until there is a plan: the first reply of an episode may come before it."""
    while True:
        reply = ask(engine, client, mark, **fields)
        if reply["actions_valid"]:
            return reply
        fields |= {"reset": False, "step": reply["step"] + 1}
        time.sleep(0.01)


def test_a_reply(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    first = ask(engine, client, 9, episode_id="a")
    np.testing.assert_array_equal(first["actions"], [[-1, 0]] * 4)  # held: the planner has not answered yet
    assert (first["actions_valid"], first["subtask"], first["plan_age_steps"]) == (0, "", None)
    reply = act(engine, client, 9, episode_id="a", step=10)
    step = reply["step"]
    assert reply["actions"].dtype == np.float32
    np.testing.assert_array_equal(reply["actions"], [[step + k, 9] for k in range(4)])
    assert (reply["subtask"], reply["actions_valid"], reply["episode_id"]) == ("do it", 4, "a")
    assert reply["plan_age_s"] == pytest.approx(reply["plan_age_steps"] / 20)
    assert reply["server_timing"]["infer_ms"] >= 0


def test_one_request_for_each_control_step_executes_a_chunk(make_engine: MakeEngine) -> None:
    """Between two questions to S1 the replies go on with its chunk, whatever the images show meanwhile."""
    engine, client = make_engine(), Client()
    start = act(engine, client, 1, episode_id="a", step=0)["step"]
    replies = [ask(engine, client, 1 + k, episode_id="a", step=start + k) for k in range(1, 6)]
    assert [reply["actions"][0].tolist() for reply in replies] == [
        *([start + k, 1] for k in range(1, 4)),
        [start + 4, 5],
        [start + 5, 5],
    ]


def test_steps_that_are_not_named(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    steps = [ask(engine, client, **fields)["step"] for fields in ({}, {}, {"executed": 2}, {"executed": 4}, {})]
    assert steps == [0, 4, 6, 10, 14]


def test_rows_beyond_the_chunk_hold(make_engine: MakeEngine) -> None:
    engine = make_engine(robot={"hold": [-1.0, 0.0], "hold_keeps": [1], "action_horizon": HORIZON + 2})
    reply = act(engine, Client(), 9, episode_id="a")
    assert reply["actions_valid"] == HORIZON
    np.testing.assert_array_equal(reply["actions"][HORIZON:], [[-1, 9]] * 2)


def test_asking_again_gives_the_same_reply(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    reply = act(engine, client, 3, episode_id="a")
    again = ask(engine, client, 200, episode_id="a", step=reply["step"])
    np.testing.assert_array_equal(again["actions"], reply["actions"])


def test_contradictions_are_refused(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    ask(engine, client, episode_id="a", step=5)
    assert refused(engine, client, episode_id="a", step=4).startswith("order: step 4 after step 5")
    assert "another prompt" in refused(engine, client, episode_id="a", step=6, prompt="do that")
    assert ask(engine, client, episode_id="a", step=4, reset=True)["step"] == 4
    assert "needs a prompt" in refused(engine, client, episode_id="b", prompt=None)
    assert len(engine.sessions) == 1  # nothing is left of the one that was refused
    assert engine.metrics.registry.get_sample_value("predimem_rejected_total", {"code": "order"}) == 2


def test_a_first_request_that_was_refused_is_sent_again(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    for name in (None, "a"):
        assert "send it as `prompt`" in refused(engine, client, episode_id=name, prompt=None, task="do it")
        assert ask(engine, client, episode_id=name)["step"] == 0


def test_a_planner_without_plans_is_said() -> None:
    """Beyond `plan_every_steps` and `no_plan_s`, here 10 steps and 2 s; images of value 101 cannot be planned."""
    config = settings(small_config(agent={"plan_every_steps": 10}, limits={"no_plan_s": 2.0}))
    engine, client, step = Engine(config, small_models()), Client(), 0
    engine.start()

    def ask_until(mark: int, done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        nonlocal step
        end = time.monotonic() + 60
        while not done(reply := ask(engine, client, mark, episode_id="a", step=step)):
            assert time.monotonic() < end, reply
            step += 5
            time.sleep(0.02)
        return reply

    try:
        ask_until(7, lambda reply: reply["subtask"] == "mark 7")
        last = step  # plans of the image 7 may still arrive after it
        reply = ask_until(101, lambda reply: reply["planner"] != "ok")
        assert reply["planner"].startswith("no plan for ") and reply["subtask"] == "mark 7"
        assert 50 < int(reply["planner"].split()[3]) <= step - last
        assert ask_until(8, lambda reply: reply["subtask"] == "mark 8")["planner"] == "ok"
    finally:
        engine.close()


@pytest.mark.parametrize("steps", [range(1, 400, 4), range(0, 400, 4), range(3, 1200, 17)])
def test_clients_that_do_not_send_every_step_get_plans(make_engine: MakeEngine, steps: range) -> None:
    """None of these steps need be a multiple of `plan_every_steps`."""
    engine, client = make_engine(agent={"plan_every_steps": 10}), Client()
    ages = []
    for step in steps:
        ages.append(ask(engine, client, episode_id="a", step=step)["plan_age_steps"])
        time.sleep(0.002)
    planned = [age for age in ages if age is not None]
    assert len(planned) > 0.8 * len(ages) and np.median(planned) <= 10 + steps.step


def test_episodes_without_names(make_engine: MakeEngine) -> None:
    """A new one for each connection, each reset, each step 0 and each task."""
    engine, client = make_engine(), Client()
    names = [
        ask(engine, client, **fields)["episode_id"]
        for fields in ({}, {}, {"reset": True}, {}, {"prompt": "do that"}, {"prompt": None}, {"step": 0}, {"step": 0})
    ]
    assert [names.index(name) for name in names] == [0, 0, 2, 2, 4, 4, 6, 6]
    assert ask(engine, Client())["episode_id"] not in names


def test_another_connection_takes_an_episode_over(make_engine: MakeEngine) -> None:
    engine, first, second = make_engine(), Client(), Client()
    ask(engine, first, episode_id="a", step=3)
    assert ask(engine, second, episode_id="a")["step"] == 7  # its memory is there
    assert refused(engine, first, episode_id="a").startswith("taken_over")
    assert ask(engine, first, episode_id="a", reset=True)["step"] == 0
    assert refused(engine, second, episode_id="a").startswith("taken_over")


def test_sessions_are_bounded_and_expire(make_engine: MakeEngine) -> None:
    engine = make_engine(limits={"sessions": 2, "idle_s": 0.2, "spare_s": 0.05})
    clients = [Client() for _ in range(3)]
    ask(engine, clients[0], episode_id="a")
    ask(engine, clients[1], episode_id="b")
    assert refused(engine, clients[2], episode_id="c").startswith("overloaded: all 2 sessions")
    engine.sessions.leave(clients[0])
    time.sleep(0.06)
    ask(engine, clients[2], episode_id="c")
    assert {session.episode_id for session in engine.sessions.all()} == {"b", "c"}
    anonymous = Client()
    time.sleep(0.25)
    assert engine.sessions.expire() == 2 and len(engine.sessions) == 0
    for name in ("a", "b", "c"):  # which have no memory any more, and must not go on as if they had
        assert "order: the session has expired" in refused(engine, Client(), episode_id=name)
    assert ask(engine, clients[1], episode_id="b", reset=True)["step"] == 0
    ask(engine, clients[1], episode_id="b", done=True)
    ask(engine, anonymous)
    time.sleep(0.25)
    assert engine.sessions.expire() == 1
    assert "expired" in refused(engine, anonymous)
    assert ask(engine, anonymous, reset=True)["step"] == 0


def test_what_a_session_held_is_given_back_when_it_ends(make_engine: MakeEngine) -> None:
    """Its images most of all, and at once: full garbage collections are rare in a process with torch."""
    engine, client = make_engine(), Client()
    gc.collect()
    gc.disable()
    try:
        act(engine, client, episode_id="a", step=0)
        ask(engine, client, episode_id="a", step=100)  # the actor's thread remembers the last one it was asked about
        session = engine.sessions.all()[0]
        frame = session.frame(0)
        assert frame is not None
        held = [weakref.ref(session), weakref.ref(frame.images["cam_a"])]
        engine.leave(client)
        engine.sessions.drop(session)
        del session, frame
        assert [ref() for ref in held] == [None, None]
    finally:
        gc.enable()


def test_deadlines_and_back_pressure(make_engine: MakeEngine) -> None:
    """A slow actor: what comes in time is served, the rest is refused at once or by its deadline."""
    engine = make_engine(policy_s=0.3, limits={"queued_s1": 1}, s1_batches={"size": 1})
    clients = [Client() for _ in range(4)]
    for k, client in enumerate(clients):
        act(engine, client, episode_id=str(k))
    assert refused(engine, clients[0], episode_id="0", executed=4, deadline_ms=20).startswith("deadline")
    time.sleep(0.35)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask, engine, c, episode_id=str(k)) for k, c in enumerate(clients)]
        outcomes = [type(f.exception()).__name__ if f.exception() else "reply" for f in asked]
    assert sorted(set(outcomes)) == ["Refusal", "reply"]
    rejected = engine.metrics.registry.get_sample_value("predimem_rejected_total", {"code": "overloaded"})
    assert rejected == outcomes.count("Refusal")
    assert act(engine, clients[0], episode_id="0")["actions_valid"] == 4  # nothing is left of the refusal


def test_two_requests_of_one_session_at_once(make_engine: MakeEngine) -> None:
    engine, client = make_engine(policy_s=0.3), Client()
    act(engine, client, episode_id="a")
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(ask, engine, client, episode_id="a")
        time.sleep(0.1)
        assert refused(engine, client, episode_id="a").startswith("busy")
        assert slow.result()["actions_valid"] == 4


def test_what_a_page_is_shown(make_engine: MakeEngine) -> None:
    engine, client = make_engine(), Client()
    ask(engine, client, episode_id="a")
    shown = status(engine)
    assert shown["ready"] and shown["sessions"][0]["instruction"] == "do it"
    assert "actions" not in shown["sessions"][0]["reply"]
    page = engine.metrics.page().decode()
    assert "predimem_sessions 1.0" in page and "predimem_reply_seconds_count 1.0" in page
    engine.draining = True
    assert engine.health() == (False, "draining")
    assert refused(engine, client, episode_id="a").startswith("draining")
