"""What is checked of agents before a simulator is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predimem.evaluation.run.config import EvaluationFile, PlayConfig


def played_by(settings: EvaluationFile, agents: Sequence[str]) -> PlayConfig:
    """How these agents play. Raises ValueError for unknown agents and options, WeightsError where weights are missing:
    all that can be checked before a simulator is loaded."""
    from predimem.evaluation.run.memories import check_memories
    from predimem.evaluation.run.names import check_agents, check_weights

    check_agents(agents, settings.benchmark, settings.agent_configs)
    configs = {name: config for name, config in settings.agent_configs.items() if name in agents}
    play = replace(settings.play, benchmark=settings.benchmark, agent_configs=configs)
    check_weights(agents, play)
    for note in check_memories(configs, play.weights):
        print(f"note: {note}", file=sys.stderr)
    _ = play.options  # raises for an unknown one
    return play


def warn_of_unseen(settings: EvaluationFile, tasks: Sequence[str], play: PlayConfig) -> None:
    """Says on stderr which subtasks the planners were never trained to name, before an episode is spent on them."""
    from predimem.envs.benchmark import load_benchmark
    from predimem.evaluation.run.unseen import unseen_labels

    for sentence in unseen_labels(load_benchmark(settings.benchmark), tasks, play):
        print(f"warning: {sentence}", file=sys.stderr)
