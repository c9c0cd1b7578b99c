"""The table of RoboMME's tasks beside published figures."""

from __future__ import annotations

from benchmarks.mikasa_table import counts_of
from benchmarks.robomme_table import table


def test_a_line_a_task_and_their_mean_beside_published_figures() -> None:
    groups = [
        {"task": task, "agent": agent, "rows": [[900_000 + i, status] for i, status in enumerate(rows)]}
        for task, agent, rows in (
            ("VideoUnmask", "keyframes", ["success"] * 3 + ["failure"]),
            ("VideoUnmask", "video", ["failure"] * 4),
            ("BinFill", "keyframes", ["success", "error", "failure"]),
            ("BinFill", "video", ["success"] * 4),
        )
    ]
    made = table(counts_of({"columns": ["seed", "status"], "groups": groups}), ["keyframes", "video"])
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in made.splitlines()]
    assert lines[0] == ["task", "`keyframes`", "`video`", "MemER (keyframes)", "FrameSamp+Modul", "π0.5"]
    assert (
        lines[2][0] == "VideoUnmask"
        and lines[2][1].startswith("3/4 [0.30")
        and lines[2][3:]
        == [
            *("0.81", "0.33", "0.20"),
        ]
    )
    assert lines[3][1].startswith("1/2 [")
    assert lines[4] == ["mean", "0.62", "0.50", "0.69", "0.36", "0.25"]
