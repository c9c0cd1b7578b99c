"""Results as an entry of the leaderboard of vla-evaluation-harness, by its schema and rules of revision e1ee9ad.

A score is a success rate in per cent. The aggregate that ranks an entry, `overall_score`, is set only where the tasks
of the benchmark's standard protocol were played, all and no others; else the mean of what was played is `reported_avg`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import mean
from typing import Any

from predimem.agent.config import ORACLE, SCRIPTED
from predimem.evaluation.analysis.compact import episodes_of

REPORTED = "reported_avg"
CURATOR = re.compile(r"@[\w-]+")
DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Standard:
    """What the leaderboard asks of a benchmark.

    groups: suite -> its tasks; with the one suite "" the tasks themselves are averaged.
    episodes: of each task. reported_in: where the mean of another set of tasks stands.
    """

    groups: Mapping[str, Sequence[str]]
    episodes: int
    reported_in: str


STANDARDS = {
    "mikasa": Standard(
        {"": ("ShellGameTouch", "InterceptMedium", "RememberColor3", "RememberColor5", "RememberColor9")},
        100,
        "suite_scores",
    ),
    "robomme": Standard(
        {
            "counting": ("BinFill", "PickXtimes", "SwingXtimes", "StopCube"),
            "permanence": ("VideoUnmask", "VideoUnmaskSwap", "ButtonUnmask", "ButtonUnmaskSwap"),
            "reference": ("PickHighlight", "VideoRepick", "VideoPlaceButton", "VideoPlaceOrder"),
            "imitation": ("MoveCube", "InsertPeg", "PatternLock", "RouteStick"),
        },
        50,
        "task_scores",
    ),
}


@dataclass(frozen=True)
class Submission:
    """What results do not say.

    model: the method's key in the leaderboard, as in BibTeX. name: how its site shows it. by: "@" and a GitHub name.
    paper: URL of the paper with these figures. params: such as "2.4M". added: the day, YYYY-MM-DD.
    """

    model: str
    name: str
    by: str
    added: str = ""
    paper: str | None = None
    params: str | None = None
    notes: str = ""

    def __post_init__(self) -> None:
        if not CURATOR.fullmatch(self.by):
            raise ValueError(f"the leaderboard wants a GitHub name such as @jane-doe as the curator, got {self.by!r}")
        if self.added and not DATE.fullmatch(self.added):
            raise ValueError(f"expected a date such as 2026-11-23, got {self.added!r}")
        if not self.model.strip() or not self.name.strip():
            raise ValueError("the leaderboard wants a key of the model, such as doe26predimem, and a name to show")


def leaderboard_entry(results: Mapping[str, Any], agent: str, submission: Submission) -> dict[str, Any]:
    """One agent of a results file (`read_results`). Raises ValueError for what the leaderboard has no place for: other
    benchmarks, agents that know the true state, and episodes that ended in an error.
    """
    benchmark = results["benchmark"]
    if benchmark not in STANDARDS:
        raise ValueError(
            f"the leaderboard has no benchmark {benchmark!r}; results of {', '.join(STANDARDS)} can be sent"
        )
    rows = [row for row in episodes_of(results) if row["agent"] == agent]
    if not rows:
        agents = ", ".join(sorted({row["agent"] for row in episodes_of(results)}))
        raise ValueError(f"the results have no agent {agent!r}; they have {agents}")
    _check_learned(results, agent)
    errors = [row for row in rows if row["status"] == "error"]
    if errors:
        raise ValueError(
            f"{len(errors)} of {len(rows)} episodes of {agent} ended in an error, which is no failure: play them again "
            "with `predimem eval ... --retry-errors`"
        )
    played: dict[str, list[float]] = {}
    for row in rows:
        played.setdefault(task_key(row["task"]), []).append(100.0 * (row["status"] == "success"))
    scores = {task: round(mean(values), 1) for task, values in sorted(played.items())}
    standard = STANDARDS[benchmark]
    suites, overall = _aggregates(standard, scores)
    entry: dict[str, Any] = {
        "model": submission.model,
        "display_name": submission.name,
        "name_in_paper": None,
        "benchmark": benchmark,
        "overall_score": overall,
        "suite_scores": suites,
        "task_scores": scores,
        "reported_paper": submission.paper,
        "reported_table": None,
        "curated_by": submission.by,
        "notes": _notes(results, agent, played, standard, submission.notes),
        "date_added": submission.added or date.today().isoformat(),
        "params": submission.params,
        "model_paper": submission.paper,
        "weight_type": "finetuned",  # our models are trained on the benchmark's own tasks
    }
    if overall is None:
        entry[standard.reported_in] = {**entry[standard.reported_in], REPORTED: round(mean(scores.values()), 1)}
    return entry


def leaderboard(entries: Sequence[Mapping[str, Any]], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The file, in its order. before: a leaderboard whose other entries are kept. Raises ValueError for one that is not
    of this form."""
    kept: list[Mapping[str, Any]] = []
    last = max(entry["date_added"] for entry in entries)
    if before is not None:
        if not isinstance(before, Mapping) or not isinstance(before.get("results"), list):
            raise ValueError("expected a leaderboard.json with `last_updated` and a list `results`")
        ours = {_key(entry) for entry in entries}
        kept = [entry for entry in before["results"] if _key(entry) not in ours]
        last = max(last, before["last_updated"])
    ordered = sorted([*kept, *entries], key=lambda entry: (entry["benchmark"], entry["model"]))
    return {"last_updated": last, "results": ordered}


