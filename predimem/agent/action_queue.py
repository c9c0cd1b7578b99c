"""The actions that are to be executed next, by the control step that they are meant for."""

from __future__ import annotations

import numpy as np

from predimem.core.types import ActionChunk


class ActionQueue:
    """Holds the newest chunk's actions. A chunk that arrives late loses the steps that have passed."""

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

    def executed(self, step: int) -> int:
        """How many of the chunk's steps lie before `step` (its horizon if there is no chunk)."""
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
