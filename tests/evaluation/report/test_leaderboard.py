"""Results as entries of vla-evaluation-harness's leaderboard.

Its own validator is asked where PREDIMEM_LEADERBOARD names the folder `leaderboard` of a checkout of its repository.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from predimem.evaluation.report.leaderboard import STANDARDS, Submission, leaderboard, leaderboard_entry
from predimem.evaluation.run.config import read_results
from tests.datagen.export.builders import run_command

THEIRS = os.environ.get("PREDIMEM_LEADERBOARD")
FIVE = {"ShellGameTouch": 4, "InterceptMedium": 1, "RememberColor3": 4, "RememberColor5": 3, "RememberColor9": 2}
ME = Submission("doe26predimem", "PrediMem", "@jane-doe", "2026-11-23")
LEARNED = {"planner": "planner", "actor": "actor", "weights": {"planner": "1", "actor": "2"}}


def results(
    successes: dict[str, int], benchmark: str = "mikasa", ending: str = "-VLA-v0", n: int = 4, **config: Any
) -> dict[str, Any]:
    """As results.json: so many successes of `n` episodes of each task."""
    episodes = [
        {"task": f"{task}{ending}", "agent": agent, "seed": seed, "status": "success" if seed < count else "failure"}
        for task, count in successes.items()
        for agent in ("predimem", "oracle-subtask")
        for seed in range(n)
    ]
    agents = {"predimem": LEARNED | config, "oracle-subtask": {**LEARNED, "planner": "oracle"}}
    play = {"environment": {"rendering": "fast"}, "time": {"mode": "simulated"}}
    provenance = {"play": play, "agent_configs": agents}
    made = {"schema": 2, "benchmark": benchmark, "provenance": provenance, "episodes": episodes}
    return made | {"revision": "0123456789", "benchmark_version": "mikasa-robo-suite 1.0.0"}


def robomme(without: str = "") -> dict[str, int]:
    """1, 2, 3 and 4 successes in the four tasks of each suite, which are 25 to 100 %."""
    suites = STANDARDS["robomme"].groups.values()
    return {task: n for tasks in suites for n, task in enumerate(tasks, 1) if task != without}


def test_the_standard_tasks_are_ranked() -> None:
    entry = leaderboard_entry(results(FIVE), "predimem", ME)
    assert entry["task_scores"] == {task: 25.0 * n for task, n in FIVE.items()}
    assert entry["overall_score"] == 70.0 and entry["suite_scores"] == {}
    assert entry["notes"] == (
        "4 episodes per task (standard: 100); fast rendering instead of the benchmark's own meshes; simulated time; "
        "mikasa-robo-suite 1.0.0; PrediMem agent predimem at revision 0123456."
    )


def test_other_sets_of_tasks_are_not_ranked() -> None:
    four = {task: n for task, n in FIVE.items() if task != "ShellGameTouch"}
    more = FIVE | {"TakeItBack": 4}
    for played, average in ((four, 62.5), (more, 75.0)):
        entry = leaderboard_entry(results(played), "predimem", ME)
        assert entry["overall_score"] is None and entry["suite_scores"] == {"reported_avg": average}
        assert f"non-standard set of {len(played)} tasks" in entry["notes"]


def test_robomme_is_ranked_by_its_suites() -> None:
    entry = leaderboard_entry(results(robomme(), "robomme", ""), "predimem", ME)
    assert entry["suite_scores"] == dict.fromkeys(("counting", "permanence", "reference", "imitation"), 62.5)
    assert entry["overall_score"] == 62.5 and len(entry["task_scores"]) == 16
    part = leaderboard_entry(results(robomme("RouteStick"), "robomme", ""), "predimem", ME)
    assert part["overall_score"] is None and list(part["suite_scores"]) == ["counting", "permanence", "reference"]
    assert part["task_scores"]["reported_avg"] == 60.0


def test_what_the_leaderboard_has_no_place_for() -> None:
    with pytest.raises(ValueError, match="no agent 'full'; they have oracle-subtask, predimem"):
        leaderboard_entry(results(FIVE), "full", ME)
    with pytest.raises(ValueError, match="oracle-subtask knows the simulator's true state"):
        leaderboard_entry(results(FIVE), "oracle-subtask", ME)
    with pytest.raises(ValueError, match="predimem knows the simulator's true state"):
        leaderboard_entry(results(FIVE, actor="skills"), "predimem", ME)
    for actor in ("ws://gpu:8000", "random"):
        with pytest.raises(ValueError, match="the results say no weights of predimem's actor"):
            leaderboard_entry(results(FIVE, actor=actor), "predimem", ME)
    broken = results(FIVE)
    broken["episodes"][0]["status"] = "error"
    with pytest.raises(ValueError, match="1 of 20 episodes of predimem ended in an error, which is no failure"):
        leaderboard_entry(broken, "predimem", ME)
    arena = read_results(Path(__file__).parents[3] / "results/arena_learned.json")
    with pytest.raises(ValueError, match="no benchmark 'arena'; results of mikasa, robomme can be sent"):
        leaderboard_entry(arena, "predimem", ME)
    with pytest.raises(ValueError, match="a GitHub name such as @jane-doe as the curator, got 'Jane Doe'"):
        Submission("doe26predimem", "PrediMem", "Jane Doe")
    with pytest.raises(ValueError, match="expected a date such as 2026-11-23"):
        Submission("doe26predimem", "PrediMem", "@jane-doe", "23.11.2026")


def test_an_entry_joins_those_of_others() -> None:
    """In the leaderboard's order; an entry of the same key is replaced."""
    entry = leaderboard_entry(results(FIVE), "predimem", ME)
    others = [
        {
            "benchmark": "mikasa",
            "model": model,
            "weight_type": "finetuned",
            "date_added": "2026-01-01",
            "overall_score": 1,
        }
        for model in ("a", "doe26predimem", "z")
    ]
    whole = leaderboard(
        [entry], {"last_updated": "2026-10-01", "results": [*others, others[0] | {"benchmark": "calvin"}]}
    )
    assert [(row["benchmark"], row["model"]) for row in whole["results"]] == [
        ("calvin", "a"),
        ("mikasa", "a"),
        ("mikasa", "doe26predimem"),
        ("mikasa", "z"),
    ]
    assert whole["results"][2] == entry and whole["last_updated"] == "2026-11-23"


