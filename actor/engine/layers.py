"""Gemma's layer in few operations: one product for query, key and value, and one for gate and up."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from actor.engine.linear import MakeProduct
from actor.gemma import GemmaConfig, GemmaLayer, RMSNorm

EPSILON = 1e-6
KeysValues = Float[Tensor, "2 n kv_heads p head_dim"]
Modulation = tuple[Tensor, Tensor, Tensor]
"""1 + scale, shift and gate of one adaRMS norm, each [n or 1, l or 1, width] in float32 but the gate."""


class FusedLayer(nn.Module):
    """One layer of either transformer. A plain norm's scale is part of the matrix behind it."""

    def __init__(self, layer: GemmaLayer, make: MakeProduct) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self.config = attention.config
        first, second = _scale_of(layer.input_layernorm), _scale_of(layer.post_attention_layernorm)
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        self.qkv = make(_scaled(torch.cat([proj.weight for proj in projections]), first))
        self.output = make(attention.o_proj.weight)
        self.gate_up = make(_scaled(torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]), second))
        self.down = make(mlp.down_proj.weight)

    def forward(
        self,
        x: Float[Tensor, "n l d"],
        rotation: Float[Tensor, "2 n l 1 head_dim"],
        bias: Float[Tensor, "n 1 1 s"] | None,
        cached: KeysValues | None = None,
        modulations: tuple[Modulation, Modulation] | None = None,
    ) -> tuple[Float[Tensor, "n l d"], KeysValues]:
        """bias: is added to the scores of each key, the cached ones first; None: all are seen."""
        before, after = modulations or (None, None)
        query, own = self.query_keys_values(normed(x, before), rotation)
        seen = own if cached is None else torch.cat([cached, own], dim=3)
        x = _residual(x, self.output(self._attend(query, seen, bias)), before)
        gate, up = self.gate_up(normed(x, after)).chunk(2, dim=-1)
        return _residual(x, self.down(F.gelu(gate, approximate="tanh") * up), after), own

    def query_keys_values(
        self, x: Float[Tensor, "n l d"], rotation: Float[Tensor, "2 n l 1 head_dim"]
    ) -> tuple[Float[Tensor, "n l heads head_dim"], KeysValues]:
        """The rotated query, and the rotated keys with the values."""
        c = self.config
        qkv = self.qkv(x).unflatten(-1, (-1, c.head_dim))
        turned, value = qkv[:, :, : -c.num_kv_heads], qkv[:, :, -c.num_kv_heads :]
        half = c.head_dim // 2
        swapped = torch.cat([turned[..., half:], turned[..., :half]], dim=-1)
        turned = torch.addcmul(turned * rotation[0], swapped, rotation[1]).to(x.dtype)
        query, key = turned[:, :, : c.num_heads], turned[:, :, c.num_heads :]
        return query, torch.stack([key, value]).transpose(2, 3)

    def _attend(self, query: Tensor, seen: KeysValues, bias: Tensor | None) -> Float[Tensor, "n l width"]:
        """The queries that share a key's head are rows of one product."""
        n, length, heads, head_dim = query.shape
        shared = heads // self.config.num_kv_heads
        rows = query.unflatten(2, (-1, shared)).transpose(1, 2).reshape(n, -1, length * shared, head_dim)
        if bias is not None:
            bias = bias.expand(-1, -1, rows.shape[2], -1)
        attended = F.scaled_dot_product_attention(rows, seen[0], seen[1], attn_mask=bias)
        return attended.unflatten(2, (length, shared)).transpose(1, 2).reshape(n, length, heads * head_dim)


def normed(x: Float[Tensor, "n l d"], modulation: Modulation | None) -> Float[Tensor, "n l d"]:
    unit = F.rms_norm(x.float(), x.shape[-1:], eps=EPSILON)
    if modulation is not None:
        unit = torch.addcmul(modulation[1], unit, modulation[0])
    return unit.to(x.dtype)


def rotations(
    positions: Int[Tensor, "n l"], config: GemmaConfig, theta: float = 10_000.0
) -> Float[Tensor, "2 n l 1 head_dim"]:
    """By what the entries are multiplied, and by what those of the other half of their head, float32."""
    exponents = torch.arange(0, config.head_dim, 2, device=positions.device, dtype=torch.float32) / config.head_dim
    angles = positions[:, :, None, None].float() * theta**-exponents
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1)])


def _residual(x: Tensor, branch: Tensor, modulation: Modulation | None) -> Tensor:
    return x + branch if modulation is None else torch.addcmul(x, branch, modulation[2])


def _scale_of(norm: nn.Module) -> Tensor | None:
    return 1.0 + norm.weight.float() if isinstance(norm, RMSNorm) else None


def _scaled(weight: Tensor, scale: Tensor | None) -> Tensor:
    return weight if scale is None else (weight.float() * scale).to(weight.dtype)
