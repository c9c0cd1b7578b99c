"""The log of a training: JSON lines, and whatever tracker is asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from predimem.core.files import write_text

LOG_FILE = "log.jsonl"


class Log:
    """Writes mean losses and validation figures. Resuming drops the lines of later steps.

    Only the main process writes; all of them have to call `write`, because it is their mean.
    """

    def __init__(self, path: Path, start: int, accelerator: Accelerator) -> None:
        text = path.read_text() if path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]  # the last line may have been cut short
        rows = [row for row in map(json.loads, whole.splitlines()) if row["step"] <= start]
        self._accelerator = accelerator
        accelerator.wait_for_everyone()  # until all have read
        if accelerator.is_main_process:
            write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
        self._path = path
        self._before = max((row.get("seconds", 0.0) for row in rows), default=0.0)
        self._began = time.monotonic()
        self._losses: dict[str, list[Tensor]] = {}

    @property
    def seconds(self) -> float:
        """Training time, over all the parts of an interrupted run."""
        return self._before + time.monotonic() - self._began

    def add(self, losses: dict[str, Tensor]) -> None:
        """The losses of a step stay on their device until they are written, so that no GPU is waited for."""
        for name, value in losses.items():
            self._losses.setdefault(name, []).append(value)

    def write(self, step: int, learning_rate: float) -> dict[str, float]:
        """The row that was written."""
        means: Any = torch.stack([torch.stack(values).double().mean() for values in self._losses.values()])
        if self._accelerator.num_processes > 1:
            means = self._accelerator.reduce(means, "mean")
        row = {"step": step, "seconds": round(self.seconds, 1), "learning_rate": learning_rate}
        row |= dict(zip(self._losses, means.tolist(), strict=True))
        self._losses = {}
        self._append(row)
        return row

    def write_validation(self, step: int, figures: dict[str, float]) -> None:
        self._append({"step": step, **{f"val_{name}": value for name, value in figures.items()}})

    def _append(self, row: dict[str, float]) -> None:
        if not self._accelerator.is_main_process:
            return
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._accelerator.log({name: value for name, value in row.items() if name != "step"}, step=int(row["step"]))


def begin_tracking(accelerator: Accelerator, config: dict[str, Any]) -> None:
    """Tells the trackers, if there are any, what is trained. TensorBoard's files are in `out`/predimem-actor."""
    if accelerator.log_with:
        accelerator.init_trackers("predimem-actor", config=dict(_flat(config)))


def end_tracking(accelerator: Accelerator) -> None:
    for tracker in accelerator.trackers:
        tracker.finish()


def _flat(config: dict[str, Any], before: str = "") -> Iterator[tuple[str, str | float]]:
    """Trackers take text and numbers only."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value if isinstance(value, int | float | str) else str(value)
