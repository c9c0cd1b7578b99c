"""Training-only losses of the tiny actor, which teach it where the target is in the images and in space.

They add no weight that inference needs: pointing supervises an attention head that is there anyway, and the position
head is not exported.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from actor.pi05 import Pi05Config, Prefix


@dataclass(frozen=True)
class AuxiliaryConfig:
    """The weights of the losses beside the flow loss; 0 turns a loss off. Only a model with a locator has a sketch."""

    pointing: float = 0.2
    position: float = 0.5
    sketch: float = 1.0


class PositionHead(nn.Module):
    """The target's position in the robot's base frame [m], read off the image tokens."""

    mean_m: Tensor
    std_m: Tensor

    def __init__(self, config: Pi05Config, mean_m: Tensor, std_m: Tensor) -> None:
        super().__init__()
        features = config.num_cameras * config.conv.queries * config.paligemma.width
        self.net = nn.Sequential(nn.Linear(features, 128), nn.GELU(), nn.Linear(128, 3))
        self.register_buffer("mean_m", mean_m)
        self.register_buffer("std_m", std_m)

    def forward(self, image_tokens: Float[Tensor, "n c q d"]) -> Float[Tensor, "n 3"]:
        return self.net(image_tokens.flatten(1)) * self.std_m + self.mean_m

    def loss(self, predicted_m: Float[Tensor, "n 3"], target_m: Float[Tensor, "n 3"]) -> Tensor:
        """Mean squared error in standard deviations, over the rows whose target is known."""
        known = torch.isfinite(target_m).all(-1)
        if not known.any():
            return predicted_m.sum() * 0.0
        return ((predicted_m - target_m)[known] / self.std_m).square().mean()


def pointing_loss(prefix: Prefix, pixels: Float[Tensor, "n c 2"]) -> Tensor:
    """Cross-entropy of the pointing head at the target's cell, averaged over where it is in view."""
    if prefix.pointing is None:
        raise ValueError("the pointing loss needs vision: conv (siglip has no pointing head)")
    cells = prefix.pointing.shape[-1]
    cell, visible = target_cells(pixels, round(cells**0.5))
    if not visible.any():
        return prefix.pointing.sum() * 0.0
    return F.cross_entropy(prefix.pointing[visible], cell[visible])


def target_cells(pixels: Float[Tensor, "n c 2"], map_size: int) -> tuple[Int[Tensor, "n c"], Tensor]:
    """The map cell (row by row) under each (u, v) fraction, and whether it lies in the image."""
    visible = torch.isfinite(pixels).all(-1) & (pixels >= 0).all(-1) & (pixels < 1).all(-1)
    column, row = (torch.nan_to_num(pixels) * map_size).long().clamp(0, map_size - 1).unbind(-1)
    return row * map_size + column, visible
