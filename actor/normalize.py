"""Normalisation statistics. They are kept beside the weights in the layout of openpi's `norm_stats.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FIELDS = ("q01", "q99", "mean", "std")


@dataclass(frozen=True, eq=False)
class Quantiles:
    """The 1 % and 99 % quantiles of each dimension: float [D], in physical units.

    mean, std: float [D]. π0.5 does not use them, but openpi's file has to have them, so they are kept where they are
    known.
    """

    q01: np.ndarray
    q99: np.ndarray
    mean: np.ndarray | None = None
    std: np.ndarray | None = None

    def first(self, dim: int) -> Quantiles:
        """Those of the first `dim` dimensions."""
        return Quantiles(*(None if v is None else v[:dim] for v in (self.q01, self.q99, self.mean, self.std)))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class NormStats:
    """Quantiles of the state and of the actions, as the model sees them (`actor.robot_space`)."""

    state: Quantiles
    actions: Quantiles

    def check(self, state_dim: int, action_dim: int, source: str | Path) -> None:
        """Raises ValueError unless the statistics have as many dimensions as the config."""
        for name, got, expected in (
            ("state", len(self.state.q01), state_dim),
            ("actions", len(self.actions.q01), action_dim),
        ):
            if got != expected:
                raise ValueError(
                    f"{source}: {name} has {got} dimensions, the config expects {expected}; these are the statistics "
                    f"of another robot: mend {'state_dim' if name == 'state' else 'action_dim'} in the config, or "
                    "train with stats_from: data"
                )


def compute_quantiles(values: np.ndarray) -> Quantiles:
    """Statistics over all leading axes of float [..., D].

    A dimension that moves in fewer than a hundredth of the rows has equal quantiles, and would be taken for one that is
    always the same: an actor could never command it. Its smallest and largest value stand for them.
    """
    flat = np.asarray(values, np.float64).reshape(-1, values.shape[-1])
    if not np.isfinite(flat).all():
        raise ValueError("cannot normalise values that are not finite")
    low, high = np.quantile(flat, [0.01, 0.99], axis=0)
    rare = low == high
    low, high = np.where(rare, flat.min(0), low), np.where(rare, flat.max(0), high)
    return Quantiles(*(value.astype(np.float32) for value in (low, high, flat.mean(0), flat.std(0))))


def save_stats(path: str | Path, stats: NormStats) -> None:
    data = {
        name: {field: value.tolist() for field in FIELDS if (value := getattr(quantiles, field)) is not None}
        for name, quantiles in (("state", stats.state), ("actions", stats.actions))
    }
    Path(path).write_text(json.dumps({"norm_stats": data}, indent=1) + "\n")


def load_stats(path: str | Path) -> NormStats:
    """Read statistics of ours or of openpi. Raises ValueError if quantiles are missing or are no numbers."""
    try:
        data = json.loads(Path(path).read_text())["norm_stats"]
        return NormStats(*(_quantiles(data[name], f"{path}: {name}") for name in ("state", "actions")))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} holds no quantiles for state and actions: {error!r}") from error


def _quantiles(data: dict[str, list[float] | None], where: str) -> Quantiles:
    values = {field: np.asarray(data[field], np.float64) for field in FIELDS if data.get(field) is not None}
    quantiles = Quantiles(values["q01"], values["q99"], values.get("mean"), values.get("std"))
    for field, value in values.items():
        if value.shape != quantiles.q01.shape or value.ndim != 1 or not np.isfinite(value).all():
            raise ValueError(f"{where}: {field} should be {quantiles.q01.size} finite numbers, got {value.tolist()}")
    return quantiles
