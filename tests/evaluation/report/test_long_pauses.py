"""How far agents get in long tasks."""

from __future__ import annotations

from benchmarks.long_pauses import HEAD, pause_stage, table
from predimem.envs.arena.long.templates import TEMPLATES, long_task


def test_each_template_has_its_pause_in_the_middle() -> None:
    for template in TEMPLATES:
        stages = long_task(template.name).stages
        assert all(2 <= pause_stage(template.name, seed) <= stages - 2 for seed in range(3))


def test_episodes_are_counted_by_how_far_they_came() -> None:
    pause, stages = pause_stage("long-04", 900000), long_task("long-04").stages
    passed = [0, pause - 1, pause, pause + 1, pause + 2, pause + 3, stages]
    records = [
        {
            "agent": "a",
            "task": "long-04",
            "seed": 900000,
            "stages_passed": n,
            "status": status,
            "message": "out of time: x",
        }
        for n, status in zip(passed, [*["failure"] * 6, "success"], strict=True)
    ]
    head, _, line = table(records).splitlines()
    assert [cell.strip() for cell in head.strip("| ").split("|")] == list(HEAD)
    assert [cell.strip() for cell in line.strip("| ").split("|")] == ["`a`", "7", "1", "5", "1", "4", "2", "1"]
