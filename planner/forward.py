"""Runs Qwen3-VL's language model at inference: its own layers, with logits only where they are asked for.

It computes the same sums as transformers' `forward` (tests compare the two), except for those that greedy decoding
does not need: of the last layer, only keys and values are computed for positions whose logits nobody wants, and a
prefill needs no mask. For a tiny model that halves the cost, which is why transformers' own loop is not used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.qwen3_vl.modeling_qwen3_vl import rotate_half


class KeyValues:
    """Keys and values [B, heads, K, D] of every layer. Slots are never freed: callers say which of them count."""

    def __init__(self, layers: int):
        self._layers: list[tuple[Tensor, Tensor] | None] = [None] * layers
        self.slots = 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new slots of one layer; all of its keys and values."""
        if (before := self._layers[layer]) is not None:
            keys, values = torch.cat((before[0], keys), 2), torch.cat((before[1], values), 2)
        self._layers[layer] = (keys, values)
        self.slots = keys.shape[2]
        return keys, values


class TextForward:
    """The language model and head of a `Qwen3VLForConditionalGeneration`. Callers switch gradients off."""

    def __init__(self, model: Any):
        self._text = model.model.language_model
        self._head = model.lm_head
        self.device: torch.device = model.device

    def embed(self, ids: Tensor) -> Tensor:
        """[B, Q] -> [B, Q, D]"""
        return self._text.embed_tokens(ids)

    def prefill(
        self, embeddings: Tensor, positions: Tensor, wanted: Tensor, images: Tensor, deepstack: list[Tensor]
    ) -> tuple[Tensor, KeyValues]:
        """Logits [B, n, V] at the slots `wanted`, int64 [B, n], and what later calls go on from.

        embeddings: [B, Q, D], rows padded on the right; positions: int64 [3, B, Q] (M-RoPE).
        images: bool [B, Q], the slots that hold an image; deepstack: for each of the first layers what is added
        there, [slots, D]. No wanted slot may be an image's.
        """
        known = KeyValues(len(self._text.layers))
        # Row b sees nothing that is to its right, so neither its padding: the mask is causal for every row.
        slots = torch.arange(embeddings.shape[1], device=embeddings.device)
        mask = slots <= wanted[..., None]
        x, rope = embeddings, self._rope(embeddings, positions)
        for index, layer in enumerate(self._text.layers):
            last = index == len(self._text.layers) - 1
            x = self._layer(index, layer, x, rope, known, mask if last else None, wanted if last else None)
            if index < len(deepstack) and not last:
                x[images] += deepstack[index].to(x.dtype)
        return self._head(self._text.norm(x)), known

    def extend(self, ids: Tensor, positions: Tensor, known: KeyValues, used: Tensor) -> Tensor:
        """Logits [B, Q, V] of more tokens int64 [B, Q] at positions int64 [B, Q] after `known`, which grows by Q
        slots. used: bool [B, K], the slots before them that count."""
        count = ids.shape[1]
        causal = torch.ones(count, count, dtype=torch.bool, device=ids.device).tril()
        mask = torch.cat((used[:, None].expand(-1, count, -1), causal.expand(len(ids), -1, -1)), -1)
        x = self.embed(ids)
        rope = self._rope(x, positions.expand(3, -1, -1))
        for index, layer in enumerate(self._text.layers):
            x = self._layer(index, layer, x, rope, known, mask, None)
        return self._head(self._text.norm(x))

    def _rope(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin, each [B, Q, D of a head]"""
        return self._text.rotary_emb(x, positions)

    def _layer(
        self,
        index: int,
        layer: Any,
        x: Tensor,
        rope: tuple[Tensor, Tensor],
        known: KeyValues,
        mask: Tensor | None,
        wanted: Tensor | None,
    ) -> Tensor:
        """One layer; with `wanted` only for these slots, [B, n, D]. mask: bool [B, Q or n, K], None if causal."""
        attention, normed = layer.self_attn, layer.input_layernorm(x)
        heads = (*x.shape[:2], -1, attention.head_dim)
        keys = _turn(attention.k_norm(attention.k_proj(normed).view(heads)).transpose(1, 2), *rope)
        values = attention.v_proj(normed).view(heads).transpose(1, 2)
        keys, values = known.extend(index, keys, values)
        if wanted is not None:
            x, normed, *rope = (_take(part, wanted) for part in (x, normed, *rope))  # type: ignore[assignment]
            heads = (*x.shape[:2], -1, attention.head_dim)
        queries = _turn(attention.q_norm(attention.q_proj(normed).view(heads)).transpose(1, 2), *rope)
        groups = queries.shape[1] // keys.shape[1]
        mixed = F.scaled_dot_product_attention(
            queries,
            _repeat(keys, groups),
            _repeat(values, groups),
            attn_mask=None if mask is None else mask[:, None],
            is_causal=mask is None,
            scale=attention.scaling,
        )
        x = x + attention.o_proj(mixed.transpose(1, 2).reshape(*x.shape[:2], -1))
        return x + layer.mlp(layer.post_attention_layernorm(x))


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [B, heads, Q, D]."""
    return x * cos[:, None] + rotate_half(x) * sin[:, None]


def _take(x: Tensor, slots: Tensor) -> Tensor:
    """[B, Q, D] at int64 [B, n] -> [B, n, D]"""
    return x.gather(1, slots[..., None].expand(-1, -1, x.shape[-1]))


def _repeat(x: Tensor, groups: int) -> Tensor:
    """[B, heads, K, D] -> [B, heads * groups, K, D]: each head as often as queries share it."""
    return x.repeat_interleave(groups, 1) if groups > 1 else x
