"""The soak's slope and its interval, on series whose slope is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.server.soak_report import alike_s, rows, slope

SAMPLES = 300
SECONDS = 10.0 * np.arange(SAMPLES)


def series(rng: np.random.Generator, reach_s: float, mib_per_hour: float = 3.0) -> np.ndarray:
    """A line, and noise whose correlation falls by a factor e in `reach_s`."""
    keeps, noise = np.exp(-10.0 / reach_s), np.zeros(SAMPLES)
    noise[0] = rng.normal()
    for k in range(1, SAMPLES):
        noise[k] = keeps * noise[k - 1] + np.sqrt(1 - keeps**2) * rng.normal()
    return 500 + mib_per_hour * SECONDS / 3600 + noise


def test_the_interval_holds_the_true_slope_where_samples_are_alike() -> None:
    """For 95 % of the series; an interval for independent samples holds it for about 60 % of these."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(60):
        found, low, high = slope(SECONDS / 3600, series(rng, reach_s=60.0), resamples=200)
        assert low < found < high
        held += low <= 3.0 <= high
    assert held >= 52


def test_growth_is_told_from_none() -> None:
    rng = np.random.default_rng(1)
    _, low, _ = slope(SECONDS / 3600, series(rng, 30.0, mib_per_hour=42.0))
    assert low > 30
    _, low, high = slope(SECONDS / 3600, series(rng, 30.0, mib_per_hour=0.0))
    assert low < 0 < high


def test_how_long_samples_are_alike() -> None:
    rng = np.random.default_rng(2)
    typical = np.median([alike_s(SECONDS, series(rng, reach_s=100.0)) for _ in range(50)])
    assert typical == pytest.approx(100, rel=0.35)


def test_a_process_that_was_restarted_counts_from_its_longest_stretch() -> None:
    rng = np.random.default_rng(3)
    samples = {f"{name}_{kind}": series(rng, 30.0) for name in ("server", "s2") for kind in ("mib", "anonymous_mib")}
    samples |= {"seconds": SECONDS, "server_cpu_s": SECONDS / 10, "s2_cpu_s": np.where(SECONDS < 600, SECONDS, 0.0)}
    samples["s2_anonymous_mib"][:60] -= 300  # it was another process
    found = {row[0]: row for row in rows(samples, 10.0)}
    assert found["server, with the actor"][1] == "10 to 50"
    assert found["S2"][1] == "20 to 50" and abs(float(found["S2"][5])) < 30


def test_a_soak_that_is_too_short() -> None:
    fields = ("server_mib", "server_anonymous_mib", "server_cpu_s", "s2_mib", "s2_anonymous_mib", "s2_cpu_s")
    samples = {"seconds": SECONDS} | {name: SECONDS for name in fields}
    with pytest.raises(ValueError, match="after a warm-up of 40 min there are 60 samples of one process"):
        rows(samples, 40.0)
