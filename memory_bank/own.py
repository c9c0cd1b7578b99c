"""Makes memories: the memory bank, or one of a user's own with the rest of what the runtime asks for."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from memory_bank.bank import MemoryBank
from memory_bank.config import MemoryConfig
from memory_bank.contract import check_snapshot
from memory_bank.window import frozen_images
from predimem.core.config import ConfigError
from predimem.core.interfaces import FullMemory, Memory, RecallsHistory
from predimem.core.own_code import load_object
from predimem.core.types import Frame, History, MemorySnapshot, Observation, PastSession

WHERE = "memory: implementation"
METHODS = ("reset", "observe", "nominate", "snapshot")


def make_memory(config: MemoryConfig | None = None) -> FullMemory:
    """The memory that a config describes; the one place in which memories are made.

    Raises ConfigError where the class of a memory of one's own cannot be loaded, or does not take its options.
    """
    config = config or MemoryConfig()
    return MemoryBank(config) if config.implementation is None else HostedMemory(own_memory(config), config)


def own_memory(config: MemoryConfig) -> Memory:
    """An instance of the class that the config names, as it is. Raises ConfigError."""
    assert config.implementation is not None
    made = load_object(config.implementation, WHERE)
    if not callable(made):
        raise ConfigError(f"{WHERE}: expected a class, {config.implementation} is of type {type(made).__name__}")
    try:
        inspect.signature(made).bind(config, **config.options)
    except TypeError as error:
        raise ConfigError(
            f"{WHERE}: {config.implementation} is called with the memory config and the options "
            f"{config.options or '{}'}, and takes {inspect.signature(made)}: {error}"
        ) from None
    memory: Any = made(config, **config.options)
    missing = [name for name in METHODS if not callable(getattr(memory, name, None))]
    if missing:
        raise ConfigError(
            f"{WHERE}: {config.implementation} has no method {' and no '.join(missing)}; a memory has "
            f"{', '.join(METHODS)} (docs/guides/own-memory.md)"
        )
    return memory


class HostedMemory:
    """A memory of one's own in the runtime. Implements `FullMemory`.

    It hands on images and states that nobody can change any more, and checks every snapshot. What the memory leaves out
    it adds: without `note_subtask` a config with `past_subtasks` gets the planner's answers into its snapshots, and
    without `keyframe_steps` the steps of the last snapshot's keyframes are given.
    """

    def __init__(self, memory: Memory, config: MemoryConfig):
        self.config = config
        self._memory: Any = memory
        self._notes_subtasks = callable(getattr(memory, "note_subtask", None))
        self._tells_keyframes = hasattr(type(memory), "keyframe_steps")
        self.reset("", "")

    def reset(self, episode_id: str, instruction: str) -> None:
        self._episode_id, self._instruction = episode_id, instruction
        self._step: int | None = None
        self._keyframes: tuple[Frame, ...] = ()
        self._past_sessions: tuple[PastSession, ...] = ()
        self._subtasks: list[str] = []
        self._memory.reset(episode_id, instruction)

    def observe(self, observation: Observation) -> None:
        if self._step is not None and observation.step <= self._step:
            raise ValueError(f"observations must come in order: got step {observation.step} after {self._step}")
        state = np.array(observation.state)
        state.flags.writeable = False
        self._memory.observe(replace(observation, images=frozen_images(observation.images), state=state))
        self._step = observation.step

    def nominate(self, steps: Iterable[int]) -> None:
        nominated = tuple(int(step) for step in steps)
        for step in nominated:
            if self._step is None or step > self._step:
                raise ValueError(f"step {step} was nominated as a keyframe before it was observed")
        if nominated:
            self._memory.nominate(nominated)

    @property
    def shows_sessions(self) -> bool:
        """Whether its snapshots have earlier sessions as a section of their own (`MemorySnapshot.past_sessions`)."""
        return bool(getattr(self._memory, "shows_sessions", False))

    def prepare(self) -> None:
        """Let the memory load what it needs before it is asked in earnest. Raises what that raises."""
        if callable(prepare := getattr(self._memory, "prepare", None)):
            prepare()

    @property
    def recalls(self) -> bool:
        """Whether the memory looks at earlier sessions."""
        return isinstance(self._memory, RecallsHistory)

    def recall(self, history: History) -> None:
        if self.recalls:
            self._memory.recall(history)

    @property
    def admission(self) -> Any:
        """What its gate decided in this episode (`memory_bank.retrieval.SessionMemory.admission`); None without one."""
        return getattr(self._memory, "admission", None)

    def note_subtask(self, subtask: str) -> None:
        if self._notes_subtasks:
            self._memory.note_subtask(subtask)
        elif self.config.past_subtasks and self._subtasks[-1:] != [subtask]:
            self._subtasks.append(subtask)

    def snapshot(self) -> MemorySnapshot:
        if self._step is None:
            raise ValueError("nothing observed yet: call observe() before snapshot()")
        snapshot = self._memory.snapshot()
        check_snapshot(snapshot, self.config, self._episode_id, self._instruction, self._step)
        self._keyframes, self._past_sessions = snapshot.keyframes, snapshot.past_sessions
        return replace(snapshot, past_subtasks=tuple(self._subtasks)) if self._subtasks else snapshot

    def upcoming(self, steps: int) -> MemorySnapshot:
        """See `FullMemory`: only this memory knows its window, so that it is what the last snapshot had of the past."""
        if self._step is None:
            raise ValueError("nothing observed yet: call observe() before upcoming()")
        return MemorySnapshot(
            self._episode_id,
            self._step + steps,
            self._instruction,
            (),
            self._keyframes,
            tuple(self._subtasks),
            self._past_sessions,
        )

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        if self._tells_keyframes:
            return tuple(self._memory.keyframe_steps)
        return tuple(frame.step for frame in self._keyframes)
