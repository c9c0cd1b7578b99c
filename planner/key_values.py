"""Keys and values of tokens that the language model has read, in buffers that stay where they are.

New tokens are written behind those that count, and what is no longer right is cut off: both cost nothing for what
stays. A buffer is copied only when it has to grow, or gives memory back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCK = 256  # buffers have room for a multiple of so many tokens


class KeyValues:
    """Keys and values [heads, capacity, D] of every layer; the first `length` tokens count."""

    def __init__(self, layers: int, heads: int, size: int, dtype: torch.dtype, device: torch.device):
        self._shape, self._like = (heads, size), {"dtype": dtype, "device": device}
        self._keys = [self._empty(0) for _ in range(layers)]
        self._values = [self._empty(0) for _ in range(layers)]
        self.length = 0

    @classmethod
    def of(cls, model: Any) -> KeyValues:
        """Empty ones for a `Qwen3VLForConditionalGeneration`."""
        text = model.config.text_config
        return cls(text.num_hidden_layers, text.num_key_value_heads, text.head_dim, model.dtype, model.device)

    @property
    def capacity(self) -> int:
        """For so many tokens there is room."""
        return self._keys[0].shape[1]

    @property
    def token_bytes(self) -> int:
        heads, size = self._shape
        return 2 * len(self._keys) * heads * size * self._keys[0].element_size()

    @property
    def bytes(self) -> int:
        return self.capacity * self.token_bytes

    def reserve(self, count: int) -> None:
        """Make room for `count` tokens behind those that count."""
        needed = self.length + count
        if needed > self.capacity:
            self._resize(max(needed, self.capacity * 5 // 4))

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put [heads, Q, D] behind the tokens that count, for which there has to be room; all of the layer's,
        [heads, length + Q, D], as views. `length` stays as it is until the last layer is written."""
        end = self.length + keys.shape[1]
        self._keys[layer][:, self.length : end] = keys
        self._values[layer][:, self.length : end] = values
        return self._keys[layer][:, :end], self._values[layer][:, :end]

    def buffers(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values [heads, capacity, D], whether they count or not."""
        return self._keys[layer], self._values[layer]

    def cut(self, length: int) -> None:
        """Only the first `length` tokens count from now on."""
        if not 0 <= length <= self.length:
            raise ValueError(f"{self.length} tokens are known, so they cannot be cut to {length}")
        self.length = length

    def shrink(self, tokens: int) -> None:
        """Give back memory: keep no room beyond what `tokens` tokens need. Tokens behind them are cut off."""
        self.length = min(self.length, tokens)
        if -(-tokens // BLOCK) * BLOCK < self.capacity:
            self._resize(tokens)

    def _resize(self, tokens: int) -> None:
        capacity = -(-tokens // BLOCK) * BLOCK
        for buffers in (self._keys, self._values):
            for layer, before in enumerate(buffers):  # one by one, so that there is never twice the memory
                buffers[layer] = self._empty(capacity)
                buffers[layer][:, : self.length] = before[:, : self.length]

    def _empty(self, capacity: int) -> Tensor:
        heads, size = self._shape
        return torch.zeros(heads, capacity, size, **self._like)
