"""The training loop of a tiny vision tower: batches, losses, checkpoints."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from planner.tiny.vision_config import VisionConfig
from planner.tiny.vision_features import merged_features, timestep_features
from planner.tiny.vision_readout import StepLabels, by_timestep
from planner.tiny.vision_scenes import SceneReadout, Scenes, scene_report
from planner.tiny.vision_targets import SPOTS
from predimem.core.files import AtomicWrite
from predimem.core.progress import Bar

CHECKPOINT = "vision.partial.pt"


class CellReadout(nn.Module):
    """Linear readouts of the targets from one set of merged features.

    spot_weight: that of what each spot of a cell holds; 0 where it is not read.
    """

    def __init__(self, width: int, palette_size: int, spot_weight: float = 0.0):
        super().__init__()
        self._spot_weight = spot_weight
        self.thumbnail = nn.Linear(width, 48)
        self.log_counts = nn.Linear(width, palette_size)
        self.present = nn.Linear(width, palette_size)
        if spot_weight > 0:
            self.in_spots = nn.Linear(width, SPOTS**2 * palette_size)

    def loss(
        self, features: Tensor, targets: tuple[Tensor, Tensor, Tensor], rarity: Tensor, in_spots: Tensor | None = None
    ) -> Tensor:
        """rarity: [K]. in_spots: as `CellTargets.in_spots` gives it, where it is read."""
        thumbnail, log_counts, present = targets
        if in_spots is not None:
            weight = rarity.repeat(SPOTS**2)
            spots = F.binary_cross_entropy_with_logits(self.in_spots(features), in_spots, pos_weight=weight)
        else:
            spots = features.new_zeros(())
        presence = F.binary_cross_entropy_with_logits(
            self.present(features), present, pos_weight=rarity, reduction="mean"
        )
        return (
            F.mse_loss(self.thumbnail(features), thumbnail)
            + 0.1 * F.mse_loss(self.log_counts(features), log_counts)
            + presence
            + self._spot_weight * spots
        )


class TowerTrainer:
    """Trains a vision tower together with its readouts, and goes on from its checkpoint in `folder`.

    targets: what the readouts of frames have to say; labels: of each frame's timestep; scenes: drawn ones, for training
    and held out.
    """

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
        in_spots = self.targets.in_spots(batch) if config.spot_weight > 0 else None
        losses = [r.loss(f, targets, rarity, in_spots) for r, f in zip(self.readouts, features, strict=False)]
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
            loss = loss + config.scene_weight * reader.loss(timesteps, labels, steps, config.cell_weight, moved)
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
        """Of the held-out scenes, or of about `limit` of their timesteps, spread evenly."""
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
            "config": self._trained_with,
            "tower": self.tower.state_dict(),
            "readouts": self.readouts.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        with AtomicWrite(self.checkpoint) as whole:
            torch.save(state, whole)

    @property
    def _trained_with(self) -> dict[str, Any]:
        """The config, but for what changes no weight."""
        return {name: value for name, value in asdict(self.config).items() if name not in ("directory", "save_steps")}

    def _resume(self) -> tuple[int, float]:
        if not self.checkpoint.is_file():
            return 0, 0.0
        saved = torch.load(self.checkpoint, weights_only=True)
        if saved.get("config") != self._trained_with:
            raise ValueError(
                f"{self.checkpoint.parent} holds a vision tower that is half trained with another config: choose "
                f"another vision.directory, or delete {self.checkpoint} to train the tower anew"
            )
        self.tower.load_state_dict(saved["tower"])
        self.readouts.load_state_dict(saved["readouts"])
        self.optimiser.load_state_dict(saved["optimiser"])
        return saved["step"], saved["seconds"]


def embed_patches(projection: nn.Conv3d, patches: Tensor) -> Tensor:
    """The tower's convolution of one patch as a matrix product, whose gradient costs 1/14 as much on a CPU."""
    return F.linear(patches, projection.weight.flatten(1), projection.bias)


def _shifted(batch: Tensor, config: VisionConfig, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The batch, each frame moved by a few pixels with its edge repeated; how far, [N, 2] in fractions (u, v)."""
    reach = config.shift_pixels
    height, width = batch.shape[2:]
    padded = F.pad(batch.float(), (reach,) * 4, mode="replicate").to(torch.uint8)
    moves = torch.randint(0, 2 * reach + 1, (len(batch), 2), generator=generator)
    moved = [image[:, y : y + height, x : x + width] for image, (y, x) in zip(padded, moves.tolist(), strict=True)]
    return torch.stack(moved), (reach - moves.flip(1)) / torch.tensor([width, height])
