"""Checkpoints: PyTorch's distributed ones, into which every process writes what it holds.

They can be read with another number of processes. A folder `checkpoint-STEP` has its name only once it is whole. It
lacks the weights that are not trained: they come from where the run began.
"""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from actor.training.average import Average

NOTE_FILE = "checkpoint.json"
FORMER_FILE = "checkpoint.pt"  # a whole checkpoint of earlier versions
_NAME, _PARTIAL = "checkpoint-", "partial-checkpoint"


@dataclass(frozen=True)
class Note:
    """What is known of a checkpoint without reading weights. Random numbers are functions of (seed, step), so that none
    are kept.

    episodes: a hash of the names of the episodes. optimiser: whether the optimiser's state was saved.
    """

    step: int
    config: dict[str, Any]
    episodes: str
    optimiser: bool


def checkpoints(run: Path) -> list[Path]:
    """Those of a run, the latest last. There are two where a process died after writing one."""
    return sorted(run.glob(f"{_NAME}*"))


def read_note(run: Path) -> Note | None:
    """Of the latest checkpoint; None where there is none. Raises ValueError if it is damaged."""
    if (run / FORMER_FILE).is_file():
        raise ValueError(
            f"{run / FORMER_FILE} was written by an earlier version, from which training cannot go on: choose another "
            "--out, and say continue_from where the run has weights"
        )
    found = checkpoints(run)
    if not found:
        return None
    try:
        return Note(**json.loads((found[-1] / NOTE_FILE).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(found[-1], error) from error


def save_checkpoint(
    run: Path,
    note: Note,
    module: nn.Module,
    average: Average,
    optimiser: torch.optim.Optimizer,
    accelerator: Accelerator,
) -> None:
    """All processes have to call this. The earlier checkpoint is deleted once this one is whole."""
    partial, target = run / _PARTIAL, run / f"{_NAME}{note.step:08d}"
    if accelerator.is_main_process:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    accelerator.wait_for_everyone()
    save(_state(module, average, optimiser if note.optimiser else None), checkpoint_id=partial, no_dist=_alone())
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        (partial / NOTE_FILE).write_text(json.dumps(asdict(note)) + "\n")
        before = checkpoints(run)
        if target in before:  # a run of no further steps
            shutil.rmtree(target)
        partial.rename(target)
        for path in before:
            if path != target:
                shutil.rmtree(path)
    accelerator.wait_for_everyone()


def load_checkpoint(
    run: Path, note: Note, module: nn.Module, average: Average, optimiser: torch.optim.Optimizer
) -> None:
    """Puts the latest checkpoint into what is given. Raises ValueError if it is damaged or has no optimiser state."""
    path = checkpoints(run)[-1]
    if not note.optimiser:
        raise ValueError(
            f"{path} was saved without the optimiser's state (save_optimiser: false): training cannot go on from it; "
            f"begin another run, with continue_from where {run} has weights"
        )
    state = _state(module, average, optimiser)
    try:
        load(state, checkpoint_id=path, no_dist=_alone())
    except (
        OSError,
        EOFError,
        KeyError,
        ValueError,
        RuntimeError,
        pickle.UnpicklingError,
        CheckpointException,
    ) as error:
        raise _damaged(path, error) from error
    set_optimizer_state_dict(module, optimiser, state["optimiser"])


def _state(module: nn.Module, average: Average, optimiser: torch.optim.Optimizer | None) -> dict[str, Any]:
    weights: dict[str, Tensor] = {n: p.detach() for n, p in module.named_parameters() if p.requires_grad}
    state: dict[str, Any] = {"weights": weights, "average": average.values}
    if optimiser is not None:
        state["optimiser"] = get_optimizer_state_dict(module, optimiser)
    return state


def _alone() -> bool:
    return not torch.distributed.is_initialized()


def _damaged(path: Path, error: BaseException) -> ValueError:
    return ValueError(f"{path} is not a whole checkpoint: {error}")
