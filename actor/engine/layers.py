"""Gemma's layer in few operations: one product for query, key and value, one for gate and up, rotation as a complex
product.

The entries of each head are put in another order, so that the two that are rotated together lie side by side. Queries,
keys and the cache all have that order, which changes no product of a query and a key.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
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
        head_dim = self.config.head_dim
        query, key = (_side_by_side(proj.weight, head_dim) for proj in (attention.q_proj, attention.k_proj))
        self.qkv = make(_scaled(torch.cat([query, key, attention.v_proj.weight]), first))
        self.output = make(attention.o_proj.weight)
        self.gate_up = make(_scaled(torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]), second))
        self.down = make(mlp.down_proj.weight)

    def forward(
        self,
        x: Float[Tensor, "n l d"],
        rotation: Complex[Tensor, "n l 1 half"],
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
        self, x: Float[Tensor, "n l d"], rotation: Complex[Tensor, "n l 1 half"]
    ) -> tuple[Float[Tensor, "n l heads head_dim"], KeysValues]:
        """The rotated query, and the rotated keys with the values."""
        c = self.config
        qkv = self.qkv(x).unflatten(-1, (-1, c.head_dim))
        turned, value = qkv[:, :, : -c.num_kv_heads], qkv[:, :, -c.num_kv_heads :]
        pairs = torch.view_as_complex(turned.float().unflatten(-1, (-1, 2)))
        turned = torch.view_as_real(pairs * rotation).flatten(-2).to(x.dtype)
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


def rotations(positions: Int[Tensor, "n l"], config: GemmaConfig, theta: float = 10_000.0) -> Tensor:
    """complex64 [n, l, 1, head_dim / 2]: by what each pair of entries is multiplied."""
    exponents = torch.arange(0, config.head_dim, 2, device=positions.device, dtype=torch.float32) / config.head_dim
    angles = positions[:, :, None, None].float() * theta**-exponents
    return torch.complex(angles.cos(), angles.sin())


def _residual(x: Tensor, branch: Tensor, modulation: Modulation | None) -> Tensor:
    return x + branch if modulation is None else torch.addcmul(x, branch, modulation[2])


def _scale_of(norm: nn.Module) -> Tensor | None:
    return 1.0 + norm.weight.float() if isinstance(norm, RMSNorm) else None


def _scaled(weight: Tensor, scale: Tensor | None) -> Tensor:
    return weight if scale is None else (weight.float() * scale).to(weight.dtype)


def _side_by_side(weight: Float[Tensor, "o i"], head_dim: int) -> Float[Tensor, "o i"]:
    """Entry i of the first half of each head, and then entry i of its second half."""
    return weight.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)
