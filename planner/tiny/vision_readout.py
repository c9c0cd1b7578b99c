"""A training-only aid for a tiny vision tower: it learns what a whole timestep shows, not only what each cell shows.

A pretrained tower knows what an open drawer is. A tiny one that only predicts colours of cells spends itself on the
table. Therefore the merged features of all cameras of a timestep, and the instruction, also have to tell the subtask
that is being executed, how far it has got, and the robot's own state. The readout is thrown away afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from planner.crop import Crop, cropped
from predimem.core.episodes import Episode


@dataclass(frozen=True, eq=False)
class StepLabels:
    """What N timesteps show.

    cameras: C, how many images a timestep has; they are adjacent.
    instructions, subtasks: all that there are.
    instruction, subtask: int64 [N], which of them belongs to each timestep.
    measured: float32 [N, D], the share of the subtask that is over, then the robot's state; each dimension is
        standardised over N.
    """

    cameras: int
    instructions: tuple[str, ...]
    subtasks: tuple[str, ...]
    instruction: Tensor
    subtask: Tensor
    measured: Tensor

    def __len__(self) -> int:
        return len(self.subtask)


def sample_steps(
    episodes: Sequence[Episode],
    cameras: Sequence[str],
    limit: int,
    rng: np.random.Generator,
    crop: Crop | None = None,
) -> tuple[np.ndarray, StepLabels]:
    """Images of up to `limit` timesteps, uint8 [N C, H, W, 3], drawn without replacement, and their labels."""
    taken = [(e, int(t)) for e in episodes for t in np.flatnonzero(e.image_steps)]
    chosen = [taken[i] for i in np.sort(rng.permutation(len(taken))[:limit])]
    shown = ((episode.images[camera][step], camera) for episode, step in chosen for camera in cameras)
    images = np.stack([cropped(image, camera, crop or {}) for image, camera in shown])
    instructions = tuple(sorted({episode.instruction for episode in episodes}))
    subtasks = tuple(sorted({span.label for episode in episodes for span in episode.subtasks}))
    measured = torch.tensor(np.stack([[_progress(e, t), *e.state[t]] for e, t in chosen]), dtype=torch.float32)
    measured = (measured - measured.mean(0)) / measured.std(0).clamp(min=1e-3)
    return images, StepLabels(
        len(cameras),
        instructions,
        subtasks,
        torch.tensor([instructions.index(episode.instruction) for episode, _ in chosen]),
        torch.tensor([subtasks.index(episode.subtask_at(step)) for episode, step in chosen]),
        measured.clamp(-4.0, 4.0),
    )


class StepReadout(nn.Module):
    """Reads subtask and measurements off all merged features of a timestep, `features` numbers, and its instruction."""

    def __init__(self, features: int, labels: StepLabels, hidden: int = 192):
        super().__init__()
        self.instruction = nn.Embedding(len(labels.instructions), 64)
        self.hidden = nn.Sequential(nn.Linear(features + 64, hidden), nn.GELU())
        self.subtask = nn.Linear(hidden, len(labels.subtasks))
        self.measured = nn.Linear(hidden, labels.measured.shape[1])

    def loss(self, features: Tensor, labels: StepLabels, index: Tensor) -> Tensor:
        """features [B, F] of the timesteps `index`, int64 [B]."""
        subtask, measured = self(features, labels.instruction[index])
        return F.cross_entropy(subtask, labels.subtask[index]) + F.mse_loss(measured, labels.measured[index])

    def forward(self, features: Tensor, instruction: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(torch.cat([features, self.instruction(instruction)], 1))
        return self.subtask(hidden), self.measured(hidden)


def by_timestep(features: Sequence[Tensor], cameras: int) -> Tensor:
    """Features of images, each [N C, cells, Z], as one row for each timestep: [N, everything]."""
    return torch.cat([f.reshape(len(f) // cameras, -1) for f in features], 1)


def _progress(episode: Episode, step: int) -> float:
    span = next(s for s in episode.subtasks if s.start <= step < s.end)
    return (step - span.start) / (span.end - span.start)
