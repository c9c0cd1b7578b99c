"""Where a model runs, and with how many bits."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Placement:
    """device: as PyTorch calls it: `cpu`, `cuda`, `cuda:1`, ...
    dtype: of weights and activations: `float32`, `bfloat16` or `float16`. null: float32 for an actor, and for a planner
    on the CPU; bfloat16 for a planner elsewhere.
    """

    device: str = "cpu"
    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.dtype not in (None, *DTYPES):
            raise ValueError(f"dtype: expected one of {', '.join(DTYPES)}, or null, got {self.dtype!r}")
