"""One episode of one robot: a memory bank, an agent, and what a request does to them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from memory_bank.retrieval import Admission
from memory_bank.retrieval.from_store import history_of
from memory_bank.store import NotOwner, StoredEpisode, StoredFailure, StoreError, robot_of
from predimem.agent.dual_system import DualSystemAgent
from predimem.agent.worker import PlannerWorker
from predimem.core.types import Frame, MemorySnapshot, Observation, Plan, Tick
from predimem.serving import recalled
from predimem.serving.bank import SessionBank, restore
from predimem.serving.hold import Hold
from predimem.serving.parts import Parts
from predimem.serving.planners import SessionPlanner
from predimem.serving.policies import SessionPolicy
from predimem.serving.refusal import Refusal
from predimem.serving.reply import Standing, make_reply
from predimem.serving.request import Request
from predimem.serving.trajectory import keep_rows
from predimem.serving.watch import EpisodeWatch

log = logging.getLogger(__name__)
EARLIER = 16  # episodes of the robot that a memory of earlier sessions is told
TRAJECTORY_ROWS = 100  # that are written at once
TRAJECTORY_S = 10.0  # after which fewer are


class Session:
    """`answer` is called by any thread; two requests at once are refused, not queued."""

    def __init__(self, episode_id: str, parts: Parts):
        self.episode_id = episode_id
        self.used_s = time.monotonic()
        self.closed = False
        self.watch = EpisodeWatch(parts.config.robot.control_hz if parts.config.time.mode == "real" else None)
        self._parts = parts
        self._lock = threading.Lock()
        self._instruction: str | None = None
        self._key: int | None = None  # of the store
        self._begun = False
        self._anew = False  # a reset was asked for: a stored episode of this name is not gone on with
        self._robot = ""
        self._recalled: Admission | None = None  # that was told last
        self._last_image_step: int | None = None  # the last one of which the store keeps images
        self._standing = Standing()
        self._resumed_step: int | None = None  # the last one that the store knows of an episode that goes on
        self._planned_step: int | None = None  # at which a plan arrived last, or the first one without
        self._reply: dict[str, Any] | None = None
        self._policy = SessionPolicy(parts.policy)
        self._planner = SessionPlanner(parts.planner, self._keep, parts.metrics)
        self._bank = SessionBank(parts.served.memory)
        self._hold = Hold(parts.config.robot, parts.served.robot.action_dim)
        clock = parts.make_clock()
        worker = PlannerWorker(self._planner, clock)
        self._agent = DualSystemAgent(self._bank, worker, self._policy, clock, self._hold, parts.config.agent)

    @property
    def begun(self) -> bool:
        return self._begun

    @property
    def stored(self) -> bool:
        """Whether the episode can be gone on with once this session is gone."""
        return self._key is not None

    @property
    def instruction(self) -> str | None:
        return self._instruction

    @property
    def last_step(self) -> int | None:
        return self._bank.last_step

    @property
    def keyframes(self) -> int:
        return len(self._bank.keyframe_steps)

    @property
    def warning(self) -> str | None:
        return self._standing.warning

    @property
    def last_reply(self) -> dict[str, Any] | None:
        """For those who watch."""
        return self._reply

    def frame(self, step: int) -> Frame | None:
        """The images of a step that is still in memory, for those who watch. Any thread may ask."""
        return self._bank.frame(step)

    def answer(self, request: Request, deadline_s: float) -> dict[str, Any]:
        """The reply to one observation, plain data and one array. Raises Refusal. deadline_s: `time.monotonic`."""
        if not self._lock.acquire(blocking=False):
            raise Refusal("busy", "the last observation of this episode is still being answered")
        try:
            if self.closed:
                raise Refusal("order", "the session has ended; send reset: true to begin again")
            self.used_s = time.monotonic()
            if request.reset or not self.begun:
                self._begin(request)
            elif request.prompt is not None and request.prompt != self._instruction:
                raise Refusal("order", "this episode has another prompt; send reset: true to begin again")
            return self._answer(request, deadline_s)
        finally:
            self._lock.release()

    def is_ours(self) -> bool:
        """Whether no other server has gone on with the episode."""
        store, key = self._parts.store, self._key
        return store is None or key is None or store.owns(key)

    def close(self) -> None:
        """What is on the disk stays there. Waits for a request under way, whose planner is called off."""
        self.closed = True
        self._planner.call_off()
        with self._lock:
            self._agent.close()
            self._planner.end()
            self.keep_trajectory()
            self._leave()

    def _leave(self) -> None:
        """Let the store's retention count the episode. A fault is logged: the episode is spared for longer, no more."""
        if self._parts.store is None or self._key is None:
            return
        try:
            self._parts.store.leave(self._key)
        except OSError:
            log.exception("an episode cannot be left", extra={"episode_id": self.episode_id})
            self._parts.metrics.store_errors.inc()

    def _begin(self, request: Request) -> None:
        store = self._parts.store
        anew = request.reset or self._anew
        stored = None if store is None or anew else store.take_over(self.episode_id)
        prompt = self._prompt_of(request, stored)
        warning = self._parts.doubt(prompt)
        self._planner.call_off()  # an answer to the episode before
        # That is over. Should something fail from here on, the next observation begins this one.
        self._instruction, self._begun, self._anew, self._key = prompt, False, anew, None
        self._agent.reset(prompt, self.episode_id)
        self._robot = stored.robot if stored is not None else request.robot_id or robot_of(self.episode_id)
        self._recalled = None
        if store is not None and self._bank.recalls:
            robot = self._parts.served.robot
            shows = dict.fromkeys(robot.cameras, robot.image_size)
            self._agent.recall(history_of(store, self._robot, self.episode_id, EARLIER, shows=shows))
        self.watch.begin()
        self._planner.go_on()
        self._hold.release()
        self._reply, self._last_image_step, self._planned_step, self._resumed_step = None, None, None, None
        if stored is not None:
            assert store is not None
            restore(self._bank, self._agent.resume, store, stored, self._parts.served.robot.state_dim)
            self.watch.resume(stored)
            self._key = stored.key
            self._last_image_step = max(stored.image_steps, default=None)
            self._resumed_step = stored.last_step
            self._standing = Standing(True, min(stored.image_steps, default=0), warning)
        else:
            robot, belongs_to = request.robot_id, request.session_id
            self._key = store.begin(self.episode_id, prompt, robot, belongs_to) if store is not None else None
            first = request.watched[0].step if request.watched else request.step or 0
            self._standing = Standing(False, first, warning)
        self._begun, self._anew = True, False
        self._parts.metrics.episodes.labels("resumed" if stored else "begun").inc()
        log.info(
            "episode %s", "goes on" if stored else "begins", extra={"episode_id": self.episode_id, "prompt": prompt}
        )
        if warning is not None:
            self._parts.metrics.unknown_tasks.inc()
            log.warning("unknown task: %s", warning, extra={"episode_id": self.episode_id, "prompt": prompt})

    def _prompt_of(self, request: Request, stored: StoredEpisode | None) -> str:
        """The task of the episode that begins. Raises Refusal where there is none, or the episode has another one."""
        if stored is not None and stored.outcome is not None:
            raise Refusal("order", f"this episode has ended ({stored.outcome}); send reset: true to begin again")
        prompt = request.prompt or self._instruction or (stored and stored.instruction)
        prompt = prompt or self._parts.config.default_prompt
        if prompt is None:
            hint = request.instead_of_prompt
            raise Refusal(
                "malformed",
                "the first observation of an episode needs a prompt: the task in words"
                + (f"; if it is what came as {hint}, send it as `prompt`" if hint else ""),
            )
        if stored is not None and stored.instruction != prompt:
            raise Refusal("order", "this episode has another prompt; send reset: true to begin again")
        return prompt

    def _answer(self, request: Request, deadline_s: float) -> dict[str, Any]:
        step = self._step_of(request)
        if self._reply is not None and step == self._reply["step"]:
            return self._reply
        self._parts.policy.admit()
        self._policy.deadline_s = deadline_s
        self._hold.see(request.state)
        for watched in request.watched or ():
            self._agent.watch(watched)
        time_s = step / self._parts.config.robot.control_hz
        action = self._agent.act(Observation(step, request.images, request.state, time_s))
        tick = self._agent.last_tick
        assert tick is not None
        if not tick.held_action:
            self._hold.release()
        self._observe(tick, request.state, action)
        self._reply = self._reply_of(action, tick)
        return self._reply

    def _step_of(self, request: Request) -> int:
        last = max((s for s in (self._bank.last_step, self._resumed_step) if s is not None), default=None)
        if request.step is not None:
            if last is not None and request.step < last:
                raise Refusal("order", f"step {request.step} after step {last}; send reset: true to begin again")
            return request.step
        if last is None:
            return 0
        return last + (self._parts.config.action_horizon if request.executed is None else request.executed)

    def _reply_of(self, action: np.ndarray, tick: Tick) -> dict[str, Any]:
        horizon, hz = self._parts.config.action_horizon, self._parts.config.robot.control_hz
        rows = [action] if tick.held_action else [action, *self._agent.upcoming(horizon - 1)]
        valid = 0 if tick.held_action else len(rows)
        rows += [self._hold.after(rows[-1])] * (horizon - len(rows))
        return make_reply(self.episode_id, self._standing, tick, rows, valid, self._planner_state(tick.step), hz)

    def _planner_state(self, step: int) -> str:
        """How S2 is doing, for whoever reads the reply of this step."""
        assert self._planned_step is not None
        config, without = self._parts.config, step - self._planned_step
        patience = config.agent.plan_every_steps + config.limits.no_plan_s * config.robot.control_hz
        return self._parts.planner.trouble or (f"no plan for {without} steps" if without > patience else "ok")

    def _observe(self, tick: Tick, state: np.ndarray, action: np.ndarray) -> None:
        metrics = self._parts.metrics
        self.watch.note(tick, state, action, self._bank.nominations)
        if tick.plan_age_steps is not None:
            metrics.plan_age.observe(tick.plan_age_steps)
        if tick.plan_arrived and tick.plan_error is None:
            metrics.plans.inc()
            self._planned_step = tick.step
        elif self._planned_step is None:
            self._planned_step = tick.step
        self._tell_recalled()

    def _tell_recalled(self) -> None:
        """To those who watch, and as a note in the store, once for each decision. It is for people alone, so a fault is
        logged."""
        admission, store = self._bank.admission, self._parts.store
        if admission is None or admission is self._recalled:
            return
        self._recalled = admission
        self.watch.note_recalled(recalled.plain(admission))
        if store is None:
            return
        try:
            store.note(recalled.in_words(admission), self._robot, None, self.episode_id, recalled.AUTHOR)
        except (OSError, StoreError):
            log.exception("what was recalled cannot be noted", extra={"episode_id": self.episode_id})
            self._parts.metrics.store_errors.inc()

    def _keep(self, snapshot: MemorySnapshot, plan: Plan, latency_s: float) -> None:
        """On disk before it is used; called by the planner's thread of this session."""
        store, key, kept = self._parts.store, self._key, {}
        answer = self.watch.note_answer(plan, latency_s)
        if store is not None and key is not None:
            began_s = time.perf_counter()
            try:
                if plan.error is None:
                    kept = self._images_of(snapshot, plan) | self._bank.to_keep(snapshot)
                    store.keep(key, plan, kept, latency_s)
                elif answer is not None:
                    store.keep_failure(key, StoredFailure(plan.step, plan.error, answer.text, answer.at_s, latency_s))
            except NotOwner:
                threading.Thread(target=self.close, name="close-session", daemon=True).start()
                raise
            self._parts.metrics.store_latency.observe(time.perf_counter() - began_s)
            if kept and self._parts.embedding is not None:
                self._parts.embedding.wake()
        if plan.error is None:
            self._bank.announce(plan.keyframe_steps, kept)
        self.keep_trajectory(TRAJECTORY_ROWS, TRAJECTORY_S)

    def keep_trajectory(self, rows: int = 1, every_s: float = 0.0) -> None:
        """Write what came since the last time, where it is so many rows or so long ago. Any thread may ask.

        It is for people alone, so a fault is logged.
        """
        store, key = self._parts.store, self._key
        if store is None or key is None or not self._parts.config.state.trajectory:
            return
        if (taken := self.watch.take_trajectory(rows, every_s)) is None:
            return
        try:
            keep_rows(store, key, taken)
        except NotOwner:
            pass  # another server keeps the rest
        except OSError:
            log.exception("a trajectory cannot be stored", extra={"episode_id": self.episode_id})
            self._parts.metrics.store_errors.inc()

    def _images_of(self, snapshot: MemorySnapshot, plan: Plan) -> dict[int, Frame]:
        frames = {frame.step: frame for frame in (*snapshot.keyframes, *snapshot.recent)}
        wanted = {step: frames[step] for step in plan.keyframe_steps if step in frames}
        last = self._last_image_step
        if last is None or snapshot.step >= last + self._parts.config.state.image_every_steps:
            wanted[snapshot.step] = frames[snapshot.step]
            self._last_image_step = snapshot.step
        return wanted


MakeSession = Callable[[str], Session]
