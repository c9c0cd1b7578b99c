"""Reports the soak: memory at the end of the warm-up and at the end, the slope between them, and a plot.

The warm-up of a process is left out by time, which is set before the run. By its end all that comes and goes has done
so several times: sessions expire after a minute, and the episodes on disk have been replaced twice.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np

BLOCKS = (12, 30, 60)  # samples
SHORTEST = 2 * max(BLOCKS)  # samples that a slope needs
RESAMPLES = 4000


def read(file: Path) -> dict[str, np.ndarray]:
    with open(file, newline="") as data:
        rows = list(csv.DictReader(data))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def slope(hours: np.ndarray, mib: np.ndarray, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """MiB an hour by least squares, and a 95 % interval that holds where neighbouring samples are alike.

    A moving-block bootstrap draws the residuals in blocks, so that what is alike stays together. Nobody knows how far
    that reaches: the interval is the widest of those for blocks of each length in `BLOCKS`.
    """
    centred = hours - hours.mean()
    found, found_mean = float(mib @ centred / (centred @ centred)), mib.mean()
    residuals = mib - found_mean - found * centred
    rng = np.random.default_rng(0)
    ends = np.array([_drawn_slopes(centred, residuals, block, resamples, rng) for block in BLOCKS])
    low, high = ends[np.argmax(ends[:, 1] - ends[:, 0])]
    return found, found + float(low), found + float(high)


def _drawn_slopes(
    centred: np.ndarray, residuals: np.ndarray, block: int, resamples: int, rng: np.random.Generator
) -> np.ndarray:
    """(2.5 %, 97.5 %) of the slopes of residuals that are drawn in blocks.

    A few long blocks vary less than the truth does, by (k - 1) / k in variance for k of them, and their quantiles are
    those of Student's distribution with k - 1 degrees of freedom rather than the normal one's.
    """
    from scipy.stats import norm, t

    count = len(residuals)
    blocks = -(-count // block)
    starts = rng.integers(0, count - block + 1, (resamples, blocks))
    drawn = residuals[(starts[:, :, None] + np.arange(block)).reshape(resamples, -1)[:, :count]]
    slopes = (drawn - drawn.mean(axis=1, keepdims=True)) @ centred / (centred @ centred)
    wider = np.sqrt(blocks / (blocks - 1)) * t.ppf(0.975, blocks - 1) / norm.ppf(0.975)
    return np.percentile(slopes - slopes.mean(), [2.5, 97.5]) * wider


def alike_s(seconds: np.ndarray, mib: np.ndarray) -> float:
    """After so many seconds the correlation of the residuals is below 1/e."""
    residuals = mib - np.polyval(np.polyfit(seconds, mib, 1), seconds)
    power = residuals @ residuals
    lag = 0
    while lag < len(residuals) - 1 and residuals[lag:] @ residuals[: len(residuals) - lag] > power / np.e:
        lag += 1
    return float(lag * np.median(np.diff(seconds)))


def head() -> list[str]:
    """Names of the columns of `rows`."""
    return ["resident memory, MiB", "minutes", "first", "last", "most", "slope, MiB/h", "95 %", "alike, s"]


def rows(samples: dict[str, np.ndarray], warm_up_min: float) -> list[list[str]]:
    """One for each process and kind of memory, and one for all. Raises ValueError for a soak that is too short."""
    minutes = samples["seconds"] / 60
    server, s2 = (_one_process(samples[f"{name}_cpu_s"]) for name in ("server", "s2"))
    lines: list[tuple[str, slice, np.ndarray]] = []
    for name, part, field in (("server, with the actor", server, "server"), ("S2", s2, "s2")):
        own = samples[f"{field}_anonymous_mib"]
        lines += [(name, part, own), (f"{name}, in files", part, samples[f"{field}_mib"] - own)]
    lines.append(("both, all", s2, samples["server_mib"] + samples["s2_mib"]))
    made = []
    for name, part, of_all in lines:
        passed, mib = minutes[part], of_all[part]
        passed, mib = passed[passed >= passed[0] + warm_up_min], mib[passed >= passed[0] + warm_up_min]
        if len(mib) < SHORTEST:
            raise ValueError(
                f"{name}: after a warm-up of {warm_up_min:g} min there are {len(mib)} samples of one process; a slope "
                f"needs {SHORTEST}: play for longer, or shorten the warm-up"
            )
        found, low, high = slope(passed / 60, mib)
        cells = [name, f"{passed[0]:.0f} to {passed[-1]:.0f}", f"{mib[0]:.1f}", f"{mib[-1]:.1f}", f"{mib.max():.1f}"]
        made.append([*cells, f"{found:+.1f}", f"{low:+.1f} to {high:+.1f}", f"{alike_s(60 * passed, mib):.0f}"])
    return made


def _one_process(cpu_s: np.ndarray) -> slice:
    """The longest stretch in which a process was not restarted: its processor time never falls."""
    ends = [0, *(np.flatnonzero(np.diff(cpu_s) < 0) + 1), len(cpu_s)]
    return max((slice(a, b) for a, b in itertools.pairwise(ends)), key=lambda part: part.stop - part.start)


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
