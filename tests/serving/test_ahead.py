"""A planner that can work ahead does so in its own process, between the questions of all sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from predimem.core.types import MemorySnapshot, Plan
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.sessions import Client
from tests.serving.support import CAMERAS, observe, settings, small_config, small_models


class AheadPlanner:
    """Says how often it could prepare something, whether it was ever interrupted, and which episodes it forgot."""

    def __init__(self) -> None:
        self._prepared, self._interrupted, self._forgotten = 0, 0, ""

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        said = f"{self._prepared} {self._interrupted} {self._forgotten}"
        return Plan(snapshot.episode_id, snapshot.step, said, (), "{}")

    def prepare(self, snapshot: MemorySnapshot, interrupted: Callable[[], bool]) -> bool:
        assert all(int(frame.images[CAMERAS[0]][0, 0, 0]) == 7 for frame in snapshot.recent)
        self._prepared += 1
        slow = self._prepared == 3
        while slow and not interrupted():  # would go on for ever
            time.sleep(0.001)
        self._interrupted += slow
        return not slow

    def forget(self, episode_id: str) -> None:
        self._forgotten += episode_id[-1]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(settings(small_config()), replace(small_models(), make_planner=AheadPlanner))
    made.start()
    yield made
    made.close()


def ask_until(engine: Engine, done: Callable[[list[str]], bool], **fields: Any) -> None:
    end, step = time.monotonic() + 120, 0
    while True:
        message = wire.pack(observe(7, step=step, **fields))
        reply = wire.unpack(engine.handle(Client(), message, time.monotonic()), 1 << 20)
        if reply["subtask"] and done(reply["subtask"].split(" ")):
            return
        assert time.monotonic() < end, reply
        step += 1
        time.sleep(0.01)


def test_it_works_ahead_is_interrupted_by_a_question_and_forgets_what_is_over(engine: Engine) -> None:
    ask_until(engine, lambda said: int(said[0]) > 3 and said[1] == "1", episode_id="a")
    engine.handle(Client(), wire.pack({"done": True, "episode_id": "a"}), time.monotonic())
    ask_until(engine, lambda said: said[2].endswith("a"), episode_id="b")
