"""What planners named first that was not due, counted over the failed episodes of a results file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.robomme_mistakes import KINDS, kind, table
from predimem.evaluation.analysis.compact import compact_json, episodes_of
from predimem.evaluation.analysis.mistakes import Mistake

DUE = "pick up the container at row 5 column 9"


def _record(task: str, seed: int, named: str, due: str = DUE, status: str = "failure") -> dict[str, Any]:
    mistake = Mistake(4, None, f"named “{named}”", due).to_dict() if named else None
    return {"task": task, "agent": "predimem", "seed": seed, "status": status, "mistake": mistake}


def test_kinds_of_mistakes() -> None:
    assert kind(_record("A", 0, "pick up the container at row 5 column 8")["mistake"]) == "another place"
    assert kind(_record("A", 0, "pick up the cube at row 5 column 9")["mistake"]) == "another subtask"
    assert kind(_record("A", 0, "put it into the bin", "pick up the first red cube")["mistake"]) == "placed too early"
    assert kind(_record("A", 0, "watch the video")["mistake"]) == "still the video"
    assert kind(None) == "nothing wrong"


def test_counts_by_task_from_a_compact_file() -> None:
    records = [
        _record("VideoUnmask", 1, "pick up the container at row 1 column 1"),
        _record("VideoUnmask", 2, "watch the video"),
        _record("VideoUnmask", 3, "pick up the container at row 1 column 1", status="success"),
        _record("BinFill", 1, "put it into the bin"),
        _record("BinFill", 2, ""),
    ]
    compact = json.loads(compact_json({"episodes": records, "results": {}}))
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table(episodes_of(compact), "task").split("\n")
    ]
    assert lines[0] == ["task", "failed", *KINDS]
    assert lines[2:] == [["VideoUnmask", "2", "1", "1", "0", "0", "0"], ["BinFill", "2", "0", "0", "1", "0", "1"]]
    assert table(records, "agent").splitlines()[-1].startswith("| `predimem` | 4 |")


def test_a_file_without_mistakes_is_refused() -> None:
    with pytest.raises(ValueError, match="first mistake"):
        table([{"task": "A", "agent": "b", "seed": 1, "status": "failure"}], "task")
