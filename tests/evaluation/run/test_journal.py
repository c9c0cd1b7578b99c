"""Journals that earlier versions began are read in today's words; what differs is refused all the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from predimem.evaluation.run.jobs import EvaluationError
from predimem.evaluation.run.journal import EvaluationJournal
from predimem.evaluation.run.migrations import AGENT_DEFAULTS

TIME = {"mode": "simulated", "s1_latency_steps": 1, "s2_latency_steps": 2}
PLAY_BEFORE = {"rendering": "stock", "image_px": 128, "inverse_kinematics": "predimem", "time": TIME}
ARENA = {"image_px": 128, "inverse_kinematics": "predimem"}
LEARNED = {"planner": "planner", "actor": "actor", "weights": {"planner": "abc", "actor": "def"}}
NEW = AGENT_DEFAULTS | LEARNED
TOLD_BEFORE = {"planner": "truth", "actor": "actor", "memory": {}, "weights": {"actor": "def"}}
TOLD = AGENT_DEFAULTS | TOLD_BEFORE | {"planner": "oracle"}


def begun(out: Path, benchmark: str, weights: dict[str, str], *lines: dict[str, Any]) -> None:
    provenance = {"play": {"suite": benchmark} | PLAY_BEFORE, "suite_version": "1.0", "weights": weights}
    head = {"schema": 1, "fingerprint": "of before", "identity": {"suite": benchmark, "provenance": provenance}}
    record = {"task": "T", "agent": "a", "seed": 900_000, "status": "failure", "course": "ab12"}
    record["failure"] = {"cause": "timeout", "named": "open"}
    every = (head, *lines, {"run": {"revision": "1"}}, {"episode": record})
    text = "".join(json.dumps(line) + "\n" for line in every)
    (out / "episodes.jsonl").write_text(text)


def identity(benchmark: str, environment: dict[str, Any], version: str = "1.0") -> dict[str, Any]:
    play = {"benchmark": benchmark, "time": TIME, "environment": environment}
    return {"benchmark": benchmark, "provenance": {"play": play, "benchmark_version": version}}


def test_of_the_arena_agents_are_lines_of_their_own(tmp_path: Path) -> None:
    begun(tmp_path, "arena", {}, {"agent": "told", "identity": TOLD_BEFORE})
    for _ in range(2):
        with EvaluationJournal(tmp_path, identity("arena", ARENA), agents={"told": TOLD, "new": NEW}) as journal:
            assert list(journal.records) == [("T", "a", 900_000)] and journal.runs == [{"revision": "1"}]
            (record,) = journal.records.values()
            assert record["trajectory"] == "ab12" and record["failure"] == {"cause": "timeout", "given_label": "open"}
    lines = tmp_path / "episodes.jsonl"
    assert len(lines.read_text().splitlines()) == 4, "nothing is noted before there is something to play"
    for _ in range(2):
        with EvaluationJournal(tmp_path, identity("arena", ARENA), agents={"told": TOLD, "new": NEW}) as journal:
            journal.begin({"revision": "2"})
    assert len(lines.read_text().splitlines()) == 4 + 1 + 2, "the new agent, once, and two runs"
    with pytest.raises(EvaluationError, match=r'told\.weights\.actor \(was "def", is "xyz"\)'):
        EvaluationJournal(tmp_path, identity("arena", ARENA), agents={"told": TOLD | {"weights": {"actor": "xyz"}}})


def test_of_mikasa_agents_were_built_in(tmp_path: Path) -> None:
    begun(tmp_path, "mikasa", {"planner": "abc", "actor": "def"})
    agents = {"predimem": NEW}
    with EvaluationJournal(tmp_path, identity("mikasa", {"rendering": "stock"}), agents=agents) as journal:
        assert list(journal.records) == [("T", "a", 900_000)]
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 3
    with pytest.raises(EvaluationError, match=r'environment\.rendering \(was "stock", is "fast"\).*--overwrite'):
        EvaluationJournal(tmp_path, identity("mikasa", {"rendering": "fast"}))
    with pytest.raises(EvaluationError, match=r'predimem\.weights\.planner \(was "abc", is "xyz"\)'):
        other = {"predimem": NEW | {"weights": {"planner": "xyz", "actor": "def"}}}
        EvaluationJournal(tmp_path, identity("mikasa", {"rendering": "stock"}), agents=other)


def test_an_option_that_came_later_does_not_cost_a_run(tmp_path: Path) -> None:
    """The agents of today's journals, too, get the defaults of options that they were played without."""
    agents = {"predimem": {name: value for name, value in NEW.items() if name not in ("prompt", "planner_options")}}
    with EvaluationJournal(tmp_path, identity("arena", ARENA), agents=agents) as journal:
        journal.begin({"revision": "1"})
    with EvaluationJournal(tmp_path, identity("arena", ARENA), agents={"predimem": NEW}) as journal:
        assert journal.runs == [{"revision": "1"}]
    with pytest.raises(EvaluationError, match=r"predimem\.prompt"):
        EvaluationJournal(tmp_path, identity("arena", ARENA), agents={"predimem": NEW | {"prompt": {"x": 1}}})
