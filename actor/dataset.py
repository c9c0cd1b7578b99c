"""Frames of episodes, and batches as pure functions of (seed, step), so that training resumes exactly.

One frame supervises several prompts. What the expert would do for each subtask is stored with the episode
(`Episode.alternatives`), so that language decides, and not the layout of the demonstrations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from actor.augment import Change, draw_change
from actor.hindsight import HindsightConfig
from actor.labels import labels_of
from actor.transforms import ResizeWithPad
from actor.weights import ActorConfig
from predimem.core.episode_folder import list_episodes, load_episodes
from predimem.core.episodes import Episode, check_subtasks
from predimem.core.frames import Frames
from predimem.core.seeds import refuse_evaluation_seed
from predimem.core.task_weights import check_task_weights, weights_of


@dataclass(frozen=True)
class SamplingConfig:
    """How a batch is drawn.

    frames_per_batch: how many frames a batch has.
    prompts_per_frame: how many prompts share one image encoding.
    instruction_share: the share of prompts that are the task's instruction, as the reactive policy gets it. Their label
        is the goal's chunk, without a target, because no image shows it; in episodes without a goal it is the chunk
        and the target of the current subtask.
    task_weights: how often each task is drawn, however many frames it has: pattern of the name -> weight, of which the
        first that matches counts (`*` is any other task). Without any, each frame is drawn equally often.
    hold_share: the share of prompts whose subtask has no target although others have one.
    idle_share: the share of frames in which no subtask has a target.
    brightness: how much the brightness of images is changed.
    shift_px: images are shifted by up to this many pixels; pointing targets move along.
    """

    frames_per_batch: int = 12
    prompts_per_frame: int = 6
    instruction_share: float = 0.1
    task_weights: dict[str, float] = field(default_factory=dict, hash=False)
    hold_share: float = 0.05
    idle_share: float = 0.08
    brightness: float = 0.07
    shift_px: int = 2

    def __post_init__(self) -> None:
        if self.frames_per_batch < 1 or self.prompts_per_frame < 1:
            raise ValueError("frames_per_batch and prompts_per_frame must be at least 1")
        for name in ("instruction_share", "hold_share", "idle_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        check_task_weights(self.task_weights)


@dataclass(frozen=True, eq=False)
class Batch:
    """b frames with g prompts each: n = b · g prompts in the order of the frames. All values are in physical units.

    images: uint8 [b, C, H, W, 3].
    seen: bool [b, C], False where a camera is missing and its image black.
    state: float32 [b, D].
    prompts: n subtasks or instructions.
    chunks: float32 [n, H, A], the labels.
    targets_m: float32 [n, 3], where the target is; NaN where a prompt has none (for instructions see `SamplingConfig`).
    pixels: float32 [n, C, 2], where each camera sees the target, in fractions of the image; NaN likewise, and
        for a camera that is missing.
    aimed_weight: what a mean over the prompts with a target counts in the mean over all parts of the batch, which have
        different numbers of such prompts; 1 for a whole batch.
    in_view_weight: likewise for the targets in view.
    """

    images: np.ndarray
    seen: np.ndarray
    state: np.ndarray
    prompts: tuple[str, ...]
    chunks: np.ndarray
    targets_m: np.ndarray
    pixels: np.ndarray
    aimed_weight: float = 1.0
    in_view_weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Draw:
    """A batch before its images are read; the other fields are those of `Batch`.

    frames: the (episode, step) of each of the b frames.
    change: how the images are changed; None: not at all.
    """

    frames: tuple[tuple[int, int], ...]
    prompts: tuple[str, ...]
    chunks: np.ndarray
    targets_m: np.ndarray
    pixels: np.ndarray
    change: Change | None


class FrameSet:
    """The frames of some episodes.

    Images are kept in memory as uint8 of the model's image size. Without `in_memory` they are read from the episode
    files and resized for each batch, which gives the same batches.

    active: each (episode, step) where some prompt has a target.
    idle: each (episode, step) where every prompt means to hold still.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        cameras: Sequence[str],
        horizon: int,
        image_size: int,
        in_memory: bool = True,
        openpi_exact: bool = False,
        hindsight: HindsightConfig | None = None,
        base_m: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.cameras = tuple(cameras)
        self._resize = ResizeWithPad(image_size, openpi_exact)
        self.horizon = horizon
        self.in_memory = in_memory
        self._labels = [labels_of(episode, horizon, cameras, hindsight, base_m) for episode in episodes]
        views = [[episode.images.get(name) for name in self.cameras] for episode in episodes]
        self._views = [[self._resized(frames) for frames in view] for view in views] if in_memory else views
        self._black = np.zeros((image_size, image_size, 3), np.uint8)
        self.episodes = [dataclasses.replace(episode, images={}) for episode in episodes]
        self.active: list[tuple[int, int]] = []
        self.idle: list[tuple[int, int]] = []
        for e, labels in enumerate(self._labels):
            aimed = (labels.valid & np.isfinite(labels.targets_m).all(-1)).any(1)
            for t in np.flatnonzero(labels.valid.any(1)):
                (self.active if aimed[t] else self.idle).append((e, int(t)))
        self._active_by_task, self._idle_by_task = self._by_task(self.active), self._by_task(self.idle)

    @property
    def prompts(self) -> list[str]:
        """Every subtask and instruction, sorted."""
        subtasks = {subtask for labels in self._labels for subtask in labels.subtasks}
        return sorted(subtasks | self.instructions)

    @property
    def instructions(self) -> frozenset[str]:
        return frozenset(episode.instruction for episode in self.episodes)

    @property
    def states(self) -> np.ndarray:
        """float32 [frames, D]."""
        return np.concatenate([episode.state for episode in self.episodes])

    @property
    def chunks(self) -> np.ndarray:
        """float32 [labels, H, A]: every valid label."""
        return np.concatenate([labels.chunks[labels.valid] for labels in self._labels])

    @property
    def chunk_states(self) -> np.ndarray:
        """float32 [labels, D]: the state at the beginning of each of the `chunks`."""
        pairs = zip(self.episodes, self._labels, strict=True)
        return np.concatenate([episode.state[np.nonzero(labels.valid)[0]] for episode, labels in pairs])

    @property
    def targets_m(self) -> np.ndarray:
        """float32 [labels, 3]: every known target position; may be empty."""
        flat = np.concatenate([labels.targets_m[labels.valid] for labels in self._labels])
        return flat[np.isfinite(flat).all(-1)]

    def draw(self, rng: np.random.Generator, config: SamplingConfig, augment: bool = True) -> Draw:
        """Everything that a batch needs of chance; no image is read."""
        frames = [self._draw_frame(rng, config) for _ in range(config.frames_per_batch)]
        drawn = [self._draw_prompt(rng, e, t, config) for e, t in frames for _ in range(config.prompts_per_frame)]
        prompts, chunks, targets_m, pixels = zip(*drawn, strict=True)
        pixels_array, change = np.stack(pixels).astype(np.float32), None
        pixels_array[~np.repeat(self._seen(frames), config.prompts_per_frame, axis=0)] = np.nan
        if augment:
            change = draw_change(rng, len(frames), config.shift_px, config.brightness)
            size = self._black.shape[0]
            shift = np.repeat(change.shift(size), config.prompts_per_frame, axis=0)[:, None]
            pixels_array = (pixels_array + shift).astype(np.float32)
        return Draw(tuple(frames), prompts, np.stack(chunks), np.stack(targets_m), pixels_array, change)

    def read(self, draw: Draw, part: int = 0, parts: int = 1) -> Batch:
        """One of the equal parts, by frames, of the batch that was drawn."""
        b, n = len(draw.frames) // parts, len(draw.prompts) // parts
        rows, shown = slice(part * n, (part + 1) * n), slice(part * b, (part + 1) * b)
        frames = draw.frames[shown]
        images = np.stack([np.stack([self._image(view, t) for view in self._views[e]]) for e, t in frames])
        aimed = np.isfinite(draw.targets_m).all(-1)
        in_view = ((draw.pixels >= 0) & (draw.pixels < 1)).all(-1)
        return Batch(
            images=images if draw.change is None else draw.change.of(shown).apply(images),
            seen=self._seen(frames),
            state=np.stack([self.episodes[e].state[t] for e, t in frames]),
            prompts=draw.prompts[rows],
            chunks=draw.chunks[rows],
            targets_m=draw.targets_m[rows],
            pixels=draw.pixels[rows],
            aimed_weight=_weight(aimed, rows, parts),
            in_view_weight=_weight(in_view, rows, parts),
        )

    def batch(self, rng: np.random.Generator, config: SamplingConfig, augment: bool = True) -> Batch:
        return self.read(self.draw(rng, config, augment))

    def _draw_frame(self, rng: np.random.Generator, config: SamplingConfig) -> tuple[int, int]:
        idle = bool(self.idle) and (not self.active or rng.random() < config.idle_share)
        frames = self.idle if idle else self.active
        if config.task_weights:
            groups = self._idle_by_task if idle else self._active_by_task
            weights = np.array(weights_of(groups, config.task_weights))
            frames = list(groups.values())[rng.choice(len(groups), p=weights / weights.sum())]
        return frames[rng.integers(len(frames))]

    def _by_task(self, frames: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        groups: dict[str, list[tuple[int, int]]] = {}
        for frame in frames:
            groups.setdefault(self.episodes[frame[0]].task, []).append(frame)
        return groups

    def _draw_prompt(
        self, rng: np.random.Generator, e: int, t: int, config: SamplingConfig
    ) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
        episode, labels = self.episodes[e], self._labels[e]
        if rng.random() < config.instruction_share:
            current = labels.subtasks.index(episode.subtask_at(t))
            if episode.goal not in labels.subtasks:
                targets = labels.targets_m[t, current], labels.pixels[t, current]
                return episode.instruction, labels.chunks[t, current], *targets
            k = labels.subtasks.index(episode.goal)
            if not labels.valid[t, k]:  # the goal cannot be acted on yet: do as the current subtask says
                k = current
            nothing = np.full_like(labels.pixels[t, k], np.nan)
            return episode.instruction, labels.chunks[t, k], np.full(3, np.nan, np.float32), nothing
        aimed = labels.valid[t] & np.isfinite(labels.targets_m[t]).all(-1)
        resting = labels.valid[t] & ~aimed
        rest = resting.any() and (not aimed.any() or rng.random() < config.hold_share)
        k = rng.choice(np.flatnonzero(resting if rest else aimed))
        return labels.subtasks[k], labels.chunks[t, k], labels.targets_m[t, k], labels.pixels[t, k]

    def _seen(self, frames: Sequence[tuple[int, int]]) -> np.ndarray:
        """bool [b, C]: whether each frame's episode has each camera."""
        return np.array([[view is not None for view in self._views[e]] for e, _ in frames])

    def _image(self, view: Frames | None, t: int) -> np.ndarray:
        return self._black if view is None else self._resize(view[t])

    def _resized(self, frames: Frames | None) -> Frames | None:
        return (
            None if frames is None else Frames(np.stack([self._resize(image) for image in frames.images]), frames.rows)
        )


def load_frame_sets(
    roots: str | Path | Sequence[str | Path],
    config: ActorConfig,
    val_every: int,
    memory_gb: float = math.inf,
    hindsight: HindsightConfig | None = None,
) -> tuple[FrameSet, FrameSet]:
    """Training and validation frames of the episodes under one root or several.

    Every `val_every`-th episode, in the fixed order of `list_episodes`, root by root, is for validation. Episodes with
    the same task and seed, such as mirrored ones, are on the same side of the split and count as one. Evaluation seeds
    are refused. Images that would take more than `memory_gb` in all are left in the files.
    """
    folders = [roots] if isinstance(roots, str | Path) else list(roots)
    paths = [path for folder in folders for path in list_episodes(folder)]
    cameras, horizon, size = config.cameras, config.model.action_horizon, config.model.image_size
    where = ", ".join(map(str, folders))
    episodes = [episode for folder in folders for episode in load_episodes(folder)]
    if len(episodes) != len(paths):
        raise ValueError(f"{where} held {len(paths)} episodes, then {len(episodes)}: train once all of them are made")
    for path, episode in zip(paths, episodes, strict=True):
        refuse_evaluation_seed(episode.seed, str(path))
        _check(path, episode, config)
    if hindsight is not None:
        hindsight.check_commands(episodes)
    number = {scene: i for i, scene in enumerate(dict.fromkeys(map(_scene, episodes)))}
    if len(number) < val_every:
        raise ValueError(
            f"{where} holds {len(number)} scenes (tasks with a seed) in {len(paths)} episodes; a validation split "
            f"needs at least {val_every}"
        )
    train = [episode for episode in episodes if number[_scene(episode)] % val_every]
    val = [episode for episode in episodes if number[_scene(episode)] % val_every == 0]
    images = sum(len(episode.images[n].images) for episode in episodes for n in cameras if n in episode.images)
    in_memory = images * size**2 * 3 <= memory_gb * 1e9
    more = in_memory, config.openpi_exact, hindsight, config.base_m
    return FrameSet(train, cameras, horizon, size, *more), FrameSet(val, cameras, horizon, size, *more)


def _scene(episode: Episode) -> tuple[str, str, int]:
    return episode.benchmark, episode.task, episode.seed


def _check(path: Path, episode: Episode, config: ActorConfig) -> None:
    check_subtasks(episode, path)
    if episode.state.shape[1] != config.state_dim or episode.actions.shape[1] != config.action_dim:
        raise ValueError(
            f"{path}: the config expects states of {config.state_dim} and actions of {config.action_dim} "
            f"numbers, got {episode.state.shape[1]} and {episode.actions.shape[1]}"
        )
    if not set(config.cameras) & set(episode.images):
        raise ValueError(f"{path}: expected cameras {list(config.cameras)}, got {list(episode.images)}")
    for name in config.cameras:
        if name not in episode.images and name in config.optional_cameras:
            continue
        if name not in episode.images:
            raise ValueError(
                f"{path}: expected cameras {list(config.cameras)}, got {list(episode.images)}; name a camera that some "
                "episodes lack in optional_cameras"
            )
        if episode.images[name].shape[1:3] != tuple(config.camera_shape):
            raise ValueError(
                f"{path}: {name} should be {list(config.camera_shape)} (height, width), got "
                f"{list(episode.images[name].shape[1:3])}"
            )


def _weight(counted: np.ndarray, rows: slice, parts: int) -> float:
    whole = int(counted.sum())
    return parts * int(counted[rows].sum()) / whole if whole else 1.0
