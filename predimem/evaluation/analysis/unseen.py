"""Success with unseen things: what each condition of the arena costs each agent, on the same seeds as `plain`.

Results of `predimem eval --benchmark arena --condition ...` are read, whole or compact; a task without a condition
counts as `plain`, which is the same episode. Episodes that ended in an error are in no rate and in no pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.envs.arena.unseen.conditions import CONDITIONS, PLAIN
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.counts import Count, read_json_results
from predimem.evaluation.analysis.metrics import Difference, Paired, mcnemar, paired_difference
from predimem.evaluation.run.migrations import modern_agent

Episode = tuple[str, int]  # task and seed


@dataclass
class Outcomes:
    """episodes: (condition, agent) -> episode -> whether it succeeded. errors: how many ended in an error."""

    episodes: dict[tuple[str, str], dict[Episode, bool]] = field(default_factory=dict)
    errors: int = 0


@dataclass(frozen=True)
class Row:
    """One agent in one condition, and against itself in `plain` on the same tasks and seeds.

    pairs: McNemar's test, the condition first; None where it is `plain` or there are no pairs.
    difference: condition minus plain, mean over the tasks; None where `pairs` is.
    """

    condition: str
    agent: str
    count: Count
    pairs: Paired | None = None
    difference: Difference | None = None


def read_outcomes(paths: Sequence[Path]) -> Outcomes:
    """All files together.

    Raises ValueError for a file that is no such result, where two have the same episode, and where they were played
    with another version of the benchmark or another agent of the same name.
    """
    outcomes, made_with = Outcomes(), {}
    for path in paths:
        results = read_json_results(path)
        for record in _records(results, path):
            condition, agent, episode = record["condition"], record["agent"], (record["task"], record["seed"])
            _check_same(made_with, results, agent, path)
            cell = outcomes.episodes.setdefault((condition, agent), {})
            if episode in cell:
                raise ValueError(f"{path}: {agent} at {episode[0]} in {condition}, seed {episode[1]}, is there twice")
            if record["status"] == "error":
                outcomes.errors += 1
            else:
                cell[episode] = record["status"] == "success"
    return outcomes


def rows_of(outcomes: Outcomes) -> list[Row]:
    """Agents as they come, for each the conditions in their order. Raises ValueError if there is nothing to count."""
    agents = dict.fromkeys(agent for _, agent in outcomes.episodes)
    cells = [(condition, agent) for agent in agents for condition in CONDITIONS]
    rows = [_row(outcomes, *cell) for cell in cells if outcomes.episodes.get(cell)]
    if not rows:
        raise ValueError("there are no episodes without an error in these files")
    return rows


def _row(outcomes: Outcomes, condition: str, agent: str) -> Row:
    own, plain = outcomes.episodes[condition, agent], outcomes.episodes.get((PLAIN, agent), {})
    count = Count(sum(own.values()), len(own))
    both = [episode for episode in own if episode in plain]
    if condition == PLAIN or not both:
        return Row(condition, agent, count)
    tasks = dict.fromkeys(task for task, _ in both)
    here, there = (
        {task: [float(cell[episode]) for episode in both if episode[0] == task] for task in tasks}
        for cell in (own, plain)
    )
    pairs = mcnemar([own[episode] for episode in both], [plain[episode] for episode in both])
    return Row(condition, agent, count, pairs, paired_difference(here, there))


def _records(results: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The episodes, with task and condition apart."""
    if results.get("benchmark") != "arena":
        raise ValueError(f"{path}: expected results of the arena, got {results.get('benchmark')!r}")
    for record in episodes_of(results):
        task, _, condition = record["task"].rpartition("-")
        named = condition in CONDITIONS
        yield record | ({"task": task, "condition": condition} if named else {"condition": PLAIN})


def _check_same(made_with: dict[str, Any], results: dict[str, Any], agent: str, path: Path) -> None:
    """Raises ValueError unless this agent's earlier episodes were made with the same."""
    provenance = results.get("provenance", {})
    config = provenance.get("agent_configs", {}).get(agent)
    own = {
        "version": results.get("benchmark_version"),
        "agent": None if config is None else modern_agent(config),
    }
    before = made_with.setdefault(agent, own)
    if before != own:
        changed = ", ".join(differences(before, own))
        raise ValueError(f"{path}: {agent} was played with something else than in the files before: {changed}")