def command(tmp_path: Path, played: dict[str, int], *options: object) -> tuple[str, Path]:
    (tmp_path / "results.json").write_text(json.dumps(results(played)))
    out = tmp_path / "leaderboard.json"
    fixed = ("--out", out, "--model", "doe26predimem", "--by", "@jane-doe")
    return run_command("export", "leaderboard", tmp_path / "results.json", *fixed, *options), out


def test_the_command(tmp_path: Path) -> None:
    said, out = command(tmp_path, FIVE, "--date", "2026-11-23", "--params", "2.4M", "--notes", "one training seed")
    assert "PrediMem, mikasa, 5 tasks, 70.0 %" in said
    text = out.read_text()
    [entry] = json.loads(text)["results"]
    assert entry["params"] == "2.4M" and entry["notes"].endswith("; one training seed.")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"  # as its validator wants it
    assert "not ranked" in command(tmp_path, {"RememberColor9": 4})[0]
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match=r"other\.json is no leaderboard\.json: expected .* a list `results`"):
        command(tmp_path, FIVE, "--into", tmp_path / "other.json")


@pytest.mark.skipif(THEIRS is None, reason="PREDIMEM_LEADERBOARD names no checkout of the leaderboard")
def test_its_own_validator_accepts_what_we_write(tmp_path: Path) -> None:
    """The checkout's citations and entries are Git LFS files, which need not be there."""
    for name in (
        "scripts/validate.py",
        "data/leaderboard.schema.json",
        "data/benchmarks.json",
        "data/benchmarks.schema.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(Path(str(THEIRS)) / name, tmp_path / name)
    (tmp_path / "data/citations.json").write_text('{"papers": {"2605.10921": {}}}')
    paper = Submission("doe26predimem", "PrediMem", "@jane-doe", "", "https://arxiv.org/abs/2605.10921", "2.4M", "x")
    made = [results(FIVE), results({"RememberColor9": 3}), results(robomme(), "robomme", "")]
    made.append(results(robomme("RouteStick"), "robomme", ""))
    for one in made:
        out = tmp_path / "leaderboard.json"
        whole = leaderboard([leaderboard_entry(one, "predimem", paper)])
        out.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
        done = subprocess.run([sys.executable, tmp_path / "scripts/validate.py", out], capture_output=True, text=True)
        assert done.returncode == 0 and "OK: 1 results" in done.stdout, done.stdout
