"""π0.5's action expert. It reads the prefix's keys and values and turns a noisy action chunk into its flow velocity."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from actor.gemma import AdaRMSNorm, GemmaConfig, GemmaLayer, KeyValue, rotary_embedding


def time_embedding(time: Float[Tensor, " n"], width: int) -> Float[Tensor, "n width"]:
    """Sines and cosines with periods from 4e-3 to 4, in float64 as openpi computes them."""
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64, device=time.device)
    period = 4e-3 * (4.0 / 4e-3) ** fraction
    angles = time[:, None].double() * (2 * math.pi / period)
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(time.dtype)


class ActionExpert(nn.Module):
    """A narrow Gemma with adaRMS. Action tokens see the whole prefix and each other."""

    def __init__(self, config: GemmaConfig, action_dim: int) -> None:
        super().__init__()
        self.config = config
        self.action_in_proj = nn.Linear(action_dim, config.width)
        self.time_mlp_in = nn.Linear(config.width, config.width)
        self.time_mlp_out = nn.Linear(config.width, config.width)
        self.layers = nn.ModuleList(GemmaLayer(config, conditioned=True) for _ in range(config.depth))
        self.norm = AdaRMSNorm(config.width)
        self.action_out_proj = nn.Linear(config.width, action_dim)

    def forward(
        self,
        prefix: list[KeyValue],
        prefix_mask: Bool[Tensor, "n p"],
        noisy_actions: Float[Tensor, "n h a"],
        time: Float[Tensor, " n"],
        hint: Float[Tensor, "n width"] | None = None,
    ) -> Float[Tensor, "n h a"]:
        """hint: is added to the time's embedding, which conditions the norms (from `actor.tiny.locator`)."""
        n, horizon = noisy_actions.shape[:2]
        condition = F.silu(self.time_mlp_in(time_embedding(time, self.config.width).to(noisy_actions.dtype)))
        condition = F.silu(self.time_mlp_out(condition))
        if hint is not None:
            condition = condition + hint
        steps = torch.arange(horizon, device=time.device)
        rotary = rotary_embedding(prefix_mask.sum(-1, keepdim=True) + steps, self.config.head_dim)
        mask = torch.cat([prefix_mask, prefix_mask.new_ones(n, horizon)], dim=-1)[:, None]
        x = self.action_in_proj(noisy_actions)
        for layer, cached in zip(self.layers, prefix, strict=True):
            x, _ = layer(x, rotary, mask, cached, condition)
        return self.action_out_proj(self.norm(x, condition)[0]).float()
