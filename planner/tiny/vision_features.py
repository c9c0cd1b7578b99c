"""What a vision tower says of images, of what size, and how well colours can be read from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

from planner.tiny.vision_readout import by_timestep
from planner.tiny.vision_targets import CellTargets

NOISE = 3e-3  # of the mean variance of features: a direction with less holds mostly noise


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
def unit_scale(tower: Qwen3VLVisionModel, image_processor: Any, frames: np.ndarray, whiten: bool = False) -> None:
    """Rescale the mergers' last layers so that features have unit mean square: L_Pre and the language
    model meet features of a known size.

    whiten: every direction in which features vary gets about the same variance, and their mean becomes 0. In the
    features of a camera that stands still nearly all variance is the place of a token, and what differs between
    two scenes is a small part of the rest. frames, uint8 [N, H, W, 3], should be a thousand or more then.
    """
    mergers = [tower.merger, *tower.deepstack_merger_list]
    parts = torch.from_numpy(frames).permute(0, 3, 1, 2).split(64)
    of_parts = [merged_features(tower, image_processor, part) for part in parts]
    for merger, of_merger in zip(mergers, zip(*of_parts, strict=True), strict=True):
        features = torch.cat(of_merger).flatten(0, 1)
        if whiten:
            mean, change = whitening(features)
            merger.linear_fc2.weight.copy_(change @ merger.linear_fc2.weight)
            merger.linear_fc2.bias.copy_(change @ (merger.linear_fc2.bias - mean))
            features = (features - mean) @ change.T
        scale = features.pow(2).mean().sqrt()
        merger.linear_fc2.weight /= scale
        merger.linear_fc2.bias /= scale


def whitening(features: Tensor) -> tuple[Tensor, Tensor]:
    """(mean [Z], matrix [Z, Z]) of features [N, Z]: `(features - mean) @ matrix.T` has about the unit covariance.

    Directions with far less variance than the mean one are noise, and stay small.
    """
    mean = features.mean(0)
    variance, directions = torch.linalg.eigh(torch.cov(features.T))
    scale = (variance + NOISE * variance.mean()).rsqrt()
    return mean, directions * scale @ directions.T


def levels(vision: Any) -> int:
    return 1 + len(vision.deepstack_visual_indexes)


def cell_grid(vision: Any, frames: np.ndarray) -> tuple[int, int]:
    """How many rows and columns of tokens an image has."""
    cell = vision.patch_size * vision.spatial_merge_size
    return frames.shape[1] // cell, frames.shape[2] // cell
