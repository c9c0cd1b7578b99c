"""What `benchmarks.smooth_chunks` makes of a trace, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.smooth_chunks import figures, rows


def tick(action: float, asked: bool = False, held: bool = False, stale: bool = False) -> dict[str, Any]:
    return {
        "action": [action, 0.0, 9.0 if held else -9.0],  # the gripper does not count
        "s1_latency_s": 0.01 if asked else None,
        "held_action": held,
        "stale_action": stale,
    }


def test_jerk_is_told_apart_by_where_chunks_meet():
    ticks = [tick(0, asked=True, held=True), tick(0, held=True), tick(1), tick(2), tick(4, asked=True)]
    ticks += [tick(6), tick(3, stale=True), tick(3)]  # the chunk that was asked for at 4 begins at 6
    found = figures(ticks, latency_steps=2)
    assert found["held"] == 0.25 and found["stale"] == pytest.approx(1 / 6)
    # second differences at 4, 5, 6, 7; those before look at steps at which the robot was held
    assert found["jerk"] == {"border": [(3 - 12 + 4) ** 2, 1], "within": [1.0 + 0.0 + 9.0, 3]}


def test_episodes_of_a_cell_are_one_row():
    line = {"task": "arena:1", "mode": "naive", "latency_ms": 100, "stale": 0.5, "held": 0.0}
    line |= {"jerk": {"border": [4.0, 1], "within": [0.0, 0]}}
    lines = [line | {"seed": seed, "success": seed == 1} for seed in (1, 2)]
    (row,) = rows(lines)
    assert row == ["arena: 1", "100", "naive", "2", "0.50", "0.09 to 0.91", "50.0 %", "0.0 %", "2.000", "-"]


def test_only_episodes_that_every_execution_played_are_counted():
    line = {"task": "arena:1", "latency_ms": 100, "stale": 0.0, "held": 0.0, "success": True}
    line |= {"jerk": {"border": [4.0, 1], "within": [0.0, 0]}}
    played = [("naive", 1), ("naive", 2), ("guided", 2), ("guided", 3)]
    assert [row[2:4] for row in rows([line | {"mode": mode, "seed": seed} for mode, seed in played])] == [
        ["naive", "1"],
        ["guided", "1"],
    ]
