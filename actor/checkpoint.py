"""Checkpoints that are whole under their name, and Ctrl-C that waits for the end of a step."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from predimem.core.files import AtomicWrite


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that training goes on from. Random numbers are functions of (seed, step), so that none are kept."""

    step: int
    learner: dict[str, Any]
    average: dict[str, Any]
    optimiser: dict[str, Any]
    config: dict[str, Any]
    episodes: str


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    with AtomicWrite(path) as partial:
        torch.save({f: getattr(checkpoint, f) for f in checkpoint.__dataclass_fields__}, partial)


def load_checkpoint(path: Path) -> Checkpoint:
    """Raises ValueError if the file is missing or damaged."""
    try:
        return Checkpoint(**torch.load(path, map_location="cpu", weights_only=True))
    except FileNotFoundError:
        raise ValueError(f"no checkpoint at {path}: train first with `predimem train actor`") from None
    except Exception as error:  # torch raises whatever its unpickler met
        raise ValueError(f"{path} is not a whole checkpoint: {error}") from error


class Interruption:
    """Within it, the first Ctrl-C only sets `requested`; the second one interrupts at once."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
