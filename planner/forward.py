"""Runs Qwen3-VL's language model at inference: its own layers, with logits only where they are asked for.

It computes the same sums as transformers' `forward` (tests compare the two), except for those that greedy decoding
does not need: of the last layer, only keys and values are computed for positions whose logits nobody wants. Tokens
of several robots go through the layers side by side without padding, and each robot's attend to its own keys alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right
from transformers.models.qwen3_vl.modeling_qwen3_vl import rotate_half

from planner.decode_graph import WIDTH, DecodeGraphs
from planner.key_values import KeyValues


class Interrupted(Exception):
    """The caller has something more urgent to do: nothing of this pass counts."""


@dataclass(frozen=True, eq=False)
class Part:
    """The next tokens of one robot's prompt or answer.

    ids: int64 [Q]; positions: int64 [3, Q] (M-RoPE); is_image: bool [Q].
    merged: [slots, D] for each image among them, in order; deepstack: for each image and each of the first layers
        what is added there, [slots, D].
    known: what was read before; it grows by Q tokens.
    wanted: the logits of so many of its last tokens are asked for. None of them may be an image's.
    """

    ids: Tensor
    positions: Tensor
    is_image: Tensor
    merged: Sequence[Tensor]
    deepstack: Sequence[Sequence[Tensor]]
    known: KeyValues
    wanted: int

    @property
    def count(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Block:
    """More tokens of an answer, at the positions from `start` on, after what is `known`."""

    tokens: list[int]
    start: int
    known: KeyValues


class TextForward:
    """The language model and head of a `Qwen3VLForConditionalGeneration`. Callers switch gradients off."""

    def __init__(self, model: Any):
        self._text = model.model.language_model
        self._head = model.lm_head
        self.device: torch.device = model.device
        self._graphs = DecodeGraphs(self._text) if self.device.type == "cuda" else None

    def embed(self, ids: Tensor) -> Tensor:
        """[Q] -> [Q, D]"""
        return self._text.embed_tokens(ids)

    def read(self, parts: Sequence[Part], interrupted: Callable[[], bool] = lambda: False) -> list[Tensor]:
        """Logits [wanted, V] of each part, whose tokens are known from then on.

        Raises Interrupted where `interrupted` says so between two layers; then no token of the parts is known.
        """
        x = self.embed(torch.cat([part.ids for part in parts]).to(self.device))
        images = torch.cat([part.is_image for part in parts]).to(self.device)
        merged = [image for part in parts for image in part.merged]
        if merged:
            x[images] = torch.cat(merged).to(x.dtype)
        deepstack = [
            torch.cat(level) for level in zip(*(image for part in parts for image in part.deepstack), strict=True)
        ]
        rope = self._rope(x, torch.cat([part.positions for part in parts], 1).to(self.device))
        masks = [self._mask(part, x) for part in parts]
        for part in parts:
            part.known.reserve(part.count)
        layers = self._text.layers
        for index, layer in enumerate(layers):
            if interrupted():
                raise Interrupted
            last = index == len(layers) - 1
            x = self._layer(index, layer, x, rope, parts, masks, last)
            if index < len(deepstack) and not last:
                x[images] += deepstack[index].to(x.dtype)
        for part in parts:
            part.known.length += part.count
        logits = self._head(self._text.norm(x)) if len(x) else x
        return list(logits.split([part.wanted for part in parts]))

    def extend(self, blocks: Sequence[Block]) -> list[Tensor]:
        """Logits [Q, V] after every token of each block, whose tokens are known from then on."""
        if self._graphs is not None and all(len(block.tokens) <= WIDTH for block in blocks):
            return [
                self._graphs(self._head, block.known, torch.tensor(block.tokens, device=self.device), block.start)
                for block in blocks
            ]
        return self.read([_answer_part(block) for block in blocks])

    def _rope(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin, each [T, D of a head]"""
        cos, sin = self._text.rotary_emb(x[None], positions[:, None])
        return cos[0], sin[0]

    def _layer(
        self,
        index: int,
        layer: Any,
        x: Tensor,
        rope: tuple[Tensor, Tensor],
        parts: Sequence[Part],
        masks: Sequence[Tensor | None],
        last: bool,
    ) -> Tensor:
        """One layer, [T, D]; of the last one only what is wanted."""
        attention, normed = layer.self_attn, layer.input_layernorm(x)
        keys = _turn(attention.k_norm(_heads(attention, attention.k_proj(normed))), *rope)
        values = _heads(attention, attention.v_proj(normed))
        counts = [part.count for part in parts]
        split = zip(parts, keys.split(counts, 1), values.split(counts, 1), strict=True)
        known = [part.known.write(index, k, v) for part, k, v in split]
        if last:
            kept = _ends(parts, x.device)
            x, normed, rope = x[kept], normed[kept], (rope[0][kept], rope[1][kept])
            counts = [part.wanted for part in parts]
            if not len(x):
                return x
        queries = _turn(attention.q_norm(_heads(attention, attention.q_proj(normed))), *rope)
        mixed = [
            _attend(q, k, v, part.known.length, mask, attention.scaling)
            for q, (k, v), part, mask in zip(queries.split(counts, 1), known, parts, masks, strict=True)
            if q.shape[1]
        ]
        x = x + attention.o_proj(torch.cat(mixed))
        return x + layer.mlp(layer.post_attention_layernorm(x))

    def _mask(self, part: Part, x: Tensor) -> Tensor | None:
        """[Q * groups, K], what is added to the scores of the queries that share a head; None where it is not needed:
        there is nothing to hide, or `_attend` leaves it to a kernel that knows what is causal."""
        if x.device.type != "cpu" or part.known.length == 0 or part.count == 1:
            return None
        groups = self._text.config.num_attention_heads // self._text.config.num_key_value_heads
        rows = torch.arange(part.count).repeat_interleave(groups)[:, None] + part.known.length
        future = torch.arange(part.known.length + part.count) > rows
        return torch.zeros(future.shape, dtype=x.dtype).masked_fill_(future, float("-inf"))


