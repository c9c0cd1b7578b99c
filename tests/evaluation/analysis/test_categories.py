"""The table of categories against numbers worked out by hand."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from predimem.evaluation.analysis.categories import format_categories, summarise_categories
from predimem.evaluation.analysis.metrics import mean_interval, wilson_interval
from predimem.evaluation.report.summary import summarise, summarise_means
from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
from tests.evaluation.analysis.test_metrics import record
from tests.evaluation.fake_player import FakePlayer

CATEGORIES = {"counting": ["pour twice"], "sequence": ["first", "second", "not played"], "occlusion": ["hidden"]}
# task: (status, stages passed) of each episode; 4 stages each
PLAYED = {
    "first": [("success", 4), ("failure", 1), ("failure", 2), ("failure", 1)],
    "second": [("success", 4), ("success", 4), ("error", 0)],
    "pour twice": [("failure", 3), ("failure", 0)],
}


def played() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    records = []
    for task, episodes in PLAYED.items():
        for seed, (status, passed) in enumerate(episodes):
            message = "a third pour" if status == "failure" else ""
            records.append(record(task, "a", seed, status, stages_passed=passed, stages_total=4, message=message))
    return records, {task: {"a": summarise([r for r in records if r["task"] == task])} for task in PLAYED}


def test_a_category_is_the_mean_of_its_tasks() -> None:
    records, _ = played()
    result = summarise_categories(records, ["a"], list(PLAYED), CATEGORIES)
    assert list(result) == ["counting", "sequence"]  # in the order given; nothing of occlusion was played
    assert result["sequence"]["tasks"] == ["first", "second"]
    sequence = result["sequence"]["agents"]["a"]
    assert sequence["success"] == pytest.approx((1 / 4 + 2 / 2) / 2)
    assert sequence["csr"] == pytest.approx(((1 + 0.25 + 0.5 + 0.25) / 4 + 1) / 2)
    assert (sequence["n"], sequence["errors"], sequence["tasks"]) == (6, 1, 2)
    assert (sequence["ci_low"], sequence["ci_high"]) == mean_interval({"first": [1, 0, 0, 0], "second": [1, 1]})
    assert "variance of all episodes, as a task has fewer than 5" in sequence["interval"]
    counting = result["counting"]["agents"]["a"]
    assert (counting["success"], counting["csr"]) == (0.0, 0.375)
    assert (counting["ci_low"], counting["ci_high"]) == pytest.approx(wilson_interval(0, 2))
    assert 0.0 <= counting["csr_ci_low"] < 0.375 < counting["csr_ci_high"] < 0.9


def test_the_average_is_over_tasks_not_over_categories() -> None:
    records, _ = played()
    assert summarise_means(records, ["a"], list(PLAYED))["a"]["success"] == pytest.approx((1 / 4 + 1 + 0) / 3)


def test_a_cell_counts_its_reasons_and_has_an_interval_for_csr() -> None:
    _, table = played()
    cell = table["first"]["a"]
    assert cell["failures"] == {"a third pour": 3}
    assert cell["csr"] == 0.5 and 0.15 < cell["csr_ci_low"] < 0.5 < cell["csr_ci_high"] < 0.85
    assert table["second"]["a"]["failures"] == {}


def test_the_printed_table() -> None:
    records, table = played()
    results = {
        "config": {"agents": ["a"]},
        "results": table,
        "mean": summarise_means(records, ["a"], list(PLAYED)),
        "categories": summarise_categories(records, ["a"], list(PLAYED), CATEGORIES),
    }
    lines = format_categories(results).splitlines()
    assert lines[0].split() == ["counting", "sequence", "average"]
    assert lines[1].split() == ["agent", *["TSR", "CSR"] * 3]
    assert lines[3].startswith("a      0.0 [0, 66]") and "62.5 [" in lines[3] and "41.7 [" in lines[3]
    second = next(line for line in lines if line.startswith("second"))
    assert second.split() == ["second", "sequence", "100.0", "[34,", "100]", "100.0", "[34,", "100]", "2", "+1e"]
    assert "1 episodes ended in an error" in lines[-1]
    assert "mean over tasks, 95 % interval: normal with one episode added at either end" in lines[-2]


def test_an_evaluation_with_categories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = EvaluationConfig(
        "arena", ("b", "a"), ("predimem", "reactive"), 5, out=str(tmp_path), videos_per_task=0, traces_per_task=1
    )
    results = run_evaluation(settings, partial(FakePlayer, raise_seed=900_002), {"late": ["a"], "early": ["b"]})
    assert results["categories"]["late"]["agents"]["predimem"]["success"] == 0.75  # seed 4 fails, seed 2 crashed
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["categories"] == json.loads(json.dumps(results["categories"]))
    assert [e["seed"] for e in results["episodes"] if e["trace"]] == [900_000] * 4
    assert len(list((tmp_path / "traces").rglob("*.json"))) == 4
    table = capsys.readouterr().out
    assert "late" in table and "75.0 [30, 95]" in table
    markdown = (tmp_path / "table.md").read_text()
    assert "| predimem | 75.0 [30, 95] |" in markdown and "Seeds 900000 to 900004 of each task" in markdown
    assert "mean over tasks, 95 % interval: normal with one episode added" in markdown
    page = (tmp_path / "report.html").read_text()
    assert "early (1 task)" in page and "mean over tasks, 95 % interval" in page and "75.0%" in page
