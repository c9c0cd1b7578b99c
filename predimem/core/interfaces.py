"""The seams of the system: one narrow verb each. Behaviour is added by wrapping, not by flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from predimem.core.types import (
    ActionChunk,
    EpisodeResult,
    History,
    MemorySnapshot,
    Observation,
    Plan,
    StepResult,
    Tick,
)


@runtime_checkable
class Planner(Protocol):
    """S2. Stateless: everything it knows is in the snapshot."""

    def plan(self, snapshot: MemorySnapshot) -> Plan: ...


@runtime_checkable
class StreamingPlanner(Planner, Protocol):
    """A planner that can work ahead. Its answers depend on nothing but the snapshot all the same."""

    def prepare(self, snapshot: MemorySnapshot, interrupted: Callable[[], bool]) -> bool:
        """Work ahead for the next question. snapshot: what is known of it; its newest frame is still to come, and
        maybe others. interrupted: asked often whether to leave off, because there is something more urgent.

        Returns whether all was done that can be done.
        """
        ...

    def forget(self, episode_id: str) -> None:
        """Let go of what was remembered of an episode: there will be no more questions about it."""
        ...


@runtime_checkable
class Policy(Protocol):
    """S1. Stateless: actions for the next H control steps, in the environment's physical units."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk: ...


@runtime_checkable
class ContinuingPolicy(Policy, Protocol):
    """A policy whose chunks can continue the one that is executed meanwhile (real-time chunking)."""

    def continue_chunk(
        self,
        observation: Observation,
        subtask: str,
        queued: np.ndarray,
        delay_steps: int,
        method: Literal["guided", "trained"],
    ) -> ActionChunk:
        """As `infer`. queued: float32 [k, A], what is queued for `observation.step` and later, physical units.
        delay_steps: how many of these actions are executed before the chunk is there.

        method: `guided` as in arXiv:2506.07339, `trained` as in arXiv:2512.05964.
        """
        ...


@runtime_checkable
class Memory(Protocol):
    """What the robot remembers of one episode. Only the control thread uses it (docs/guides/own-memory.md)."""

    def reset(self, episode_id: str, instruction: str) -> None:
        """Forget everything and begin an episode."""
        ...

    def observe(self, observation: Observation) -> None:
        """Take in the images of one control step. Raises ValueError unless steps increase."""
        ...

    def nominate(self, steps: Iterable[int]) -> None:
        """The planner nominates observed frames as keyframes, by their absolute steps. It may be ignored."""
        ...

    def snapshot(self) -> MemorySnapshot:
        """What the planner may see now. Raises ValueError before the first observation."""
        ...


@runtime_checkable
class FullMemory(Memory, Protocol):
    """A memory with all that the runtime asks for; `memory_bank.make_memory` gives one."""

    def note_subtask(self, subtask: str) -> None:
        """The planner's answer (`Plan.said`), which holds from now on; it is told whenever a plan arrives."""
        ...

    def upcoming(self, steps: int) -> MemorySnapshot:
        """What is known already of the snapshot `steps` observations later, for a planner that works ahead: it lacks
        the frames that are still to come. What it says is a guess. Raises ValueError before the first observation."""
        ...

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        """The steps of the frames that are kept, oldest first, for figures and for those who watch."""
        ...


@runtime_checkable
class Environment(Protocol):
    """One task of a benchmark. `step` takes float32 [A] in physical units, clipped by the environment."""

    @property
    def instruction(self) -> str: ...

    @property
    def action_dim(self) -> int: ...

    @property
    def horizon(self) -> int:
        """Control steps after which an episode is truncated."""
        ...

    @property
    def control_hz(self) -> float: ...

    def reset(self, seed: int) -> Observation: ...

    def step(self, action: np.ndarray) -> StepResult: ...

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        """float32 [A]: the action that keeps the robot where it is, given the last one executed."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ShowsVideo(Protocol):
    """An environment that shows something before the robot may act, such as the video of a demonstration."""

    @property
    def video(self) -> Sequence[Observation]:
        """What is shown in the episode that was reset last, oldest first; the steps end with -1."""
        ...


@runtime_checkable
class HasHistory(Protocol):
    """An environment whose episodes come after earlier sessions, which the robot may remember."""

    @property
    def history(self) -> History:
        """What there was before the episode that was reset last."""
        ...


@runtime_checkable
class RecallsHistory(Protocol):
    """A memory that looks at earlier sessions."""

    def recall(self, history: History) -> None:
        """What there was before the episode; told after `reset` and before the first observation."""
        ...


@runtime_checkable
class Agent(Protocol):
    """What acts in an episode. `act` is called once per control step with that step's observation."""

    def reset(self, instruction: str, episode_id: str) -> None: ...

    def act(self, observation: Observation) -> np.ndarray: ...

    @property
    def last_tick(self) -> Tick | None: ...


class Expert(Protocol):
    """A script in closed loop with the simulator's true state, which plays a task by itself."""

    @property
    def subtask(self) -> str:
        """The label of the subtask that the last action was for; empty where it has none."""
        ...

    def reset(self) -> None:
        """Begin anew; to be called after each reset of the environment."""
        ...

    def action(self) -> np.ndarray:
        """float32 [A]: what to do at this control step."""
        ...


class Subscriber(Protocol):
    """Watches episodes: recorders, metrics, dashboards. Never changes what happens."""

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None: ...

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None: ...

    def on_end(self, result: EpisodeResult) -> None: ...
