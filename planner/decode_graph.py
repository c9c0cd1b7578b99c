"""Decoding as CUDA graphs: the few tokens of a step cost an accelerator less than launching their kernels does.

`decode_step` has shapes that do not depend on how much is known, so that a graph of it can be recorded once and
replayed. It computes the same on a CPU, where it is compared with `TextForward.extend` (tests). Recording and replaying
need a GPU, and have not been run on one yet.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.models.qwen3_vl.modeling_qwen3_vl import rotate_half

from planner.key_values import KeyValues

WIDTH = 16  # tokens of a step; shorter ones are filled up
MOST = 8  # graphs that are kept


def decode_step(text: Any, head: Any, known: KeyValues, ids: Tensor, length: Tensor, start: Tensor) -> Tensor:
    """Logits [Q, V] of tokens int64 [Q] at the positions from `start` on, after the first `length` known tokens.

    length, start: int64 [], on the device. The tokens' keys and values are written behind those tokens; there has to be
    room for them. `known.length` stays as it is.
    """
    steps = torch.arange(len(ids), device=ids.device)
    slots = length + steps
    x = text.embed_tokens(ids)
    cos, sin = (part[0] for part in text.rotary_emb(x[None], (start + steps).expand(3, 1, -1)))
    hidden = torch.arange(known.capacity, device=ids.device) > slots[:, None]
    bias = torch.zeros(hidden.shape, dtype=x.dtype, device=ids.device).masked_fill_(hidden, float("-inf"))
    for index, layer in enumerate(text.layers):
        attention, normed = layer.self_attn, layer.input_layernorm(x)
        heads = (len(ids), -1, attention.head_dim)
        keys = attention.k_norm(attention.k_proj(normed).view(heads)).transpose(0, 1)
        queries = attention.q_norm(attention.q_proj(normed).view(heads)).transpose(0, 1)
        keys, queries = (part * cos + rotate_half(part) * sin for part in (keys, queries))
        all_keys, all_values = known.buffers(index)
        all_keys.index_copy_(1, slots, keys)
        all_values.index_copy_(1, slots, attention.v_proj(normed).view(heads).transpose(0, 1))
        mixed = F.scaled_dot_product_attention(
            queries[None],
            all_keys[None],
            all_values[None],
            attn_mask=bias[None, None],
            scale=attention.scaling,
            enable_gqa=True,
        )
        x = x + attention.o_proj(mixed[0].transpose(0, 1).reshape(len(ids), -1))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return head(text.norm(x))


class DecodeGraphs:
    """Graphs of `decode_step`, one for each head and set of buffers."""

    def __init__(self, text: Any):
        self._text = text
        self._graphs: dict[tuple[int, ...], tuple[KeyValues, Any, dict[str, Tensor]]] = {}

    def __call__(self, head: Any, known: KeyValues, ids: Tensor, start: int) -> Tensor:
        """As `TextForward.extend`, for up to WIDTH tokens."""
        known.reserve(WIDTH)
        buffers = (part for index in range(len(self._text.layers)) for part in known.buffers(index))
        place = (id(head), *(part.data_ptr() for part in buffers))
        if place not in self._graphs or self._graphs[place][0] is not known:
            while len(self._graphs) >= MOST:
                self._graphs.pop(next(iter(self._graphs)))
            self._graphs[place] = self._record(head, known)
        _, graph, given = self._graphs[place]
        given["ids"][: len(ids)] = ids
        given["length"].fill_(known.length)
        given["start"].fill_(start)
        graph.replay()
        known.length += len(ids)
        return given["logits"][: len(ids)].clone()

    def _record(self, head: Any, known: KeyValues) -> tuple[KeyValues, Any, dict[str, Tensor]]:
        device = known.buffers(0)[0].device
        given = {
            "ids": torch.zeros(WIDTH, dtype=torch.long, device=device),
            "length": torch.full((), known.length, dtype=torch.long, device=device),
            "start": torch.zeros((), dtype=torch.long, device=device),
        }
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # what is behind the known tokens may be overwritten
            for _ in range(2):
                decode_step(self._text, head, known, **given)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            given["logits"] = decode_step(self._text, head, known, **given)
        return known, graph, given
