"""Tells the action expert where the target is, in metres and as seen from the gripper, and roughly what to do.

A small network takes long to learn to subtract the gripper's position from the target's, and until it does, the gripper
stops short. Therefore the subtraction is done here, exactly. The flow loss gives position and sketch no gradient:
they are taught by their own losses alone.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

CENTRE_M, SCALE_M = (0.5, 0.0, 0.1), 0.2  # of the workspace, in the robot's base frame
NEAR_M = 0.03  # where millimetres begin to matter
HALVES = 2  # of a chunk, whose mean actions are sketched
HIDDEN = 192


@dataclass(frozen=True, eq=False)
class Aim:
    """What the locator gives.

    position_m: where the target is in the robot's base frame.
    sketch: the mean action of each half of the chunk, normalised.
    token: the way from the gripper to the target and the sketch, as a token of the prefix.
    condition: the same, for what conditions the action expert's norms.
    """

    position_m: Float[Tensor, "n 3"]
    sketch: Float[Tensor, "n halves a"]
    token: Float[Tensor, "n 1 d"]
    condition: Float[Tensor, "n e"]


class Locator(nn.Module):
    """Turns image tokens, the pointing maps' centres of mass, the prompt and the state into an `Aim`.

    The position is read twice, in the base frame (as agentview shows it) and in the gripper's (as the hand camera shows
    it), and the two are mixed.
    """

    centre_m: Tensor

    def __init__(self, num_cameras: int, queries: int, width: int, expert_width: int, action_dim: int) -> None:
        super().__init__()
        features = num_cameras * (queries * width + 2) + 2 * width
        self.action_dim = action_dim
        self.trunk = nn.Sequential(nn.Linear(features, HIDDEN), nn.GELU())
        self.position = nn.Linear(HIDDEN, 9)
        way = 12
        hint = way + HALVES * action_dim
        self.sketch = nn.Sequential(
            nn.Linear(HIDDEN + way + 2 * width, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.GELU(),
            nn.Linear(HIDDEN, HALVES * action_dim),
        )
        self.embed = nn.Linear(hint, width)
        self.condition = nn.Linear(hint, expert_width)
        self.register_buffer("centre_m", torch.tensor(CENTRE_M), persistent=False)

    def forward(
        self,
        image_tokens: Float[Tensor, "n c q d"],
        pointing: Float[Tensor, "n c cells"],
        grid: Float[Tensor, "cells f"],
        words: Float[Tensor, "n d"],
        state: Float[Tensor, "n d"],
        pose: Float[Tensor, "n 9"],
    ) -> Aim:
        """image_tokens, pointing: zeros for a camera that is missing. grid: begins with each cell's (x, y). words: the
        prompt's mean embedding. pose: see `actor.tiny.pose`."""
        centres = pointing.softmax(-1) @ grid[:, :2]
        hidden = self.trunk(torch.cat([image_tokens.flatten(1), centres.flatten(1), words, state], dim=-1))
        seen, from_hand, share = self.position(hidden).chunk(3, dim=-1)
        tcp_m, rotation = pose[:, :3], _rotation(pose[:, 3:])
        share = share.sigmoid()
        in_base = seen * SCALE_M + self.centre_m
        position_m = share * in_base + (1 - share) * (tcp_m + _turn(rotation, from_hand * SCALE_M))
        way = position_m.detach() - tcp_m
        ways = [way, _turn(rotation.transpose(1, 2), way)]
        features = torch.cat([scaled for w in ways for scaled in (w / SCALE_M, (w / NEAR_M).tanh())], dim=-1)
        sketch = self.sketch(torch.cat([hidden, features, words, state], dim=-1))
        hint = torch.cat([features, sketch.detach()], dim=-1)
        return Aim(position_m, sketch.unflatten(-1, (HALVES, -1)), self.embed(hint)[:, None], self.condition(hint))


def position_loss(located_m: Float[Tensor, "n 3"], target_m: Float[Tensor, "n 3"]) -> Tensor:
    """Smooth L1 in units of `SCALE_M`, over the rows whose target is known (not NaN)."""
    known = torch.isfinite(target_m).all(-1)
    if not known.any():
        return located_m.sum() * 0.0
    error = (located_m - target_m)[known] / SCALE_M
    return nn.functional.smooth_l1_loss(error, torch.zeros_like(error), beta=0.1) * 4


def sketch_loss(sketch: Float[Tensor, "n halves a"], actions: Float[Tensor, "n h a"]) -> Tensor:
    """Smooth L1 to the mean action of each half of a chunk."""
    half = actions.shape[1] // HALVES
    wanted = torch.stack([actions[:, :half].mean(1), actions[:, half:].mean(1)], dim=1)
    return nn.functional.smooth_l1_loss(sketch, wanted, beta=0.2) * 2


def _rotation(columns: Float[Tensor, "n 6"]) -> Float[Tensor, "n 3 3"]:
    """The rotation matrix of its first two columns."""
    x, y = columns[:, :3], columns[:, 3:]
    return torch.stack([x, y, torch.linalg.cross(x, y)], dim=-1)


def _turn(rotation: Float[Tensor, "n 3 3"], vector: Float[Tensor, "n 3"]) -> Float[Tensor, "n 3"]:
    return (rotation @ vector[..., None])[..., 0]
