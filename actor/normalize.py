"""Normalisation statistics. They are kept beside the weights in the layout of openpi's `norm_stats.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class Quantiles:
    """The 1 % and 99 % quantiles of each dimension: float32 [D], in physical units."""

    q01: np.ndarray
    q99: np.ndarray


@dataclass(frozen=True, eq=False)
class NormStats:
    """Quantiles of the state and of the actions."""

    state: Quantiles
    actions: Quantiles

    def check(self, state_dim: int, action_dim: int, source: str | Path) -> None:
        """Raises ValueError unless the statistics have as many dimensions as the config."""
        for name, got, expected in (
            ("state", len(self.state.q01), state_dim),
            ("actions", len(self.actions.q01), action_dim),
        ):
            if got != expected:
                raise ValueError(f"{source}: {name} has {got} dimensions, the config expects {expected}")


def compute_quantiles(values: np.ndarray) -> Quantiles:
    """Quantiles over all leading axes of float [..., D]."""
    flat = np.asarray(values, np.float64).reshape(-1, values.shape[-1])
    if not np.isfinite(flat).all():
        raise ValueError("cannot normalise values that are not finite")
    q01, q99 = np.quantile(flat, [0.01, 0.99], axis=0)
    return Quantiles(q01.astype(np.float32), q99.astype(np.float32))


def save_stats(path: str | Path, stats: NormStats) -> None:
    data = {
        name: {"q01": quantiles.q01.tolist(), "q99": quantiles.q99.tolist()}
        for name, quantiles in (("state", stats.state), ("actions", stats.actions))
    }
    Path(path).write_text(json.dumps({"norm_stats": data}, indent=1) + "\n")


def load_stats(path: str | Path) -> NormStats:
    """Read statistics of ours or of openpi. Raises ValueError if quantiles are missing."""
    try:
        data = json.loads(Path(path).read_text())["norm_stats"]
        state, actions = (
            Quantiles(*(np.asarray(data[name][q], np.float32) for q in ("q01", "q99"))) for name in ("state", "actions")
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} holds no quantiles for state and actions: {error!r}") from error
    return NormStats(state, actions)
