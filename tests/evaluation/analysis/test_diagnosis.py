"""The tables that are no success rates, from records made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from predimem.core.types import EpisodeResult, StepResult, Tick
from predimem.evaluation.analysis.diagnosis import diagnose, format_diagnosis, quantile
from predimem.evaluation.analysis.planner_figures import planner_counts
from predimem.evaluation.report.ticks import TickStatistics
from tests.evaluation.fake_player import observation, play_frames
from tests.evaluation.logs import GOOD, log


def record(agent: str, status: str, cause: str = "", task: str = "wine", **more: Any) -> dict[str, Any]:
    failure = {"cause": cause, "stage": 1, "label": "pour 1st"} if cause else None
    errors = {"aliasing_named": 0, "aliasing_done": 2, "forgetting_named": 1, "forgetting_done": 0}
    known: dict[str, Any] = {"failure": failure, "memory_errors": errors, "planner": None}
    known |= {"plan_ages": [[2, 10], [9, 1]]}
    numbers = {"s1_ms": [1.0, 3.0], "s2_ms": [], "s1_hz": 5.0, "s2_hz": None}
    ratios = {"held_action_ratio": 0.1, "stale_action_ratio": 0.2}
    return {"agent": agent, "task": task, "status": status} | known | numbers | ratios | more


def test_episodes_are_counted_by_cause_and_stage_and_errors_are_none() -> None:
    records = [
        *(record("a", "failure", "motor failure"), record("a", "failure", "motor failure"), record("a", "success")),
        *(record("a", "failure", "timeout"), record("a", "error", "timeout")),
        record("b", "success", memory_errors=None),
    ]
    found = diagnose(records, ["a", "b"])
    assert (found["a"]["n"], found["a"]["failed"]) == (4, 3)
    assert found["a"]["causes"] == {"motor failure": 2, "timeout": 1}
    assert found["a"]["stages"][0] == {
        **{"task": "wine", "stage": 1, "label": "pour 1st", "cause": "motor failure"},
        "n": 2,
    }
    assert found["a"]["memory_errors"]["state_aliasing"] == {"episodes": 4, "named": 0, "done": 8}
    assert found["a"]["memory_errors"]["constraint_forgetting"] == {"episodes": 4, "named": 4, "done": 0}
    assert found["b"]["causes"] == {} and found["b"]["memory_errors"]["n"] == 0


def test_rates_of_the_system() -> None:
    records = [record("a", "success"), record("a", "failure", s1_hz=3.0, held_action_ratio=0.3, plan_ages=[[2, 9]])]
    system = diagnose(records, ["a"])["a"]["system"]
    assert (system["s1_hz"], system["s2_hz"], system["s1_ms_median"], system["s2_ms_median"]) == (4.0, None, 2.0, None)
    assert (system["plan_age_median"], system["plan_age_p95"]) == (2, 2)  # 19 of 20 are 2 steps old
    assert system["held_action_ratio"] == 0.2
    assert quantile({1: 94, 7: 6}, 0.95) == 7 and quantile({}, 0.5) is None


def test_the_printed_tables() -> None:
    records = [
        record("a", "failure", "motor failure", planner=planner_counts(log(GOOD), (100,))),
        record("b", "success"),
    ]
    text = format_diagnosis(diagnose(records, ["a", "b"]))
    causes, planners, systems = text.split("\n\n")
    assert causes.splitlines()[2].split() == ["a", "1/1", "1", "1", "1"]
    assert planners.splitlines()[2].split() == ["a", "100.0", "100.0", "0.0", "0.0", "0.0", "0.00", "-", "0.0", "20"]
    assert systems.splitlines()[2].split() == ["a", "5.00", "-", "2", "9", "10.0", "20.0", "2", "-"]
    nothing = record("a", "success", memory_errors=None, s1_hz=None, plan_ages=[])
    assert format_diagnosis(diagnose([nothing], ["a"])) == ""


def test_what_ticks_come_to() -> None:
    statistics = TickStatistics()
    play_frames([statistics], EpisodeResult("t", "a", 0, "success", 12))
    numbers = statistics.numbers
    assert numbers["plan_ages"] == [(2, 3), (3, 3), (4, 3), (5, 1)] and numbers["plan_age_steps"] == 3.2
    assert (numbers["s1_hz"], numbers["s2_hz"]) == (3 / 0.6, 4 / 0.6)
    assert TickStatistics().numbers["s1_hz"] is None


def test_the_whole_instruction_is_no_answer_of_a_planner() -> None:
    statistics = TickStatistics()
    seen = observation(0)
    statistics.on_reset(seen, "touch it", "episode")
    for name, hz in (("touch it", None), ("look", 2 / 0.05)):
        tick = Tick(0, name, 1, False, False, 0.01, 0.1, plan_arrived=True)
        statistics.on_step(seen, np.zeros(7), tick, StepResult(observation(1), False, False, False))
        assert statistics.numbers["s2_hz"] == hz
