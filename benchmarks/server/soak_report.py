"""Reports the soak: memory at the end of the warm-up and at the end, the slope between them, and a plot."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

BLOCK = 12  # samples: two minutes; what lies closer together is not independent
RESAMPLES = 4000


def read(file: Path) -> dict[str, np.ndarray]:
    with open(file, newline="") as data:
        rows = list(csv.DictReader(data))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def slope(hours: np.ndarray, mib: np.ndarray) -> tuple[float, float, float]:
    """MiB an hour by least squares, and a 95 % interval by a bootstrap that draws the residuals in blocks."""
    centred = hours - hours.mean()

    def fit(values: np.ndarray) -> np.ndarray:
        return values @ centred / (centred @ centred)

    found = float(fit(mib))
    line = mib.mean() + found * centred
    left, rng = mib - line, np.random.default_rng(0)
    starts = rng.integers(0, len(left) - BLOCK + 1, (RESAMPLES, -(-len(left) // BLOCK)))
    drawn = left[(starts[:, :, None] + np.arange(BLOCK)).reshape(RESAMPLES, -1)[:, : len(left)]]
    low, high = np.percentile(fit(line + drawn), [2.5, 97.5])
    return found, float(low), float(high)


def rows(samples: dict[str, np.ndarray], warm_up_min: float) -> list[list[str]]:
    """One for each process, and one for both. Raises ValueError for a soak that ends with its warm-up."""
    minutes = samples["seconds"] / 60
    after = minutes >= warm_up_min
    if after.sum() < 2 * BLOCK:
        raise ValueError(f"after {warm_up_min} min there are {after.sum()} samples; a slope needs {2 * BLOCK}")
    server, s2 = samples["server_mib"], samples["s2_mib"]
    made = []
    for name, mib in (("server, with the actor", server), ("S2", s2), ("both", server + s2)):
        found, low, high = slope(minutes[after] / 60, mib[after])
        cells = [name, f"{mib[after][0]:.1f}", f"{mib[-1]:.1f}", f"{mib[after].max():.1f}"]
        made.append([*cells, f"{found:+.1f}", f"{low:+.1f} to {high:+.1f}"])
    return made


def plot(samples: dict[str, np.ndarray], warm_up_min: float, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, figsize=(7, 4), sharex=True, layout="constrained")
    minutes = samples["seconds"] / 60
    for place, (name, field) in zip(axes, (("server, with the actor", "server_mib"), ("S2", "s2_mib")), strict=True):
        place.axvspan(0, warm_up_min, color="0.92")
        place.plot(minutes, samples[field], linewidth=1.2)
        place.set_title(name, loc="left", fontsize=9)
        place.set_ylabel("resident, MiB")
        place.set_ylim(0, 1.15 * samples[field].max())
        place.grid(alpha=0.3)
    axes[-1].set_xlabel("minutes (grey: warm-up)")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
