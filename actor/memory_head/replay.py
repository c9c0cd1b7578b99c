"""What the memory shows at the decisions of an episode: in training the same memory is replayed that acts later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actor.memory_head.config import HeadConfig
from actor.memory_head.head import Head
from actor.memory_head.lessons import Batch, Lesson
from memory_bank import make_memory
from predimem.core.types import MemorySnapshot


@dataclass(frozen=True)
class Remembered:
    """windows: int64 [B, S, W], the steps in the recent window, newest first, -1 before the episode began.
    keyframes: int64 [B, K], the steps of all keyframes of an episode. ages: int64 [B, S, K]. there: bool [B, S, K]."""

    windows: np.ndarray
    keyframes: np.ndarray
    ages: np.ndarray
    there: np.ndarray


def everything(batch: Batch, config: HeadConfig) -> Remembered:
    """All frames that are older than the recent window, as if each of them had been nominated."""
    size, length, _ = batch.rows.shape
    ages = batch.steps[:, :, None] - np.arange(length)
    there = ages >= config.memory.window_steps
    return Remembered(_windows(batch, config), np.tile(np.arange(length), (size, 1)), ages, there)


def nothing(batch: Batch, config: HeadConfig) -> Remembered:
    """The recent window alone."""
    none = np.zeros((*batch.steps.shape, 1), np.int64)
    return Remembered(_windows(batch, config), np.zeros((len(batch.steps), 1), np.int64), none, none > 0)


def kept(batch: Batch, head: Head, worth: np.ndarray | None) -> Remembered:
    """What the memory keeps. worth: bool [B, T], what a learned nominator says of each frame; None for a rule."""
    shown = [
        _replay(lesson, steps, head, None if worth is None else worth[n])
        for n, (lesson, steps) in enumerate(zip(batch.lessons, batch.steps, strict=True))
    ]
    union = [sorted({f.step for snapshot in snapshots.values() for f in snapshot.keyframes}) for snapshots in shown]
    keyframes = np.zeros((len(union), max(1, *map(len, union))), np.int64)
    there = np.zeros((*batch.steps.shape, keyframes.shape[1]), bool)
    for n, (steps, snapshots) in enumerate(zip(union, shown, strict=True)):
        keyframes[n, : len(steps)] = steps
        for s, step in enumerate(batch.steps[n]):
            held = {frame.step for frame in snapshots[int(step)].keyframes}
            there[n, s, : len(steps)] = [k in held for k in steps]
    ages = batch.steps[:, :, None] - keyframes[:, None, :]
    return Remembered(_windows(batch, head.config), keyframes, ages, there)


def _replay(lesson: Lesson, steps: np.ndarray, head: Head, worth: np.ndarray | None) -> dict[int, MemorySnapshot]:
    memory = make_memory(head.config.memory)
    wanted, shown = set(steps.tolist()), {}
    for observation in lesson.observations[: max(wanted) + 1]:
        memory.observe(observation)
        step = observation.step
        if worth is None or step in wanted:
            snapshot = memory.snapshot()
            if step in wanted:
                shown[step] = snapshot
            nominated = head.is_novel(snapshot) if worth is None else worth[step]
        else:
            nominated = worth[step]
        if nominated:
            memory.nominate((step,))
    return shown


def _windows(batch: Batch, config: HeadConfig) -> np.ndarray:
    offsets = np.arange(config.memory.recent_window) * config.memory.recent_stride_steps
    return np.maximum(batch.steps[:, :, None] - offsets, -1)
