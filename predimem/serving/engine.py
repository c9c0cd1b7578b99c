"""The server without its network: bytes in, bytes out, for any number of clients.

A request is handled in one thread from its first byte to its last. What is shared (actor, planner, store) has its own
threads, so a request waits for the actor at most, never for the planner and never for another client.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank.store import Outcome
from predimem.core.types import Frame, MemorySnapshot, Observation
from predimem.serving import robomme, wire
from predimem.serving.accounts import accounted
from predimem.serving.config import ServeConfig
from predimem.serving.embedding import BackgroundEmbedding
from predimem.serving.metadata import metadata
from predimem.serving.metrics import Metrics, gpu_memory_bytes
from predimem.serving.parts import Parts
from predimem.serving.planner_process import PlannerProcess
from predimem.serving.planners import BatchedPlanner, SharedPlanner, WholeTaskPlanner
from predimem.serving.policies import SharedPolicy
from predimem.serving.refusal import Refusal
from predimem.serving.request import Request, read_request
from predimem.serving.robot import Served, check_homing, check_robot
from predimem.serving.session import Session
from predimem.serving.sessions import Client, Ended, Sessions
from predimem.serving.store import open_state

log = logging.getLogger(__name__)
WARM_UP_S = 600.0  # that the actor may take
HUNG_S = 10.0  # a forward pass of the actor that takes longer counts as hung


class Engine:
    """`start` before the first `handle`; `close` when done. Thread-safe. Raises ValueError for a config that is not
    about the robot of the models."""

    def __init__(self, config: ServeConfig, served: Served):
        check_robot(config.robot, served.robot)
        if config.agent.homing is not None:
            check_homing(config.agent.homing, config.robot, served.robot)
        if config.protocol == "robomme":
            robomme.check_models(served.robot)
        self.config = config
        self.served = served
        self.metrics = Metrics()
        self.metadata = metadata(config, served)
        self.store = None if config.state.place is None else open_state(config.state.place, config.state)
        self.embedding = self._make_embedding()
        self.draining = False
        self.began_s = time.monotonic()
        self._process: PlannerProcess | None = None
        self._policy = SharedPolicy(served.policy, config.limits.queued_s1, config.s1_batches, self.metrics)
        self._planner = self._make_planner()
        parts = Parts(config, served, self._policy, self._planner, self.store, self.metrics, self.embedding)
        self.sessions = Sessions(lambda episode_id: Session(episode_id, parts), config.limits)
        self.warm = False
        self._watch()

    def start(self) -> None:
        """Warm both models up. Raises PlannerGone, ValueError or what the actor raises, where one of them cannot be
        used."""
        began_s = time.perf_counter()
        robot, deadline_s = self.served.robot, time.monotonic() + WARM_UP_S
        images = {name: np.zeros((*robot.image_size, 3), np.uint8) for name in robot.cameras}
        blank = Observation(0, images, np.zeros(robot.state_dim, np.float32))
        if self.embedding is not None:
            self.embedding.start()
        self._policy.warm_up(blank, self.served.example_prompt(self.config.robot), deadline_s)
        if self._process is not None:
            self._process.start()
        self.warm = True
        log.info("ready", extra={"warm_up_s": round(time.perf_counter() - began_s, 2)})

    def connect(self) -> Client:
        """What stands for one connection in `handle`."""
        return Client()

    def leave(self, client: Client) -> None:
        """The connection is closed."""
        self.sessions.leave(client)

    def expire(self) -> int:
        """Close sessions that have been idle for too long; how many those were."""
        return self.sessions.expire()

    def handle(self, client: Client, data: bytes, arrived_s: float) -> bytes:
        """The reply to one message that arrived at `arrived_s` (`time.monotonic`). Raises Refusal."""
        with accounted(self.metrics, arrived_s):
            return self._answer(client, data, arrived_s)

    def health(self) -> tuple[bool, str]:
        """(ready to serve, what is the matter). Without a planner the server goes on, and says so."""
        if not self.warm:
            return False, "warming up"
        if self.draining:
            return False, "draining"
        if self._policy.busy_s > HUNG_S:
            return False, "the actor hangs"
        trouble = self._planner.trouble
        return True, f"degraded: {trouble}" if trouble else "ok"

    @property
    def queues(self) -> dict[str, int]:
        """How many requests wait for each model."""
        return {"s1": self._policy.depth, "s2": self._planner.depth}

    def close(self) -> None:
        self.draining = True
        self.sessions.close()
        self._planner.close()
        self._policy.close()
        if self.embedding is not None:
            self.embedding.close()
        if self.store is not None:
            self.store.close()

    def _answer(self, client: Client, data: bytes, arrived_s: float) -> bytes:
        if self.draining:
            raise Refusal("draining", "the server is being shut down; connect again")
        began_s = time.perf_counter()
        try:
            message = wire.unpack(data, self.config.limits.array_bytes)
        except wire.WireError as error:
            raise Refusal("malformed", str(error)) from None
        if self.config.protocol == "robomme":
            if robomme.is_reset(message):
                if (found := self.sessions.end(client, None, "ended")) is not None:
                    self._note_end(*found)
                return wire.pack(robomme.RESET_FINISHED)
            request = robomme.read_request(message, client, self.served.robot, self.config)
        else:
            request = read_request(message, self.served.robot, self.config.limits)
        read_s = time.perf_counter()
        reply = self._end(client, request) if request.done else self._act(client, request, arrived_s)
        done_s = time.perf_counter()
        timing = {
            "queue_ms": 1000 * (time.monotonic() - arrived_s - (done_s - began_s)),
            "decode_ms": 1000 * (read_s - began_s),
            "infer_ms": 1000 * (done_s - read_s),
        }
        return wire.pack(reply | {"server_timing": timing})

    def _act(self, client: Client, request: Request, arrived_s: float) -> dict[str, Any]:
        session = self.sessions.find(client, request)
        try:
            return session.answer(request, arrived_s + request.deadline_s)
        except Refusal as refusal:
            if refusal.code != "busy" and not session.begun:
                self.sessions.drop(session)
            raise

    def _end(self, client: Client, request: Request) -> dict[str, Any]:
        """The episode is over. Asking again gives the same answer: the first outcome stays.

        It is written each time that a robot asks, because the store may have failed when it asked before.
        """
        outcome: Outcome = "ended" if request.success is None else "success" if request.success else "failure"
        found = self.sessions.end(client, request.episode_id, outcome)
        ended, first = found or self._find_kept(request.episode_id, outcome)
        self._note_end(ended, first)
        return {"done": True, "episode_id": ended.episode_id, "step": ended.step, "outcome": ended.outcome}

    def _note_end(self, ended: Ended, first: bool) -> None:
        """first: whether its robot ends it for the first time."""
        if first:
            self.metrics.outcomes.labels(ended.outcome).inc()
            log.info("episode ends", extra={"episode_id": ended.episode_id, "outcome": ended.outcome})
        if self.store is not None:
            self.store.end(ended.episode_id, ended.outcome)

    def _find_kept(self, episode_id: str | None, outcome: Outcome) -> tuple[Ended, bool]:
        """The end of an episode that is on the disk alone, such as after a restart; whether it is the first one."""
        stored = None if self.store is None or episode_id is None else self.store.find(episode_id)
        if stored is None:
            raise Refusal("order", "there is no such episode to end: it was not begun here, or is not kept any more")
        return Ended(stored.episode_id, stored.last_step, stored.outcome or outcome), stored.outcome is None

    def _make_embedding(self) -> BackgroundEmbedding | None:
        if self.store is None or (planner := self.config.state.embed) is None:
            return None
        return BackgroundEmbedding(self.store, planner, self.config.models.weights, self.served.robot)

    def _make_planner(self) -> SharedPlanner:
        config, served = self.config, self.served
        if served.make_planner is None:
            return WholeTaskPlanner()
        process_config = config.s2_process
        if process_config.log_dir is None and (folder := config.state.folder) is not None:
            from dataclasses import replace

            process_config = replace(process_config, log_dir=str(Path(folder) / "log"))
        self._process = PlannerProcess(served.make_planner, self._example(), process_config, self._planner_lost)
        wait_s = process_config.timeout_s * 2
        return BatchedPlanner(self._process, config.limits.sessions, config.s2_batches, wait_s, self.metrics)

    def _example(self) -> MemorySnapshot:
        """A first snapshot for the planner to warm up with."""
        robot = self.served.robot
        image = np.zeros((*robot.image_size, 3), np.uint8)
        frame = Frame(0, 0.0, {name: image for name in robot.cameras})
        return MemorySnapshot("warm-up", 0, self.served.example_prompt(self.config.robot), (frame,))

    def _planner_lost(self, why: str) -> None:
        self.metrics.s2_restarts.inc()
        log.error("%s; S1 goes on with the last subtask of each session", why)

    def _watch(self) -> None:
        gauge = self.metrics.gauge
        gauge("sessions", "Sessions in memory", lambda: len(self.sessions))
        gauge("keyframes", "Keyframes of all sessions", lambda: sum(s.keyframes for s in self.sessions.all()))
        gauge("s1_waiting", "Observations that wait for the actor", lambda: self._policy.depth)
        gauge("s2_waiting", "Snapshots that wait for the planner", lambda: self._planner.depth)
        gauge("s2_up", "1 while there is a planner", lambda: not self._planner.trouble)
        gauge("gpu_memory_bytes", "In use on the GPU", gpu_memory_bytes)
        self.metrics.ready.set_function(lambda: self.health()[0])


def status(engine: Engine) -> dict[str, Any]:
    """All sessions as plain data, for a page to show."""
    ready, trouble = engine.health()
    sessions = [
        {"episode_id": s.episode_id, "instruction": s.instruction, "reply": _without_arrays(s.last_reply)}
        for s in engine.sessions.all()
    ]
    return {"ready": ready, "state": trouble, "sessions": sessions}


def _without_arrays(reply: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if reply is None else {k: v for k, v in reply.items() if not isinstance(v, np.ndarray)}
