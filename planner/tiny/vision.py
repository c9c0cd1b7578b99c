"""Self-supervised pretraining of a tiny vision tower, from pixels alone. Afterwards the tower is frozen.

A pretrained Qwen3-VL brings a tower that sees colours; a tiny one has to learn to see them first. Every merged token
predicts a thumbnail of its own cell of the image, and which palette colours are present there. The palette covers the
frames' colours, rare ones as well, so that an object of thirty pixels counts as much as the table. This part needs no
labels and no knowledge of the task; two training-only aids, which are off by default, do (see `VisionConfig`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

from planner.tiny.vision_readout import StepLabels, StepReadout, by_timestep
from planner.tiny.vision_scenes import SceneLabels, SceneReadout, Scenes, scene_report
from predimem.core.files import AtomicWrite, write_json
from predimem.core.progress import Bar

WEIGHTS, REPORT, CHECKPOINT = "vision.safetensors", "vision.json", "vision.partial.pt"
_LEVELS = 32  # colours are binned to 5 bits a channel


@dataclass(frozen=True)
class VisionConfig:
    """How the tower is pretrained.

    directory: where the tower is kept, for all planners that share it.
    palette_size: how many colours the palette has.
    present_pixels: a colour counts as present in a cell from this many pixels on.
    steps, batch_size, learning_rate, seed: as usual.
    shift_pixels: frames are moved by up to this many pixels.
    max_frames: how many frames are used; they are drawn at random.
    save_steps: a checkpoint is written after every so many steps.
    step_weight: the weight of the readout of whole timesteps (`planner.tiny.vision_readout`), a training-only aid that
        needs labelled episodes. With 0 the tower learns from pixels alone.
    scenes: a folder of images of scenes with facts (`planner.tiny.vision_scenes`), another training-only aid; or null.
    scene_share: the share of each batch that shows these scenes.
    scene_weight: the weight of the readout of their facts.
    """

    directory: str = "runs/train/planner-vision"
    palette_size: int = 32
    present_pixels: int = 5
    steps: int = 900
    batch_size: int = 32
    learning_rate: float = 2e-3
    shift_pixels: int = 6
    max_frames: int = 6_000
    save_steps: int = 200
    seed: int = 0
    step_weight: float = 0.0
    scenes: str | None = None
    scene_share: float = 0.5
    scene_weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scene_share < 1:
            raise ValueError(f"vision.scene_share is of each batch: expected in (0, 1), got {self.scene_share}")


_LATER = {"step_weight": 0.0, "scenes": None, "scene_share": 0.5, "scene_weight": 1.0}  # fields older reports lack


def fit_palette(frames: np.ndarray, size: int) -> np.ndarray:
    """[size, 3] float32 RGB that cover the colours of uint8 [N, H, W, 3], rare ones included.

    Farthest-point selection (each new colour is the one farthest from all so far), then three rounds of
    k-means. Colours of fewer than N / 10 pixels in all are left out as noise.
    """
    bins = (frames // (256 // _LEVELS)).reshape(-1, 3).astype(np.int64)
    counts = np.bincount(bins @ (_LEVELS**2, _LEVELS, 1), minlength=_LEVELS**3)
    used = np.flatnonzero(counts >= max(1, len(frames) // 10))
    colours = np.stack([used // _LEVELS**2, used // _LEVELS % _LEVELS, used % _LEVELS], 1) + 0.5
    colours = (colours * (256 // _LEVELS)).astype(np.float32)
    weights = np.sqrt(counts[used])
    centres = colours[[np.argmax(weights)]]
    for _ in range(min(size, len(colours)) - 1):
        distance = ((colours[:, None] - centres[None]) ** 2).sum(-1).min(1)
        centres = np.concatenate([centres, colours[[np.argmax(distance)]]])
    for _ in range(3):
        nearest = _nearest(colours, centres)
        for k in np.unique(nearest):
            mine = nearest == k
            centres[k] = np.average(colours[mine], axis=0, weights=weights[mine])
    return centres


class CellTargets:
    """Gives what each cell of an image holds: thumbnails and palette counts, for square cells of `cell` px."""

    def __init__(self, palette: np.ndarray, cell: int, present_pixels: int):
        step = 256 // _LEVELS
        axis = (np.arange(_LEVELS) + 0.5) * step
        grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3).astype(np.float32)
        self._table = torch.from_numpy(_nearest(grid, palette))
        self._size, self._cell, self._present = len(palette), cell, present_pixels

    def __call__(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """uint8 [N, 3, H, W] -> per cell, row-major: thumbnails [N, cells, 48] in -1..1, log counts
        [N, cells, K], presence [N, cells, K] (0 or 1)."""
        count, _, height, width = frames.shape
        rows, columns = height // self._cell, width // self._cell
        small = F.avg_pool2d(frames.float() / 127.5 - 1.0, self._cell // 4)
        small = small.view(count, 3, rows, 4, columns, 4).permute(0, 2, 4, 1, 3, 5)
        bins = frames.long() // (256 // _LEVELS)
        colour = self._table[(bins[:, 0] * _LEVELS + bins[:, 1]) * _LEVELS + bins[:, 2]]
        colour = colour.view(count, rows, self._cell, columns, self._cell).permute(0, 1, 3, 2, 4)
        colour = colour.reshape(count, rows * columns, -1)
        counts = torch.zeros(count, rows * columns, self._size)
        counts.scatter_add_(2, colour, torch.ones_like(colour, dtype=torch.float32))
        present = (counts >= self._present).float()
        return small.reshape(count, rows * columns, 48), torch.log1p(counts), present


class _Readout(nn.Module):
    """Linear readouts of the targets from one set of merged features."""

    def __init__(self, width: int, palette_size: int):
        super().__init__()
        self.thumbnail = nn.Linear(width, 48)
        self.log_counts = nn.Linear(width, palette_size)
        self.present = nn.Linear(width, palette_size)

    def loss(self, features: Tensor, targets: tuple[Tensor, Tensor, Tensor], rarity: Tensor) -> Tensor:
        thumbnail, log_counts, present = targets
        presence = F.binary_cross_entropy_with_logits(
            self.present(features), present, pos_weight=rarity, reduction="mean"
        )
        return (
            F.mse_loss(self.thumbnail(features), thumbnail)
            + 0.1 * F.mse_loss(self.log_counts(features), log_counts)
            + presence
        )


def pretrain_tower(
    tower: Qwen3VLVisionModel,
    image_processor: Any,
    frames: np.ndarray,
    held_out: np.ndarray,
    config: VisionConfig,
    folder: Path,
    labels: StepLabels | None = None,
    scenes: tuple[Scenes, Scenes] | None = None,
) -> dict[str, Tensor]:
    """Train `tower` in place on frames uint8 [N, H, W, 3] and return its state dict.

    The result is kept in `folder`; if it is there already, it is loaded instead. Interrupted training
    goes on from its last checkpoint. labels: of the frames, for `step_weight`. scenes: for training, and held
    out. The report (`vision.json`) holds figures on the `held_out` frames and scenes. Raises ValueError if
    `folder` holds a tower of another config or size.
    """
    if (folder / WEIGHTS).is_file():
        return _load_tower(tower, config, folder)
    if config.step_weight > 0 and labels is None:
        raise ValueError("step_weight needs the labels of the frames (`planner.tiny.vision_readout.sample_steps`)")
    if config.scenes is not None and scenes is None:
        raise ValueError("vision.scenes needs images of scenes (`planner.tiny.vision_scenes.scenes_of`)")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(config.seed)
    torch.manual_seed(config.seed)
    palette = fit_palette(frames[rng.permutation(len(frames))[:400]], config.palette_size)
    vision: Any = tower.config
    targets = CellTargets(palette, vision.patch_size * vision.spatial_merge_size, config.present_pixels)
    readouts = nn.ModuleList(_Readout(vision.out_hidden_size, len(palette)) for _ in range(_levels(vision)))
    if labels is not None:
        features = labels.cameras * _levels(vision) * _cells(vision, frames) * vision.out_hidden_size
        readouts.append(StepReadout(features, labels))
    if scenes is not None:
        readouts.append(scene_readout(vision, frames, scenes[0].labels))
    tower.requires_grad_(True).train()
    embed: Any = tower.patch_embed
    embed.forward = partial(_embed_patches, embed.proj)
    trainer = _Trainer(tower, readouts, image_processor, targets, config, folder, labels, scenes)
    seconds = trainer.run(frames)
    del embed.forward
    tower.requires_grad_(False).eval()
    shown = trainer.scene_report() if scenes is not None else None
    _unit_scale(tower, image_processor, held_out[:64])
    state = {name: tensor.detach().clone() for name, tensor in tower.state_dict().items()}
    report = linear_probe(tower, image_processor, targets, frames[:1500], held_out[:500])
    report |= {"config": asdict(config), "seconds": round(seconds, 1), "palette_rgb": palette.round().tolist()}
    if shown is not None:
        report["scenes"] = shown
    write_json(folder / REPORT, report, indent=1)
    with AtomicWrite(folder / WEIGHTS) as whole:
        save_file(state, whole)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return state


def _load_tower(tower: Qwen3VLVisionModel, config: VisionConfig, folder: Path) -> dict[str, Tensor]:
    mend = f"choose another vision.directory, or delete {folder} to train the tower anew"
    if not (folder / REPORT).is_file():
        raise ValueError(f"{folder} holds features for trainings that go on from a planner (continue_from): {mend}")
    known = _LATER | json.loads((folder / REPORT).read_text())["config"] | {"directory": config.directory}
    if known != asdict(config):
        raise ValueError(f"{folder} holds a vision tower trained with another config: {mend}")
    state = load_file(folder / WEIGHTS)
    try:
        tower.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"{folder} holds a vision tower of another size: {mend}") from error
    return state


class _Trainer:
    def __init__(
        self, tower, readouts, image_processor, targets, config: VisionConfig, folder: Path, labels=None, scenes=None
    ):
        self.labels: StepLabels | None = labels
        self.scenes: tuple[Scenes, Scenes] | None = scenes
        self.tower, self.readouts, self.targets = tower, readouts, targets
        self.image_processor, self.config, self.checkpoint = image_processor, config, folder / CHECKPOINT
        self.parameters = [*tower.parameters(), *readouts.parameters()]
        self.optimiser = torch.optim.AdamW(
            self.parameters, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
        )

    def run(self, frames: np.ndarray) -> float:
        """Train to the end; wall-clock seconds, earlier tries included."""
        config, began = self.config, time.time()
        first, before = self._resume()
        stack = torch.from_numpy(frames).permute(0, 3, 1, 2)
        scenes = None if self.scenes is None else torch.from_numpy(self.scenes[0].images).permute(0, 3, 1, 2)
        rarity = self._rarity(stack)
        with Bar(config.steps, "steps", "pretraining the vision tower", done=first) as bar:
            for step in range(first, config.steps):
                generator = torch.Generator().manual_seed(config.seed * 1_000_003 + step)
                index, batch, scene_index = self._batch(stack, scenes, generator)
                batch, moved = _shifted(batch, config, generator)
                loss = self._step(batch, index, scene_index, moved, rarity, step)
                bar.add(text=f"loss {loss:.4f}")
                if (step + 1) % config.save_steps == 0:
                    self._save(step + 1, before + time.time() - began)
                    if self.scenes is not None:
                        shown = {name: value for name, value in self.scene_report(500).items() if name != "by_place"}
                        bar.note(f"vision step {step + 1}: held-out scenes {shown}")
        return before + time.time() - began

    def _batch(self, stack: Tensor, scenes: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Which frames, the images of a batch, and which images of scenes are its end."""
        size = self.config.batch_size
        if scenes is None or self.scenes is None:
            index = self._index(len(stack), size, 1 if self.labels is None else self.labels.cameras, generator)
            return index, stack[index], index[:0]
        count = round(size * self.config.scene_share)
        index = self._index(len(stack), size - count, 1 if self.labels is None else self.labels.cameras, generator)
        shown = self._index(len(scenes), count, self.scenes[0].labels.cameras, generator)
        return index, torch.cat([stack[index], scenes[shown]]), shown

    def _index(self, frames: int, size: int, cameras: int, generator: torch.Generator) -> Tensor:
        """Which of so many images make a batch; all cameras of each timestep, adjacent."""
        first = torch.randint(frames // cameras, (size // cameras,), generator=generator) * cameras
        return (first[:, None] + torch.arange(cameras)).flatten()

    def _step(
        self, batch: Tensor, index: Tensor, scene_index: Tensor, moved: Tensor, rarity: Tensor, step: int
    ) -> float:
        config = self.config
        warm_up, decay = min(1.0, (step + 1) / 50), min(1.0, 2.0 * (1.0 - step / config.steps))
        for group in self.optimiser.param_groups:
            group["lr"] = config.learning_rate * warm_up * max(0.02, decay)
        features = merged_features(self.tower, self.image_processor, batch)
        targets = self.targets(batch)
        losses = [r.loss(f, targets, rarity) for r, f in zip(self.readouts, features, strict=False)]
        loss = losses[0] + 0.5 * torch.stack(losses[1:]).sum() if losses[1:] else losses[0]
        if self.labels is not None:
            steps = index[:: self.labels.cameras] // self.labels.cameras
            readout: Any = self.readouts[len(features)]
            timesteps = by_timestep([f[: len(index)] for f in features], self.labels.cameras)
            loss = loss + config.step_weight * readout.loss(timesteps, self.labels, steps)
        if self.scenes is not None:
            labels, reader = self.scenes[0].labels, self.scene_readout
            timesteps = by_timestep([f[len(index) :] for f in features], labels.cameras)
            steps = scene_index[:: labels.cameras] // labels.cameras
            moved = moved[len(index) :].view(len(steps), labels.cameras, 2)
            loss = loss + config.scene_weight * reader.loss(timesteps, labels, steps, moved)
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        return float(loss.detach())

    @property
    def scene_readout(self) -> SceneReadout:
        readout: Any = self.readouts[-1]
        return readout

    def scene_report(self, limit: int | None = None) -> dict[str, Any]:
        """Of the held-out scenes, or of the first `limit` timesteps, spread evenly."""
        assert self.scenes is not None
        scenes = self.scenes[1].every(max(1, len(self.scenes[1].labels) // limit) if limit else 1)
        features = timestep_features(self.tower, self.image_processor, scenes.images, scenes.labels.cameras)
        return scene_report(self.scene_readout, features, scenes.labels)

    def _rarity(self, stack: Tensor) -> Tensor:
        """[K]: weight of positives, so that rare colours are not drowned by their absence."""
        share = self.targets(stack[:: max(1, len(stack) // 500)])[2].mean((0, 1))
        return ((1.0 - share) / share.clamp(min=1e-3)).clamp(1.0, 20.0)

    def _save(self, step: int, seconds: float) -> None:
        state = {
            "step": step,
            "seconds": seconds,
            "tower": self.tower.state_dict(),
            "readouts": self.readouts.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        with AtomicWrite(self.checkpoint) as whole:
            torch.save(state, whole)

    def _resume(self) -> tuple[int, float]:
        if not self.checkpoint.is_file():
            return 0, 0.0
        saved = torch.load(self.checkpoint, weights_only=True)
        self.tower.load_state_dict(saved["tower"])
        self.readouts.load_state_dict(saved["readouts"])
        self.optimiser.load_state_dict(saved["optimiser"])
        return saved["step"], saved["seconds"]


def merged_features(tower: Qwen3VLVisionModel, image_processor: Any, frames: Tensor) -> list[Tensor]:
    """The mergers' outputs, final one first: each [N, cells, Z], cells row-major. frames: uint8 [N, 3, H, W]."""
    batch = image_processor(images=list(frames), do_resize=False, return_tensors="pt")
    output = tower(batch["pixel_values"], grid_thw=batch["image_grid_thw"])
    return [f.view(len(frames), -1, f.shape[-1]) for f in (output.pooler_output, *output.deepstack_features)]


@torch.no_grad()
def timestep_features(tower: Qwen3VLVisionModel, image_processor: Any, images: np.ndarray, cameras: int) -> Tensor:
    """[N, F]: everything the mergers say of N timesteps. images: uint8 [N C, H, W, 3]."""
    parts = torch.from_numpy(images).permute(0, 3, 1, 2).split(32 * cameras)
    return torch.cat([by_timestep(merged_features(tower, image_processor, part), cameras) for part in parts])


@torch.no_grad()
def linear_probe(
    tower: Qwen3VLVisionModel, image_processor: Any, targets: CellTargets, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """How well a ridge regression on the merged features tells which colours are present in a cell.

    Per palette colour the F1 score on held-out frames, threshold 0.5; colours never present are left out.
    """
    x, y = _probe_data(tower, image_processor, targets, train)
    x_test, y_test = _probe_data(tower, image_processor, targets, test)
    weights = torch.linalg.solve(x.T @ x + 1.0 * torch.eye(x.shape[1]), x.T @ y)
    guess, truth = x_test @ weights > 0.5, y_test > 0.5
    hits = (guess & truth).sum(0).float()
    f1 = 2 * hits / (guess.sum(0) + truth.sum(0)).clamp(min=1)
    seen = truth.any(0)
    return {
        "cell_accuracy": round(float((guess == truth).float().mean()), 4),
        "mean_f1": round(float(f1[seen].mean()), 4),
        "f1": [round(float(f), 3) if s else None for f, s in zip(f1, seen, strict=True)],
    }


def _probe_data(tower, image_processor, targets: CellTargets, frames: np.ndarray) -> tuple[Tensor, Tensor]:
    features, present = [], []
    for batch in torch.from_numpy(frames).permute(0, 3, 1, 2).split(64):
        merged = merged_features(tower, image_processor, batch)[0]
        features.append(F.pad(merged, (0, 1), value=1.0).flatten(0, 1))
        present.append(targets(batch)[2].flatten(0, 1))
    return torch.cat(features), torch.cat(present)


@torch.no_grad()
def _unit_scale(tower: Qwen3VLVisionModel, image_processor: Any, frames: np.ndarray) -> None:
    """Rescale the mergers' last layers so that features have unit mean square: L_Pre and the language
    model meet features of a known size."""
    batch = torch.from_numpy(frames).permute(0, 3, 1, 2)
    mergers = [tower.merger, *tower.deepstack_merger_list]
    for merger, features in zip(mergers, merged_features(tower, image_processor, batch), strict=True):
        scale = features.pow(2).mean().sqrt()
        merger.linear_fc2.weight /= scale
        merger.linear_fc2.bias /= scale


def _embed_patches(projection: nn.Conv3d, patches: Tensor) -> Tensor:
    """The tower's convolution of one patch as a matrix product, whose gradient costs 1/14 as much on a CPU."""
    return F.linear(patches, projection.weight.flatten(1), projection.bias)


def scene_readout(vision: Any, frames: np.ndarray, labels: SceneLabels) -> SceneReadout:
    """A fresh one. vision: the tower's config. frames: [N, H, W, 3]."""
    return SceneReadout(vision.out_hidden_size, _levels(vision), _cells(vision, frames), labels)


def _levels(vision: Any) -> int:
    return 1 + len(vision.deepstack_visual_indexes)


def _cells(vision: Any, frames: np.ndarray) -> int:
    """How many tokens an image has."""
    cell = vision.patch_size * vision.spatial_merge_size
    return (frames.shape[1] // cell) * (frames.shape[2] // cell)


def _shifted(batch: Tensor, config: VisionConfig, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The batch, each frame moved by a few pixels with its edge repeated; how far, [N, 2] in fractions (u, v)."""
    reach = config.shift_pixels
    height, width = batch.shape[2:]
    padded = F.pad(batch.float(), (reach,) * 4, mode="replicate").to(torch.uint8)
    moves = torch.randint(0, 2 * reach + 1, (len(batch), 2), generator=generator)
    moved = [image[:, y : y + height, x : x + width] for image, (y, x) in zip(padded, moves.tolist(), strict=True)]
    return torch.stack(moved), (reach - moves.flip(1)) / torch.tensor([width, height])


def _nearest(colours: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.argmin(((colours[:, None] - centres[None]) ** 2).sum(-1), axis=1)


def sample_frames(episodes: Sequence[Any], cameras: Sequence[str], limit: int, rng: np.random.Generator) -> np.ndarray:
    """Up to `limit` images of all cameras, uint8 [N, H, W, 3], drawn without replacement."""
    taken = [(e, t) for e in episodes for t in np.flatnonzero(e.image_steps)]
    chosen = rng.permutation(len(taken) * len(cameras))[:limit]
    images = np.empty((len(chosen), *episodes[0].images[cameras[0]].shape[1:]), np.uint8)
    for row, i in enumerate(chosen):
        episode, step = taken[i // len(cameras)]
        images[row] = episode.images[cameras[i % len(cameras)]][step]
    return images
