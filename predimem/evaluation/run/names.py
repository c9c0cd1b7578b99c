"""Which agents and models there are, and whether their weights are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from predimem.agent.config import AgentConfig
from predimem.core.weight_files import EMBEDDED, WeightsError, weights_folder, weights_hash
from predimem.evaluation.run.config import PlayConfig, Suite

LEARNED_PLANNERS = {
    "predimem": "planner",
    "no-keyframes": "planner-no-keyframes",
    "no-head": "planner-no-head",
}
AGENTS = (*LEARNED_PLANNERS, "reactive", "oracle-subtask", "oracle", "random")
ARENA_AGENTS = ("oracle", "script", "random")  # besides rows of a config; none of them looks at pictures
ARENA_CONFIG = "configs/eval/arena.yaml"


def check_agents(names: Sequence[str], suite: Suite = "mikasa", rows: Collection[str] = ()) -> None:
    """Raises ValueError for an agent that does not play this suite, naming those that do. rows: a config's."""
    known = AGENTS if suite == "mikasa" else (*rows, *ARENA_AGENTS)
    for name in names:
        if name not in known:
            config = f"; learned systems are rows of a config: add --config {ARENA_CONFIG}"
            why = config if suite == "arena" and not rows and name in AGENTS else ""
            raise ValueError(f"unknown agent {name!r}; there are: {', '.join(known)}{why}")
    for name in rows:
        if name in ARENA_AGENTS:
            raise ValueError(f"rows: {name!r} is an agent already; choose another name")


def check_weights(agents: Sequence[str], play: PlayConfig) -> None:
    """Raises WeightsError unless every model that these agents are made of is there."""
    for agent in agents:
        if agent in play.rows:
            models = play.rows[agent].weights
        elif agent in ("oracle", "script", "random"):
            models = ()
        else:
            models = (LEARNED_PLANNERS[agent], "actor") if agent in LEARNED_PLANNERS else ("actor",)
        for model in models:
            weights_folder(play.weights, model)


def missing_weights(rows: Mapping[str, AgentConfig], root: str | None) -> dict[str, str]:
    """Row -> what is said of the first of its models that is not there; no rows whose models are all there."""
    missing: dict[str, str] = {}
    for name, row in rows.items():
        try:
            for model in row.weights:
                weights_folder(root, model)
        except WeightsError as error:
            missing[name] = str(error)
    return missing


def weights_hashes(root: str | None) -> dict[str, str]:
    """Model name -> hash, for every folder of a model of mikasa that is there."""
    folder = Path(root) if root else EMBEDDED
    models = [path for path in sorted(folder.glob("*")) if path.is_dir() and not path.name.startswith("arena-")]
    return {path.name: weights_hash(path) for path in models}
