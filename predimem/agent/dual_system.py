"""The dual system: a memory bank, S2 in its worker and S1 in the control thread.

This is Algorithm 1 of RoboMemArena (arXiv:2605.10921), §9.

S1 never waits for S2. S2's subtask replaces the last one when it arrives, or when enough plans in a row have
named it (`confirm_plans`); the keyframes that it nominates are written back by absolute step. Before the first
plan the robot is held where it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np

from predimem.agent.action_queue import ActionQueue
from predimem.agent.clock import Clock
from predimem.agent.homing import Homing, HomingConfig
from predimem.agent.worker import Answer, PlannerWorker
from predimem.core.interfaces import ContinuingPolicy, FullMemory, Policy, RecallsHistory
from predimem.core.subtask_labels import THEN
from predimem.core.types import ActionChunk, History, Observation, Plan, Tick

HoldAction = Callable[[np.ndarray | None], np.ndarray]


@dataclass(frozen=True)
class DualSystemConfig:
    """When the agent asks S1 and S2, and when it believes S2.

    execute_steps: how many actions of a chunk are executed before the next chunk is asked for.
    plan_every_steps: control steps from one question to S2 to the next at least, unless S2 is still busy; they need
    images. The first observation of an episode is always a question, whatever its step.
    confirm_plans: how many plans in a row must name a new subtask before it replaces the last one. More than 1 filters
    single wrong answers, and every correct change then comes one planning period later for each more.
    min_confidence: a plan that is less sure of a new subtask than this does not count towards it; one that does not say
    how sure it is counts.
    keep_plan: what a planner that plans ahead has said comes next (`Plan.next_subtasks`) is kept. Its next plans only
    tell whether the robot goes on to the next subtask. One that names any of those that are left says so, because the
    present one is done then; one that names anything else counts for nothing.
    confirm_next: how many plans in a row must say so; null: `confirm_plans`.
    min_subtask_steps: a subtask of a plan that is kept is not done in fewer control steps. Just after a change the hand
    still rests where the last subtask ended, which a planner may take for the end of the new one.
    rest_m_by_subtask: such a subtask is not done either while the hand moves farther than this in a control step, by
    patterns of its label (`*` and `?` as in a shell), of which the first one that matches counts. Others may be done
    while the hand moves.
    hand_position: the entries of the robot's state that are the position of its hand, in metres.
    homing: when the hand goes back to where it was first, because it does not get on with its subtask; null: never.
    chunks: what becomes of the queued actions while S1 computes the next chunk. `replace`: they are executed, and the
    new chunk knows nothing of them. `guided`, `trained`: they are executed, and the new chunk continues them, because
    the flow is guided (arXiv:2506.07339) or the model was trained to (arXiv:2512.05964). `wait`: they are thrown away
    and the robot is held until the new chunk is there, which is synchronous execution.
    align: how much of a chunk is left out when it arrives. `steps`: the control steps since its observation. `actions`:
    the actions executed since then; a robot that was held meanwhile begins with the chunk's first action.
    s1_delay_steps: after how many control steps a chunk is expected that continues another; null: the latency of
    simulated time, which is none in real time, where S1 answers within the step.

    The first subtask of an episode is taken as it comes, and so are keyframes, whatever becomes of the subtask.
    """

    execute_steps: int = 4
    plan_every_steps: int = 1
    confirm_plans: int = 1
    min_confidence: float = 0.0
    keep_plan: bool = False
    confirm_next: int | None = None
    min_subtask_steps: int = 0
    rest_m_by_subtask: dict[str, float] = field(default_factory=dict, hash=False)
    hand_position: tuple[int, ...] = (0, 1, 2)
    homing: HomingConfig | None = None
    chunks: Literal["replace", "wait", "guided", "trained"] = "replace"
    align: Literal["steps", "actions"] = "steps"
    s1_delay_steps: int | None = None

    def __post_init__(self) -> None:
        if self.s1_delay_steps is not None and self.s1_delay_steps < 0:
            raise ValueError(f"s1_delay_steps must be 0 or more, got {self.s1_delay_steps}")
        for name in ("execute_steps", "plan_every_steps", "confirm_plans"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.min_subtask_steps < 0:
            raise ValueError(f"min_subtask_steps must be 0 or more, got {self.min_subtask_steps}")
        if self.confirm_next is not None and self.confirm_next < 1:
            raise ValueError(f"confirm_next must be at least 1, got {self.confirm_next}")
        if not all(rest_m > 0 for rest_m in self.rest_m_by_subtask.values()):
            raise ValueError(f"rest_m_by_subtask must be more than 0 m, got {self.rest_m_by_subtask}")
        for name in ("confirm_next", "min_subtask_steps", "rest_m_by_subtask"):
            if getattr(self, name) and not self.keep_plan:
                raise ValueError(f"{name} is about a plan that is kept: set keep_plan: true")
        if not self.hand_position or min(self.hand_position) < 0:
            raise ValueError(f"hand_position must be entries of the state, 0 or more, got {self.hand_position}")
        if not 0.0 <= self.min_confidence <= 1.0:
            raise ValueError(f"min_confidence must be in [0, 1], got {self.min_confidence}")

    def rest_m(self, subtask: str) -> float:
        """How far the hand may move in the control step in which this subtask of a plan that is kept is done."""
        patterns = self.rest_m_by_subtask.items()
        return next((rest_m for pattern, rest_m in patterns if fnmatchcase(subtask, pattern)), math.inf)


@dataclass(frozen=True)
class _Pending:
    """A chunk that simulated time has not released yet."""

    chunk: ActionChunk
    ready_step: int


class DualSystemAgent:
    """Implements `Agent`. Not thread-safe: one control thread calls it."""

    def __init__(
        self,
        bank: FullMemory,
        worker: PlannerWorker,
        policy: Policy,
        clock: Clock,
        hold_action: HoldAction,
        config: DualSystemConfig | None = None,
    ):
        self._bank = bank
        self._worker = worker
        self._policy = policy
        self._clock = clock
        self._hold_action = hold_action
        self._config = config or DualSystemConfig()
        if self._config.chunks in ("guided", "trained") and not isinstance(policy, ContinuingPolicy):
            raise ValueError(
                f"agent: chunks: {self._config.chunks}: this low-level policy cannot continue a chunk, only an actor "
                "with a folder of weights can; set chunks: replace"
            )
        self._queue = ActionQueue()
        self.reset("", "")

    def reset(self, instruction: str, episode_id: str) -> None:
        self._worker.reset()
        self._bank.reset(episode_id, instruction)
        self._queue.clear()
        self._episode_id = episode_id
        self._subtasks: tuple[str, ...] = ()  # the subtask and what comes next; none before the first plan
        self._plan_step: int | None = None
        self._begun_step = 0  # of the observation whose plan began the subtask
        self._homing = Homing(self._config.homing) if self._config.homing else None
        self._hand: tuple[int, np.ndarray] | None = None  # the last step at which it was seen, and its position
        self._moved_m = 0.0  # how far it moved from the observation before to the last one, in each control step
        self._asked_step: int | None = None  # of the last question to S2, whether S2 was free or not
        self._rival: tuple[str, ...] = ()  # what the last plans named in their place
        self._rival_plans = 0  # how many of them in a row
        self._pending: _Pending | None = None
        self._last_action: np.ndarray | None = None
        self._last_tick: Tick | None = None

    @property
    def last_tick(self) -> Tick | None:
        return self._last_tick

    @property
    def bank(self) -> FullMemory:
        return self._bank

    def recall(self, history: History) -> None:
        """Tell the memory of earlier sessions, if it looks at them; after `reset`, before the first observation."""
        if isinstance(self._bank, RecallsHistory):
            self._bank.recall(history)

    def resume(self, plan: Plan) -> None:
        """Take over a plan of this episode from before a restart; its frames have been observed again."""
        self._adopt(plan)

    def upcoming(self, count: int) -> list[np.ndarray]:
        """Up to `count` actions, float32 [A]: what is queued for the steps that follow the last one."""
        actions = []
        after = 0 if self._last_tick is None else self._last_tick.step + 1
        for step in range(after, after + count):
            queued = self._queue.action_at(step)
            if queued is None:
                break
            actions.append(queued[0])
        return actions

    def watch(self, observation: Observation) -> None:
        """One frame at which nobody asks for an action: of a conditioning video, whose steps are below 0, or of what a
        client has seen while it carried out a chunk.

        It goes into the memory. At multiples of `plan_every_steps` S2 is asked, if it has answered the question before,
        and its pass is waited for, because such frames come all at once. In simulated time its answer comes as late as
        ever: with a latency of 80 steps it sees one frame in 80. The keyframes that it nominates count. What it says of
        subtasks in a video does not: those are somebody else's.
        """
        step = observation.step
        self._clock.begin_tick(step)
        self._bank.observe(observation)
        self._feel(observation)
        self._take_plan(step)
        if step % self._config.plan_every_steps == 0:
            self._asked_step = step
            self._worker.submit(self._bank.snapshot())
            self._worker.settle()

    def act(self, observation: Observation) -> np.ndarray:
        """One control tick: float32 [A], the action for this step."""
        step = observation.step
        self._clock.begin_tick(step)
        self._bank.observe(observation)
        self._feel(observation)
        answer = self._take_plan(step)
        if self._asked_step is None or step - self._asked_step >= self._config.plan_every_steps:
            self._asked_step = step
            self._worker.submit(self._bank.snapshot())
        if self._worker.works_ahead:
            self._worker.foresee(self._bank.upcoming(self._asked_step + self._config.plan_every_steps - step))
        homing = self._go_home(observation)
        s1_latency_s = self._refill(observation) if homing is None else None
        action, conditioned_on = self._next_action(step) if homing is None else (homing, self._subtask)
        plan = answer.plan if answer else None
        self._last_tick = Tick(
            step=step,
            subtask=self._subtask or "",
            plan_age_steps=None if self._plan_step is None else step - self._plan_step,
            stale_action=conditioned_on is not None and conditioned_on != self._subtask,
            held_action=conditioned_on is None,
            s1_latency_s=s1_latency_s,
            s2_latency_s=answer.latency_s if answer else None,
            plan_arrived=plan is not None,
            plan_text=plan.text if plan else None,
            plan_error=plan.error if plan else None,
            keyframe_steps=self._bank.keyframe_steps,
            plan_confidence=plan.confidence if plan else None,
            plan_subtask=plan.subtask if plan else None,
            plan_step=plan.step if plan else None,
            refusal=None if conditioned_on is None else self._queue.refusal,
            homing=homing is not None,
        )
        self._last_action = action
        return action

    def close(self) -> None:
        self._worker.close()

    @property
    def _subtask(self) -> str | None:
        return self._subtasks[0] if self._subtasks else None

    def _take_plan(self, step: int) -> Answer | None:
        answer = self._worker.latest(step)
        if answer is None or answer.plan.episode_id != self._episode_id:
            return None
        self._adopt(answer.plan)
        return answer

    def _feel(self, observation: Observation) -> None:
        """Note how fast the hand moves, if that matters."""
        if not self._config.rest_m_by_subtask:
            return
        entries = self._config.hand_position
        if max(entries) >= len(observation.state):
            raise ValueError(
                f"agent: hand_position: expected entries of a state of {len(observation.state)} numbers, got {entries}"
            )
        position = observation.state[list(entries)]
        if self._hand is not None and observation.step > self._hand[0]:
            self._moved_m = float(np.linalg.norm(position - self._hand[1])) / (observation.step - self._hand[0])
        self._hand = observation.step, position

    def _go_home(self, observation: Observation) -> np.ndarray | None:
        """The action with which the hand goes home; None where it does not."""
        if self._homing is None:
            return None
        action = self._homing.action(observation.step, observation.state, self._last_action, self._subtask)
        if action is not None:
            self._queue.clear()
            self._pending = None
        return action

    def _adopt(self, plan: Plan) -> None:
        self._bank.nominate(plan.keyframe_steps)
        if plan.step < 0:
            return
        if subtasks := self._confirmed(plan):
            if subtasks != self._subtasks:
                self._begun_step = plan.step
            self._subtasks, self._plan_step = subtasks, plan.step
            self._bank.note_subtask(THEN.join(subtasks))

    def _confirmed(self, plan: Plan) -> tuple[str, ...]:
        """The plan's subtasks if they hold from now on."""
        subtasks = self._within_plan(plan)
        change = bool(subtasks and self._subtasks) and subtasks != self._subtasks
        unsure = plan.confidence is not None and plan.confidence < self._config.min_confidence
        if not change or unsure:
            self._rival, self._rival_plans = (), 0
            return () if change else subtasks
        self._rival_plans = self._rival_plans + 1 if subtasks == self._rival else 1
        self._rival = subtasks
        needed = self._config.confirm_plans
        if self._config.confirm_next is not None and subtasks == self._subtasks[1:]:
            needed = self._config.confirm_next
        return subtasks if self._rival_plans >= needed else ()

    def _within_plan(self, plan: Plan) -> tuple[str, ...]:
        """The plan's subtasks, or what is left of the plan that is kept, if one is; none if it names something else."""
        later = self._subtasks[1:]
        if not (self._config.keep_plan and later):
            return plan.subtasks
        if plan.subtask == self._subtask:
            return self._subtasks
        if plan.subtask not in later or plan.step < self._begun_step + self._config.min_subtask_steps:
            return ()
        return later if self._moved_m <= self._config.rest_m(self._subtasks[0]) else ()

    def _refill(self, observation: Observation) -> float | None:
        """Ask S1 for a chunk if the queue runs low or its subtask is outdated; seconds that it took."""
        step = observation.step
        self._release(step)
        if self._subtask is None or self._pending is not None:
            return None
        fresh = self._queue.subtask == self._subtask and self._queue.remaining(step) > 0
        if fresh and self._queue.executed(step) < self._config.execute_steps:
            return None
        began_s = time.perf_counter()
        chunk = self._ask(observation, self._subtask)
        latency_s = time.perf_counter() - began_s
        self._pending = _Pending(chunk, self._clock.s1_ready_step(step))
        self._release(step)
        return latency_s

    def _ask(self, observation: Observation, subtask: str) -> ActionChunk:
        """The next chunk, which continues what is queued where the config says so."""
        how, step = self._config.chunks, observation.step
        if how == "wait":
            self._queue.clear()
        if how not in ("guided", "trained") or self._queue.remaining(step) == 0:
            return self._policy.infer(observation, subtask)
        delay_steps = self._config.s1_delay_steps
        if delay_steps is None:
            delay_steps = self._clock.s1_ready_step(step) - step
        queued = self._queue.queued(step)
        if self._queue.subtask != subtask:
            queued = queued[:delay_steps]  # those are executed; the rest was meant for something else
        assert isinstance(self._policy, ContinuingPolicy)
        return self._policy.continue_chunk(observation, subtask, queued, delay_steps, how)

    def _release(self, step: int) -> None:
        if self._pending is None or step < self._pending.ready_step:
            return
        if self._config.align == "actions":
            self._queue.replace_by_consumed(step, self._pending.chunk)
        else:
            self._queue.replace_from(step, self._pending.chunk)
        self._pending = None

    def _next_action(self, step: int) -> tuple[np.ndarray, str | None]:
        queued = self._queue.action_at(step)
        if queued is None:
            return self._hold_action(self._last_action), None
        return queued