def task_key(task: str) -> str:
    """ "RememberColor3-VLA-v0" -> "RememberColor3"."""
    return re.sub(r"(-VLA)?(-v\d+)?$", "", task)


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["model"], entry["benchmark"], entry["weight_type"]


def _check_learned(results: Mapping[str, Any], agent: str) -> None:
    config = results["provenance"].get("agent_configs", {}).get(agent, {})
    if config.get("planner") == ORACLE or config.get("actor") in SCRIPTED:
        raise ValueError(f"{agent} knows the simulator's true state, so the leaderboard has no place for it")
    if config.get("actor") not in config.get("weights", {}):
        raise ValueError(
            f"the results say no weights of {agent}'s actor; the leaderboard has a place for learned agents whose "
            "weights are known: those of `agent_configs` with an actor in a folder of weights"
        )


def _aggregates(standard: Standard, scores: Mapping[str, float]) -> tuple[dict[str, float], float | None]:
    """Scores of the suites that were played whole, and the overall one where all were, and nothing else."""
    whole = {suite: mean(scores[t] for t in tasks) for suite, tasks in standard.groups.items() if {*tasks} <= {*scores}}
    suites = {suite: round(score, 1) for suite, score in whole.items() if suite}
    expected = {task for tasks in standard.groups.values() for task in tasks}
    return suites, round(mean(whole.values()), 1) if {*scores} == expected else None


def _notes(
    results: Mapping[str, Any], agent: str, played: Mapping[str, Sequence[float]], standard: Standard, more: str
) -> str:
    counts = sorted({len(values) for values in played.values()})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    said = [f"{number} episodes per task (standard: {standard.episodes})"]
    expected = {task for tasks in standard.groups.values() for task in tasks}
    if {*played} != expected:
        said.append(f"non-standard set of {len(played)} tasks")
    play = results["provenance"].get("play", {})
    if (rendering := play.get("environment", {}).get("rendering", "stock")) != "stock":
        said.append(f"{rendering} rendering instead of the benchmark's own meshes")
    if (play.get("time") or {}).get("mode"):
        said.append(f"{play['time']['mode']} time")
    version, revision = results.get("benchmark_version"), results.get("revision")
    said += [str(version)] if version else []
    said += [f"PrediMem agent {agent}" + (f" at revision {revision[:7]}" if revision else "")]
    return "; ".join([*said, *([more] if more else [])]) + "."
