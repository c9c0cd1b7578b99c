"""The planner's own frozen vision tower as the embedding of keyframes, for `memory_bank.retrieval`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from predimem.core.weight_files import weights_folder

if TYPE_CHECKING:
    import numpy as np

    from predimem.core.types import Frame

ARENA_PLANNER = "arena-planner"


@functools.cache
def tower(weights: str = ARENA_PLANNER, root: str | None = None) -> Callable[[Sequence[Frame]], np.ndarray]:
    """F frames -> float32 [F, D], by `planner.decoding.QwenPlanner.embed`; one in each process.

    weights: the folder of a planner below `root`, or below the shipped weights. Raises WeightsError where there is
    none, and PlannerCheckpointError where it cannot be loaded.
    """
    from planner.decoding import load_planner

    return load_planner(weights_folder(root, weights)).embed
