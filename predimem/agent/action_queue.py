"""The actions that are to be executed next, by the control step that they are meant for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from predimem.core.types import ActionChunk, AmbiguousLabel


class ActionQueue:
    """Holds the newest chunk's actions. A chunk that arrives late loses the steps that have passed, or the actions that
    have been executed, whichever its reader says."""

    def __init__(self) -> None:
        self._chunk: ActionChunk | None = None

    def clear(self) -> None:
        self._chunk = None

    def replace_from(self, step: int, chunk: ActionChunk) -> None:
        """Let `chunk` replace what is queued for `step`, the present one, and later.

        Raises ValueError if the chunk is not float [H, A] or begins after `step`.
        """
        if chunk.actions.ndim != 2:
            raise ValueError(f"expected actions [H, A], got shape {chunk.actions.shape}")
        if chunk.start_step > step:
            raise ValueError(f"the chunk starts at step {chunk.start_step}, which is after now ({step})")
        self._chunk = chunk

    def consumed(self, begin: int, end: int) -> int:
        """For how many of the steps from `begin` up to `end` the queue holds an action."""
        if self._chunk is None:
            return 0
        first = self._chunk.start_step
        return max(0, min(end, first + len(self._chunk.actions)) - max(begin, first))

    def replace_by_consumed(self, step: int, chunk: ActionChunk) -> None:
        """As `replace_from`, but the chunk loses as many actions as the robot has executed since its observation. While
        the queue was empty the robot was held, and the chunk's first action still fits where it is."""
        consumed = self.consumed(chunk.start_step, step)
        self.replace_from(step, replace(chunk, start_step=max(chunk.start_step, step - consumed)))

    def queued(self, step: int) -> np.ndarray:
        """float [k, A]: the actions for `step` and later; k is 0 where there are none."""
        if self._chunk is None:
            return np.zeros((0, 0), np.float32)
        return self._chunk.actions[max(0, step - self._chunk.start_step) :]

    def executed(self, step: int) -> int:
        """How many of the chunk's steps lie before `step` (0 if there is no chunk)."""
        return 0 if self._chunk is None else step - self._chunk.start_step

    def remaining(self, step: int) -> int:
        """How many actions are left for `step` and later."""
        if self._chunk is None:
            return 0
        return max(0, self._chunk.start_step + len(self._chunk.actions) - step)

    def action_at(self, step: int) -> tuple[np.ndarray, str] | None:
        """The action for `step` and the subtask that conditioned it; None if the queue holds no action for it."""
        if self._chunk is None or self.remaining(step) == 0:
            return None
        return self._chunk.actions[step - self._chunk.start_step], self._chunk.subtask

    @property
    def subtask(self) -> str | None:
        """The subtask that the queued chunk was conditioned on."""
        return None if self._chunk is None else self._chunk.subtask

    @property
    def refusal(self) -> AmbiguousLabel | None:
        """Why the queued chunk only holds the robot still; None where it does not."""
        return None if self._chunk is None else self._chunk.refusal
