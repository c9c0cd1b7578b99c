"""The exponential moving average of the weights, which is what gets validated and exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


class Average:
    """Of the weights that are trained. Where these are sharded, so is the average: each process has that of its part.

    decay: 0 keeps no average; what is asked of it then is the weights themselves.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self._decay = decay
        self._trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
        self.values: dict[str, Tensor] = {}
        if decay:
            self.values = {name: value.detach().clone() for name, value in self._trained.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After step `step`, counted from 0. The first steps are averaged over fewer."""
        decay = min(self._decay, (1 + step) / (10 + step))
        for name, mean in self.values.items():
            _local(mean).lerp_(_local(self._trained[name]), 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it, the module has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, mean in self.values.items():
            mine, theirs = _local(mean), _local(self._trained[name])
            kept = theirs.clone()
            theirs.copy_(mine)
            mine.copy_(kept)


def _local(value: Tensor) -> Tensor:
    return value.to_local() if isinstance(value, DTensor) else value
