"""The batches of a training, read ahead by worker processes.

A batch and its noise are functions of (seed, step) alone, so that a run that was interrupted and resumed sees the same
samples as one that was not. With several processes, or with accumulation, each takes its part of that batch: the number
of GPUs changes how a batch is computed, not what is in it.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from actor import flow_matching, real_time
from actor.dataset import Batch, FrameSet
from actor.training.config import ActorTrainConfig


@dataclass(frozen=True, eq=False)
class FlowDraw:
    """What the flow-matching loss needs of chance, for m = n · flow_samples chunks.

    noise: float32 [m, H, A] of the model's action width. time: float32 [m]. delay: int64 [m], see
    `real_time.draw_delays`.
    """

    noise: Tensor
    time: Tensor
    delay: Tensor | None


def draw_flow(config: ActorTrainConfig, step: int, prompts: int, part: int = 0, parts: int = 1) -> FlowDraw:
    """That of a step's batch, of which one part is returned. prompts: n of the whole batch."""
    seed = int(np.random.default_rng([config.seed, step, 1]).integers(2**62))
    generator = torch.Generator().manual_seed(seed)
    model, count = config.actor.model, prompts * config.flow_samples
    noise = torch.randn(count, model.action_horizon, model.action_dim, generator=generator)
    time = flow_matching.sample_time(count, generator)
    delay = real_time.draw_delays(model.trained_delay, count, generator)
    mine = slice(part * count // parts, (part + 1) * count // parts)
    return FlowDraw(noise[mine], time[mine], None if delay is None else delay[mine])


class StepParts(Dataset):
    """Item i is part i % accumulation of what one process computes in step i // accumulation."""

    def __init__(self, frames: FrameSet, config: ActorTrainConfig, process: int = 0, processes: int = 1) -> None:
        check_parts(config, processes)
        self._frames, self._config, self._process, self._processes = frames, config, process, processes

    def __getitem__(self, index: int) -> tuple[Tensor, Batch, FlowDraw]:
        """The images apart, as a tensor: a worker hands tensors over in shared memory."""
        config, accumulation = self._config, self._config.compute.accumulation
        step, turn = divmod(index, accumulation)
        draw = self._frames.draw(np.random.default_rng([config.seed, step]), config.sampling)
        part, parts = self._process * accumulation + turn, self._processes * accumulation
        batch = self._frames.read(draw, part, parts)
        images, rest = torch.from_numpy(batch.images), dataclasses.replace(batch, images=batch.images[:0])
        return images, rest, draw_flow(config, step, len(draw.prompts), part, parts)


def check_parts(config: ActorTrainConfig, processes: int) -> None:
    frames, parts = config.sampling.frames_per_batch, processes * config.compute.accumulation
    if frames % parts:
        raise ValueError(
            f"sampling.frames_per_batch is the batch of all processes together: {frames} frames cannot be divided "
            f"equally among {processes} processes with compute.accumulation {config.compute.accumulation}; make it a "
            f"multiple of {parts}"
        )


def read_ahead(
    frames: FrameSet, config: ActorTrainConfig, first_step: int, process: int = 0, processes: int = 1
) -> Iterator[tuple[Batch, FlowDraw]]:
    """The parts of one process from `first_step` to the last step, in order.

    Raises ValueError for a batch that cannot be divided equally, and what reading the episodes raises.
    """
    workers, accumulation = config.compute.workers, config.compute.accumulation
    loader = DataLoader(
        StepParts(frames, config, process, processes),
        batch_size=None,
        sampler=range(first_step * accumulation, config.steps * accumulation),
        num_workers=workers,
        collate_fn=_as_it_is,
        worker_init_fn=_leave_ctrl_c_to_the_trainer,
        prefetch_factor=4 if workers else None,
    )
    for images, batch, flow in loader:
        yield dataclasses.replace(batch, images=images.numpy()), flow


def _as_it_is(item: object) -> object:
    return item


def _leave_ctrl_c_to_the_trainer(worker: int) -> None:
    """It goes to all processes of a terminal; the step that is being computed still needs its batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
