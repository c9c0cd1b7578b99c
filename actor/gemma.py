"""Gemma as π0.5 uses it: a transformer that can read another transformer's keys and values.

The same layers make the prefix (plain RMSNorm) and the action expert (adaRMS, conditioned on the
flow time): both attend in one shared key/value space, which is why their head size must agree.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

KeyValue = tuple[Tensor, Tensor]
"""One layer's keys (rotated) and values, each [n, kv_heads, length, head_dim]."""


@dataclass(frozen=True)
class GemmaConfig:
    """Sizes of one transformer. The defaults are gemma_2b, π0.5's prefix."""

    width: int = 2048
    depth: int = 18
    mlp_dim: int = 16_384
    num_heads: int = 8
    num_kv_heads: int = 1
    head_dim: int = 256

    def __post_init__(self) -> None:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads must be a multiple of num_kv_heads, got {self.num_heads} and {self.num_kv_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even for rotary embeddings, got {self.head_dim}")


class RMSNorm(nn.Module):
    """y = x / rms(x) · (1 + weight). Returns (y, None): there is no gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, None]:
        return (_unit_rms(x) * (1.0 + self.weight.float())).to(x.dtype), None


class AdaRMSNorm(nn.Module):
    """adaRMS of π0.5: scale, shift and the gate of the residual branch come from the condition, which is one for all
    tokens or one for each.

    From scratch it starts as a plain pre-norm layer (scale 0, shift 0, gate 1).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)
        nn.init.zeros_(self.dense.weight)
        with torch.no_grad():
            self.dense.bias.copy_(torch.cat([torch.zeros(2 * width), torch.ones(width)]))

    def forward(
        self, x: Float[Tensor, "n l d"], condition: Float[Tensor, "n ... d"]
    ) -> tuple[Float[Tensor, "n l d"], Float[Tensor, "n _ d"]]:
        modulation = self.dense(condition)
        scale, shift, gate = (modulation if modulation.ndim == 3 else modulation[:, None]).chunk(3, dim=-1)
        return (_unit_rms(x) * (1.0 + scale.float()) + shift.float()).to(x.dtype), gate.to(x.dtype)


class Attention(nn.Module):
    """Multi-query attention with rotary positions over its own and, if given, cached keys and values."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.config = config
        self.q_proj = nn.Linear(config.width, config.num_heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.width, config.num_kv_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.width, config.num_kv_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_heads * config.head_dim, config.width, bias=False)

    def keys_values(self, x: Float[Tensor, "n l d"], rotary: Tensor) -> KeyValue:
        return rotate(self._heads(self.k_proj(x)), rotary), self._heads(self.v_proj(x))

    def forward(
        self,
        x: Float[Tensor, "n l d"],
        rotary: Float[Tensor, "2 n 1 l head_dim"],
        mask: Bool[Tensor, "n _ s"],
        own: KeyValue,
        cached: KeyValue | None,
    ) -> Float[Tensor, "n l d"]:
        """`mask[n, i, j]`: may query i see key j, the cached keys first and then its own."""
        query = rotate(self._heads(self.q_proj(x)), rotary)
        key, value = own
        if cached is not None:
            key, value = torch.cat([cached[0], key], dim=2), torch.cat([cached[1], value], dim=2)
        shared = self.config.num_heads // self.config.num_kv_heads
        if shared > 1:
            key, value = (t[:, :, None].expand(-1, -1, shared, -1, -1).flatten(1, 2) for t in (key, value))
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None])
        return self.o_proj(attended.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.config.head_dim)).transpose(1, 2)


class MLP(nn.Module):
    """Gemma's gated MLP (GeGLU with the tanh approximation)."""

    def __init__(self, config: GemmaConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.width, config.mlp_dim, bias=False)
        self.up_proj = nn.Linear(config.width, config.mlp_dim, bias=False)
        self.down_proj = nn.Linear(config.mlp_dim, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class GemmaLayer(nn.Module):
    """Pre-norm attention and MLP, each on a residual branch that adaRMS may gate."""

    def __init__(self, config: GemmaConfig, conditioned: bool) -> None:
        super().__init__()
        norm = AdaRMSNorm if conditioned else RMSNorm
        self.input_layernorm = norm(config.width)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = norm(config.width)
        self.mlp = MLP(config)

    def keys_values(self, x: Tensor, rotary: Tensor) -> KeyValue:
        """What the other transformer sees of this layer; enough where the layer's output is not used."""
        return self.self_attn.keys_values(self.input_layernorm(x)[0], rotary)

    def forward(
        self,
        x: Float[Tensor, "n l d"],
        rotary: Tensor,
        mask: Tensor,
        cached: KeyValue | None = None,
        condition: Tensor | None = None,
    ) -> tuple[Float[Tensor, "n l d"], KeyValue]:
        normed, gate = self.input_layernorm(x, condition)
        own = self.self_attn.keys_values(normed, rotary)
        x = _gated_residual(x, self.self_attn(normed, rotary, mask, own, cached), gate)
        normed, gate = self.post_attention_layernorm(x, condition)
        return _gated_residual(x, self.mlp(normed), gate), own


def rotary_embedding(
    positions: Int[Tensor, "n l"], head_dim: int, theta: float = 10_000.0
) -> Float[Tensor, "2 n 1 l head_dim"]:
    """Cosines and sines of the rotary angles, in float32."""
    exponents = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim
    angles = positions[:, None, :, None].float() * theta**-exponents
    angles = torch.cat([angles, angles], dim=-1)
    return torch.stack([angles.cos(), angles.sin()])


def in_precision_of(x: Tensor, weight: Tensor) -> Tensor:
    """x in bfloat16 where the weight is; otherwise as it is, because autocast may have chosen its precision."""
    return x.to(weight.dtype) if weight.dtype == torch.bfloat16 else x


def rotate(x: Float[Tensor, "n h l head_dim"], rotary: Tensor) -> Float[Tensor, "n h l head_dim"]:
    first, second = x.float().chunk(2, dim=-1)
    return (x * rotary[0] + torch.cat([-second, first], dim=-1) * rotary[1]).to(x.dtype)


def _unit_rms(x: Tensor) -> Tensor:
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def _gated_residual(x: Tensor, branch: Tensor, gate: Tensor | None) -> Tensor:
    return x + branch if gate is None else x + branch * gate
