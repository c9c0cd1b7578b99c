"""A planner that can work ahead does so in its own process, between the questions of all sessions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import Value
from typing import Any

import pytest

from predimem.core.types import Frame, MemorySnapshot, Plan
from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.planner_process import PlannerHandler
from predimem.serving.planner_wire import Job, JobWriter
from predimem.serving.sessions import Client
from tests.serving.support import CAMERAS, MarkPlanner, observe, settings, small_config, small_models


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


class FewPlansPlanner(MarkPlanner):
    """Its batches lack a plan, and its plans are in another order than the snapshots."""

    def plan_batch(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan]:
        return [self.plan(snapshot) for snapshot in snapshots][:0:-1]


def test_a_batch_that_lacks_a_plan_is_planned_one_by_one() -> None:
    writer = JobWriter()
    images = {name: {camera: observe(mark)[camera] for camera in CAMERAS} for name, mark in (("a", 7), ("b", 9))}
    asked = [MemorySnapshot(name, 3, "do it", (Frame(3, 0.15, seen),), ()) for name, seen in images.items()]
    handler = PlannerHandler(FewPlansPlanner, JobWriter().write(Job(asked=asked[:1])), Value("b", 0, lock=False))
    plans = wire.unpack(handler.do(writer.write(Job(asked=asked))), 1 << 20)
    assert [(plan["episode_id"], plan["subtask"]) for plan in plans] == [("a", "mark 7"), ("b", "mark 9")]
