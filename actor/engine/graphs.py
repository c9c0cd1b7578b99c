"""CUDA graphs: prefix and all Euler steps are one recorded graph for each shape of the inputs.

Launching some thousand small kernels from Python takes longer than computing them. A recorded graph is launched once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from actor.pi05 import Prompted

log = logging.getLogger(__name__)
Run = Callable[[Prompted, Tensor, bool], Tensor]
Shapes = tuple[tuple[int, ...] | None, ...]
WARM_UP_PASSES = 3  # before recording, so that libraries have chosen their algorithms and workspaces


@dataclass(frozen=True, eq=False)
class _Recorded:
    graph: torch.cuda.CUDAGraph
    inputs: Prompted
    noise: Tensor
    actions: Tensor


class GraphCache:
    """Calls `run` by replaying its recording for the shapes of these inputs, which is made at the first call.

    A shape that cannot be recorded is run eagerly from then on, with a warning in the log. Not thread-safe.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._recorded: dict[Shapes, _Recorded | None] = {}

    def __call__(self, inputs: Prompted, noise: Tensor, always_mask: bool) -> Tensor:
        shapes = shapes_of(inputs, noise)
        if shapes not in self._recorded:
            self._recorded[shapes] = self._try_to_record(inputs, noise)
        recorded = self._recorded[shapes]
        if recorded is None:
            return self._run(inputs, noise, always_mask)
        _copy(inputs, recorded.inputs)
        recorded.noise.copy_(noise)
        recorded.graph.replay()
        return recorded.actions.clone()

    def _try_to_record(self, inputs: Prompted, noise: Tensor) -> _Recorded | None:
        try:
            return self._record(inputs, noise)
        except RuntimeError as error:
            log.warning("no CUDA graph for %s, which runs eagerly: %s", shapes_of(inputs, noise), error)
            torch.cuda.synchronize()
            return None

    def _record(self, inputs: Prompted, noise: Tensor) -> _Recorded:
        inputs, noise = inputs.map(torch.clone), noise.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_PASSES):
                self._run(inputs, noise, True)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            actions = self._run(inputs, noise, True)
        return _Recorded(graph, inputs, noise, actions)


def shapes_of(inputs: Prompted, noise: Tensor) -> Shapes:
    parts = [getattr(inputs, name) for name in inputs.__dataclass_fields__]
    return tuple(None if part is None else tuple(part.shape) for part in (*parts, noise))


def _copy(source: Prompted, target: Prompted) -> None:
    for name in source.__dataclass_fields__:
        part = getattr(source, name)
        if part is not None:
            getattr(target, name).copy_(part)
