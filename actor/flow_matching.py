"""Conditional flow matching in openpi's convention: t = 1 is noise, t = 0 is the action chunk."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def sample_time(n: int, generator: torch.Generator | None = None) -> Float[Tensor, " n"]:
    """Flow times ~ 0.001 + 0.999 · Beta(1.5, 1): more weight on noisy chunks (π0, appendix B).

    Beta(1.5, 1) has the distribution function t^1.5, so that its inverse draws it from a uniform.
    """
    return torch.rand(n, generator=generator) ** (1 / 1.5) * 0.999 + 0.001


def interpolate(
    actions: Float[Tensor, "n h a"], noise: Float[Tensor, "n h a"], time: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "n h a"], Float[Tensor, "n h a"]]:
    """x_t = t · noise + (1 - t) · actions and the velocity u = noise - actions that leads along it."""
    t = time[:, None, None]
    return t * noise + (1 - t) * actions, noise - actions


def integrate(
    velocity: Callable[[Tensor, Tensor], Tensor], noise: Float[Tensor, "n h a"], num_steps: int
) -> Float[Tensor, "n h a"]:
    """Euler from t = 1 (noise) to t = 0 (actions). velocity(x_t, t) -> [n, h, a], with t: [n]."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, got {num_steps}")
    x = noise
    for step in range(num_steps):
        time = torch.full((len(noise),), 1.0 - step / num_steps, device=noise.device)
        x = x - velocity(x, time) / num_steps
    return x
