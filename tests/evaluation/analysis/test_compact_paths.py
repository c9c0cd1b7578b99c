"""A compact file says nothing of the folders of the machine that made it."""

from __future__ import annotations

import json

import pytest

from predimem.evaluation.analysis.compact import compact_json


@pytest.mark.parametrize(
    ("out", "kept"), [("/somewhere/else/runs/eval/slips", "slips"), ("runs/eval/slips", "runs/eval/slips")]
)
def test_a_whole_path_is_not_kept(out: str, kept: str) -> None:
    results = {"config": {"out": out, "episodes": 5}, "results": {}, "episodes": []}
    assert json.loads(compact_json(results))["config"] == {"out": kept, "episodes": 5}
    assert results["config"]["out"] == out
