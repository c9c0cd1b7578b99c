"""The values that cross module borders: frozen dataclasses over numpy arrays, never torch.

A *step* is a control step, counted from 0 at the reset of an episode. Every step index in these
types is absolute; positions inside a window exist only in the planner's prompt and answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from predimem.core.subtask_labels import THEN

Status = Literal["success", "failure", "error"]


class ObservationError(ValueError):
    """An observation or a subtask that a policy cannot use: says which part, what was expected and how to mend it."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What the robot senses at control step `step`.

    images: camera name -> uint8 [H, W, 3], RGB, in the environment's camera order.
    state: float32 [D], proprioception in physical units.
    time_s: seconds since the reset, by the environment's control clock.
    """

    step: int
    images: Mapping[str, np.ndarray]
    state: np.ndarray
    time_s: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """The images of one timestep as the memory keeps them: read-only views, never copies.

    state: float32 [D], the observation's; None where only images were kept.
    """

    step: int
    time_s: float
    images: Mapping[str, np.ndarray]
    state: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class PastSession:
    """What is remembered of an earlier session.

    name: tells the sessions of a history apart.
    robot, person: which robot recorded it, and with whom; empty where that is not known.
    age_s: how long before now it ended, in seconds.
    instruction: what the robot was told; empty where that was not recorded.
    frames: its keyframes, oldest first; their steps and times count from the session's own start.
    embeddings: float32 [F, D], what the planner's frozen vision tower makes of the frames; None where that has still
        to be worked out.
    relevant: whether it shows what the episode needs, which benchmarks know and only the oracle row looks at.
    episode_id: the episode of the memory store that it was read from; empty for others.
    """

    name: str
    age_s: float
    instruction: str
    frames: tuple[Frame, ...]
    robot: str = ""
    person: str = ""
    embeddings: np.ndarray | None = None
    relevant: bool = False
    episode_id: str = ""


@dataclass(frozen=True, eq=False)
class History:
    """What a robot remembers when an episode begins. sessions: oldest first. robot, person: who plays it now."""

    sessions: tuple[PastSession, ...] = ()
    robot: str = ""
    person: str = ""


@dataclass(frozen=True, eq=False)
class MemorySnapshot:
    """Immutable planner input: what the robot remembers at control step `step`.

    recent: W frames, oldest first, equally spaced in time; the last one is the frame of `step`.
    keyframes: oldest first; a frame that is still inside `recent` is not listed twice.
    past_subtasks: with a text memory the planner's own answers so far, oldest first, the last one still holds.
    past_sessions: what is shown of earlier sessions, oldest first, with the frames that are shown of each.
    """

    episode_id: str
    step: int
    instruction: str
    recent: tuple[Frame, ...]
    keyframes: tuple[Frame, ...] = ()
    past_subtasks: tuple[str, ...] = ()
    past_sessions: tuple[PastSession, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The planner's answer to the snapshot of (`episode_id`, `step`).

    subtask: None when the answer could not be parsed: the agent then keeps its last subtask.
    keyframe_steps: nominated frames, as absolute control steps.
    text: the raw answer; error: why it could not be parsed (None when it could).
    confidence: the probability, in [0, 1], that the planner gave to the subtask of its answer, and to what comes next
    where it says that; None where it does not tell.
    next_subtasks: what comes after the subtask, in this order, as a planner that plans ahead says; empty for others.
    """

    episode_id: str
    step: int
    subtask: str | None
    keyframe_steps: tuple[int, ...] = ()
    text: str = ""
    error: str | None = None
    confidence: float | None = None
    next_subtasks: tuple[str, ...] = ()

    @property
    def subtasks(self) -> tuple[str, ...]:
        """The subtask and what comes next; none when the answer could not be parsed."""
        return () if self.subtask is None else (self.subtask, *self.next_subtasks)

    @property
    def said(self) -> str | None:
        """The subtask with what comes next, in words, which a text memory keeps."""
        return None if self.subtask is None else THEN.join(self.subtasks)


@dataclass(frozen=True)
class AmbiguousLabel:
    """Why a policy does not carry out a label: in this task it is ambiguous.

    label: what was said.
    meanings: what it could mean, in words, two things or more; clear: the labels that say so, in the same order.
    """

    label: str
    meanings: tuple[str, ...]
    clear: tuple[str, ...]

    def __str__(self) -> str:
        say = " or ".join(f"{label!r}" for label in self.clear)
        return f"{self.label!r} is ambiguous, it could mean: {'; '.join(self.meanings)}. Say {say}"


@dataclass(frozen=True, eq=False)
class ActionChunk:
    """actions: float32 [H, A] in the environment's physical units; actions[0] is for `start_step`.

    refusal: why the actions only hold the robot still; None where they carry the subtask out.
    """

    start_step: int
    actions: np.ndarray
    subtask: str
    refusal: AmbiguousLabel | None = None


@dataclass(frozen=True)
class Tick:
    """Everything that happened at one control step, as recorded in the trace.

    subtask: the one that is executed; a plan that names another may still await confirmation (`DualSystemConfig`).
    plan_age_steps: control steps since the observation that the current subtask was decided on; None before the first
    plan.
    stale_action: whether the action came from a chunk that was conditioned on another subtask than the current one.
    s1_latency_s, s2_latency_s: wall-clock seconds, None where the model did not answer in this tick.
    plan_confidence, plan_subtask, plan_step: of the plan that arrived in this tick: its confidence, the subtask that it
    names, whether that is confirmed or not, and the step of the observation that S2 was asked with.
    refusal: why S1 let the robot hold still instead of carrying out the subtask; None where it carried it out.
    homing: whether the hand went home, instead of what S1 says, because it did not get on with the subtask.
    """

    step: int
    subtask: str
    plan_age_steps: int | None
    stale_action: bool
    held_action: bool
    s1_latency_s: float | None = None
    s2_latency_s: float | None = None
    plan_arrived: bool = False
    plan_text: str | None = None
    plan_error: str | None = None
    keyframe_steps: tuple[int, ...] = ()
    plan_confidence: float | None = None
    plan_subtask: str | None = None
    plan_step: int | None = None
    refusal: AmbiguousLabel | None = None
    homing: bool = False


@dataclass(frozen=True, eq=False)
class StepResult:
    """One environment step. `info` holds plain numbers, strings and booleans only."""

    observation: Observation
    terminated: bool
    truncated: bool
    success: bool
    info: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class EpisodeResult:
    """How one episode ended. A crash is an `error`, never a `failure` of the policy."""

    task: str
    agent: str
    seed: int
    status: Status
    steps: int
    stages_passed: int = 0
    stages_total: int = 1
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
