"""Where the target is, in metres: read off what the eyes point at, and told to the action expert as one token.

Fed back without its gradient, so that it is taught by the position loss alone.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

CENTRE_M, SCALE_M = (0.5, 0.0, 0.1), 0.2  # of the workspace, in the robot's base frame


class Locator(nn.Module):
    """Image tokens, the pointing maps' centres of mass and the state to a position."""

    centre_m: Tensor

    def __init__(self, num_cameras: int, queries: int, width: int) -> None:
        super().__init__()
        features = num_cameras * (queries * width + 2) + width
        self.net = nn.Sequential(nn.Linear(features, 128), nn.GELU(), nn.Linear(128, 3))
        self.embed = nn.Linear(3, width)
        self.register_buffer("centre_m", torch.tensor(CENTRE_M), persistent=False)

    def forward(
        self,
        image_tokens: Float[Tensor, "n c q d"],
        pointing: Float[Tensor, "n c cells"],
        grid: Float[Tensor, "cells f"],
        state: Float[Tensor, "n d"],
    ) -> tuple[Float[Tensor, "n 3"], Float[Tensor, "n 1 d"]]:
        """The position in metres, in the robot's base frame, and its token. grid: begins with each cell's (x, y)."""
        centres = pointing.softmax(-1) @ grid[:, :2]
        where = self.net(torch.cat([image_tokens.flatten(1), centres.flatten(1), state], dim=-1))
        return where * SCALE_M + self.centre_m, self.embed(where.detach())[:, None]


def position_loss(located_m: Float[Tensor, "n 3"], target_m: Float[Tensor, "n 3"]) -> Tensor:
    """Smooth L1 in units of `SCALE_M`, over the rows whose target is known (not NaN)."""
    known = torch.isfinite(target_m).all(-1)
    if not known.any():
        return located_m.sum() * 0.0
    error = (located_m - target_m)[known] / SCALE_M
    return nn.functional.smooth_l1_loss(error, torch.zeros_like(error), beta=0.1) * 4
