"""`predimem eval --verify`: plays a random sample of the episodes of a results.json again."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.core.progress import stage, watched
from predimem.core.versions import versions_agree
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.run.config import read_results
from predimem.evaluation.run.jobs import EpisodeJob, EpisodeRecord, EvaluationError, Player, WorkerPool
from predimem.evaluation.run.machine import machine
from predimem.evaluation.run.migrations import AGENT_DEFAULTS

# What of an episode has to come out the same; wall-clock figures do not.
OUTCOME = (
    *("status", "steps", "stages_passed", "stages_total", "message", "metrics"),
    *("answers", "invalid_answers", "refusals", "changed"),
)
TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Checked:
    """One episode that was played again.

    differences: where its outcome differs, as "steps (was 10, is 12)"
    same_trajectory: whether every action and answer was the same; None where the file does not say it
    """

    task: str
    agent: str
    seed: int
    differences: tuple[str, ...]
    same_trajectory: bool | None


@dataclass(frozen=True)
class Verification:
    """What came out.

    episodes: how many episodes the file has that did not end in an error
    played_on, checked_on: the kinds of CPU
    """

    checked: tuple[Checked, ...]
    episodes: int
    played_on: str
    checked_on: str

    @property
    def different(self) -> tuple[Checked, ...]:
        return tuple(c for c in self.checked if c.differences)


def verify_results(
    path: str | Path,
    make_player: Callable[[], Player],
    sample: int = 10,
    seed: int = 0,
    workers: int = 1,
) -> Verification:
    """Play `sample` episodes again, drawn with `seed`, and compare outcomes. Episodes that were errors are not drawn.

    path: a results.json or compact file
    make_player: makes a player such as the results were made with (`config.played_with`); it must be picklable

    Raises EvaluationError if the player is another one (weights, benchmark, simulator), or if the results were played
    in real time, which never repeats.
    """
    results, where = read_results(path), str(path)
    if results["provenance"].get("play", {}).get("time", {}).get("mode") == "real":
        raise EvaluationError(f"{where} was played in real time: only simulated time comes out the same twice")
    if sample < 1:
        raise EvaluationError(f"--sample: expected at least 1 episode, got {sample}")
    records = [record for record in episodes_of(results) if record["status"] != "error"]
    if not records:
        raise EvaluationError(f"{where} has no episode without an error, so that there is nothing to verify")
    drawn = random.Random(seed).sample(records, min(sample, len(records)))
    drawn.sort(key=records.index)  # as they were played: a worker keeps the environment of a task
    with tempfile.TemporaryDirectory(prefix="predimem-verify-") as folder:
        again = _play(drawn, make_player, Path(folder), workers, results["provenance"], where)
    checked = [_compare(record, again[record["task"], record["agent"], record["seed"]]) for record in drawn]
    return Verification(tuple(checked), len(records), results["machine"]["cpu"], machine()["cpu"])


def format_verification(verification: Verification) -> str:
    """The text for a terminal: a line for each episode that came out otherwise, and the sum."""
    lines = []
    for c in verification.checked:
        if c.differences:
            lines.append(f"{c.task} {c.agent} seed {c.seed} differs: {', '.join(c.differences)}")
        elif c.same_trajectory is False:
            lines.append(f"{c.task} {c.agent} seed {c.seed}: the same outcome by other actions or answers")
    n = len(verification.checked)
    outcomes = n - len(verification.different)
    trajectories = sum(c.same_trajectory is True for c in verification.checked)
    lines.append(f"drawn from {verification.episodes} episodes; the same outcome: {outcomes} of {n}")
    lines.append(f"the same trajectory, in every action and answer: {trajectories} of {n}")
    if trajectories < n:
        lines.append(
            f"played on: {verification.played_on}; checked on: {verification.checked_on}. Floating-point arithmetic "
            "differs between kinds of CPU: trajectories repeat on the same kind, on another one only most outcomes do"
        )
    return "\n".join(lines)


def _play(
    drawn: Sequence[EpisodeRecord],
    make_player: Callable[[], Player],
    out: Path,
    workers: int,
    provenance: dict[str, Any],
    path: str,
) -> dict[tuple[str, str, int], EpisodeRecord]:
    jobs = [EpisodeJob(record["task"], record["seed"], record["agent"], trace=False) for record in drawn]
    pool = WorkerPool(make_player, out, workers, TIMEOUT_S)
    try:
        with stage("starting the first worker"):
            before, now = _essential(provenance), _essential(pool.start())
        if versions_agree(before["benchmark_version"], now["benchmark_version"]):
            now["benchmark_version"] = before["benchmark_version"]
        if now != before:
            changed = ", ".join(differences(before, now))
            raise EvaluationError(f"{path} was played with something else: {changed}")
        pool.load(sorted({record["agent"] for record in drawn}))
        again = {
            (record["task"], record["agent"], record["seed"]): record
            for record in watched(pool.play(jobs), len(jobs), "episodes", at_once=workers)
        }
    except BaseException:
        pool.close(kill=True)
        raise
    pool.close()
    return again


def _essential(provenance: dict[str, Any]) -> dict[str, Any]:
    """Without the folder of the weights: their hashes say what they are."""
    agents = {name: AGENT_DEFAULTS | config for name, config in provenance.get("agent_configs", {}).items()}
    play = {name: value for name, value in provenance.get("play", {}).items() if name != "weights"}
    return provenance | {"play": play} | ({"agent_configs": agents} if agents else {})


def _compare(before: EpisodeRecord, now: EpisodeRecord) -> Checked:
    changed = [
        text
        for name in OUTCOME
        if name in before and before[name] != now[name]
        for text in differences(before[name], now[name], name)
    ]
    known = before.get("trajectory")
    same_trajectory = None if known is None else known == now["trajectory"]
    return Checked(before["task"], before["agent"], before["seed"], tuple(changed), same_trajectory)