def _attend(q: Tensor, k: Tensor, v: Tensor, before: int, mask: Tensor | None, scale: float) -> Tensor:
    """What the last Q of K tokens attend to, [Q, heads * D]. q: [heads, Q, D]; k, v: [fewer heads, K, D].

    before: how many of the K were known before this part. mask: `TextForward._mask` of all tokens of the part, of
    which q are the last ones.
    """
    heads, count, size = q.shape
    shared, total = k.shape[:2]
    if q.device.type == "cpu" and before:
        # Queries that share a head are stacked: keys are neither copied nor read twice, which makes it twice as fast.
        stacked = q.view(shared, -1, count, size).transpose(1, 2).reshape(shared, -1, size)
        bias = None if mask is None else mask[-stacked.shape[1] :]
        mixed = F.scaled_dot_product_attention(stacked[None], k[None], v[None], attn_mask=bias, scale=scale)
        return mixed[0].view(shared, count, -1, size).transpose(0, 1).reshape(count, heads * size)
    whole = count == total
    mixed = F.scaled_dot_product_attention(
        q[None],
        k[None],
        v[None],
        attn_mask=None if whole or count == 1 else causal_lower_right(count, total),
        is_causal=whole and count > 1,
        scale=scale,
        enable_gqa=True,
    )
    return mixed[0].transpose(0, 1).reshape(count, heads * size)


def _answer_part(block: Block) -> Part:
    count = len(block.tokens)
    return Part(
        ids=torch.tensor(block.tokens),
        positions=(block.start + torch.arange(count)).expand(3, -1),
        is_image=torch.zeros(count, dtype=torch.bool),
        merged=(),
        deepstack=(),
        known=block.known,
        wanted=count,
    )


def _heads(attention: Any, x: Tensor) -> Tensor:
    """[T, heads * D] -> [heads, T, D]"""
    return x.view(len(x), -1, attention.head_dim).transpose(0, 1)


def _ends(parts: Sequence[Part], device: torch.device) -> Tensor:
    """Where the wanted tokens are among those of all parts, int64."""
    ends, start = [], 0
    for part in parts:
        start += part.count
        ends.append(torch.arange(start - part.wanted, start, device=device))
    return torch.cat(ends)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [heads, T, D]."""
    return x * cos + rotate_half(x) * sin
