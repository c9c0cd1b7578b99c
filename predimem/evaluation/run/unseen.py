"""Says before anything is played what the models of an agent have never been trained to say or to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.checkpoint import PlannerCheckpointError, read_spec
from predimem.agent.config import INSTRUCTION, ORACLE
from predimem.core.weight_files import WeightsError, weights_folder
from predimem.envs.benchmark import Benchmark
from predimem.evaluation.run.config import PlayConfig

SHOWN = 3


def unseen_labels(benchmark: Benchmark, tasks: Sequence[str], play: PlayConfig) -> list[str]:
    """A sentence for each agent and task (name or file) with subtasks that the agent's planner was not trained to name.

    Planners that do not say what they were trained for, and benchmarks that do not say their subtasks, are left out.
    """
    found = []
    for name, config in play.agent_configs.items():
        if config.planner in (ORACLE, INSTRUCTION) or config.has_own_planner:
            continue
        known = _known(play.weights, config.planner)
        if known is None:
            continue
        for task in tasks:
            labels = list(dict.fromkeys(benchmark.subtasks(task) or ()))
            unseen = [label for label in labels if label not in known]
            if unseen:
                found.append(_sentence(name, config.planner, benchmark, task, unseen, len(labels)))
    return found


def _known(root: str | None, planner: str) -> frozenset[str] | None:
    try:
        return read_spec(weights_folder(root, planner)).known_subtasks
    except (WeightsError, PlannerCheckpointError):  # whoever loads it says what is wrong with it
        return None


def _sentence(agent: str, planner: str, benchmark: Benchmark, task: str, unseen: Sequence[str], labels: int) -> str:
    own = benchmark.task_file(task)
    remedy = f": `predimem train arena --continue --tasks {task}` trains on for it" if own else ""
    return (
        f"{agent}: its planner {planner} was not trained for {benchmark.task_name(task)} and cannot name {len(unseen)} "
        f"of its {labels} subtasks ({_listed(unseen)}){remedy}"
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return "; ".join(names[:SHOWN]) + ("; ..." if len(names) > SHOWN else "")
