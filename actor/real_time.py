"""Real-time chunking: a chunk that continues the one that is executed while it is computed.

While the actor computes, the robot executes `delay` actions more of the chunk before. The new chunk begins at the step
of its observation, so its first `delay` actions are given. Two ways make the rest fit them:
  guided   arXiv:2506.07339: at each Euler step the flow is pushed towards the actions that are queued, through the
           gradient of its estimate of the clean chunk. It needs no training, and about twice the time.
  trained  arXiv:2512.05964: the model was trained with given actions at the flow time of clean ones. It costs nothing.
Times are openpi's: t = 1 is noise, t = 0 are the actions; the papers count the other way.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from actor import flow_matching
from actor.pi05 import Pi05, Prefix

Method = Literal["guided", "trained"]
MAX_GUIDANCE = 5.0  # β of arXiv:2506.07339
Velocity = Callable[[Tensor, int], Tensor]
"""The flow's velocity at (noisy actions [n, h, a], number of the Euler step)."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """What a chunk continues.

    queued: normalised actions, the first one for the chunk's first step; what lies behind `queued_steps` is ignored.
    delay_steps: how many of them are executed before the new chunk is there.
    queued_steps: how many are queued.
    """

    method: Method
    queued: Float[Tensor, "n h a"]
    delay_steps: Int[Tensor, " n"]
    queued_steps: Int[Tensor, " n"]

    @property
    def known(self) -> Bool[Tensor, "n h"]:
        steps = torch.arange(self.queued.shape[1], device=self.queued.device)
        return steps < self.delay_steps[:, None]


def guidance_weights(continuation: Continuation) -> Float[Tensor, "n h"]:
    """How much each queued action counts (arXiv:2506.07339, Eq. 5): 1 for those that will have been executed, falling
    to 0 where the queue ends."""
    delay, queued = continuation.delay_steps[:, None], continuation.queued_steps[:, None]
    steps = torch.arange(continuation.queued.shape[1], device=delay.device)
    left = ((queued - steps) / (queued - delay + 1)).clamp(0, 1)
    falling = left * torch.expm1(left) / (math.e - 1)
    return torch.where(steps < delay, torch.ones_like(falling), falling * (steps < queued))


def guidance_scale(time: float, num_steps: int) -> float:
    """min(β, (1 - τ) / (τ r²)) with τ = 1 - t (arXiv:2506.07339, Eq. 2 and 4), at a time above 0.

    It is no more than `num_steps` either: beyond that, one Euler step would go past what it is guided to.
    """
    largest, clean = min(MAX_GUIDANCE, num_steps), 1.0 - time
    if clean <= 0.0:
        return largest
    return min(largest, time / clean * (time**2 + clean**2) / time**2)


def integrate_guided(velocity: Velocity, noise: Tensor, num_steps: int, continuation: Continuation) -> Tensor:
    """Euler from noise to actions, guided to what is queued. `velocity` has to be differentiable: no inference mode."""
    weights = guidance_weights(continuation)[..., None]
    x = noise
    for step in range(num_steps):
        time = 1.0 - step / num_steps
        with torch.enable_grad():
            start = x.detach().requires_grad_(True)
            v = velocity(start, step)
            clean = start - time * v
            error = (continuation.queued - clean).detach() * weights
            (correction,) = torch.autograd.grad(clean, start, error)
        x = x - (v.detach() - guidance_scale(time, num_steps) * correction) / num_steps
    return x


def sample(model: Pi05, prefix: Prefix, noise: Tensor, num_steps: int, continuation: Continuation) -> Tensor:
    """Action chunks of the plain model that continue others, float [n, h, a]."""
    if continuation.method == "guided":

        def at_step(x: Tensor, step: int) -> Tensor:
            return model.velocity(prefix, x, torch.full((len(x),), 1.0 - step / num_steps, device=x.device))

        return integrate_guided(at_step, noise, num_steps, continuation)
    known, given = continuation.known, continuation.queued

    def with_given(x: Tensor, time: Tensor) -> Tensor:
        x = torch.where(known[..., None], given, x)
        return model.velocity(prefix, x, time[:, None].masked_fill(known, 0.0))

    return torch.where(known[..., None], given, flow_matching.integrate(with_given, noise, num_steps))


def draw_delays(trained_delay: int, count: int, generator: torch.Generator) -> Int[Tensor, " m"] | None:
    """Evenly from 0 to `trained_delay`; None, and nothing is drawn, where that is 0."""
    return torch.randint(0, trained_delay + 1, (count,), generator=generator) if trained_delay else None


def flow_loss(
    model: Pi05,
    prefix: Prefix,
    actions: Float[Tensor, "m h a"],
    noise: Float[Tensor, "m h a"],
    time: Float[Tensor, " m"],
    delays: Int[Tensor, " m"] | None,
) -> Tensor:
    """The mean flow-matching loss, as the trainer calls it.

    delays: for a model with `trained_delay`, see `draw_delays`. So many of the first actions of each chunk are given
        without noise, at flow time 0, and only the rest of it counts (arXiv:2512.05964). None: `Pi05.loss`.
    """
    if delays is None:
        return model.loss(prefix, actions, noise, time).mean()
    known = torch.arange(actions.shape[1], device=actions.device) < delays[:, None]
    times = time[:, None].masked_fill(known, 0.0)
    noisy = torch.where(known[..., None], actions, flow_matching.interpolate(actions, noise, time)[0])
    error = (model.velocity(prefix, noisy, times) - (noise - actions)).square()
    counted = (~known)[..., None].expand_as(error)
    return ((error * counted).sum((1, 2)) / counted.sum((1, 2))).mean()
