"""Planners that are trained on, each with DAgger episodes that it drove itself.

Episodes that one planner drove show its own mistakes. Where planners of several memories are compared, those that did
not drive would learn from another one's, so each gets as many episodes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datagen.command import read_data_config
from predimem.agent.config import SCRIPTED, SKILLS
from predimem.core.config import ConfigError, merged, read_yaml, tasks_as_text
from predimem.core.weight_files import WeightsError, weights_folder
from predimem.pipelines.own_tasks import located
from predimem.pipelines.stage import PLANNER, Stage, command_stage, data_stage

_PLAIN = {"planner", "actor", "against", "note"}  # what an agent config says of an agent without slips and the like


@dataclass(frozen=True)
class OwnRoundsConfig:
    """One round for each of some planners.

    planners: the name of its weights -> the recipe of its training.
    data: a name -> a config of DAgger data, of which each planner drives one set.
    more_episodes: folders of older episodes, which all planners learn from as well, so that they are not forgotten.
    `{planner}` in a folder stands for the planner's name: what it drove in a round before.
    weights: the folder that holds the weights that they go on from; null: the shipped ones.
    actor: the folder of the low-level policy's weights, for data whose config names weights; null: as in the config.
    training_seeds: one training with each, on the same data. The first one's weights keep the planner's name, the
    others' are called NAME-seed-SEED.
    recipe_changes: what differs from the recipes, as in them.
    evaluation: the config of `predimem eval` with agents that play what is trained.
    out, workers, tasks: as in `RetrainConfig`.
    """

    planners: dict[str, str]
    data: dict[str, str]
    more_episodes: tuple[str, ...] = ()
    weights: str | None = None
    actor: str | None = None
    training_seeds: tuple[int, ...] = (0,)
    recipe_changes: dict[str, Any] = field(default_factory=dict)
    evaluation: str = "configs/eval/arena.yaml"
    out: str = "runs/train/own_rounds"
    workers: int = 2
    tasks: tuple[str, ...] = ()

    complete_data = staticmethod(tasks_as_text)

    def __post_init__(self) -> None:
        if not (self.planners and self.data):
            raise ConfigError("expected at least one of planners, and one of data")
        if not self.training_seeds or len(set(self.training_seeds)) < len(self.training_seeds):
            raise ConfigError(f"training_seeds: expected different ones, got {list(self.training_seeds)}")
        if self.workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {self.workers}")
        object.__setattr__(self, "tasks", located(self.tasks))


def plan_own_rounds(config: OwnRoundsConfig, only: Sequence[str] = ()) -> list[Stage]:
    """All stages, planner by planner. A planner that is not there has none where the stages `only` do without it.

    Raises WeightsError for a planner that is not there, and ConfigError for a config file that is not.
    """
    stages: list[Stage] = []
    missing: WeightsError | None = None
    for name in config.planners:
        try:
            stages += _round(config, name)
        except WeightsError as error:
            missing = missing or error
    if missing is not None and not (only and set(only) <= {stage.name for stage in stages}):
        raise missing
    return stages


def played_with_skills(stages: Sequence[Stage], evaluation: str) -> list[str]:
    """The agents of a config of `predimem eval` that are planners made by these stages with scripted skills."""
    made = {stage.weights for stage in stages if stage.weights}
    agents = read_yaml(evaluation)["agent_configs"].items()
    return [
        name for name, agent in agents if agent["planner"] in made and set(agent) <= _PLAIN and agent["actor"] == SKILLS
    ]


def with_training_seeds(config: OwnRoundsConfig, only: Sequence[str]) -> list[str]:
    """Names of stages, in which that of a planner stands for its trainings with all seeds."""
    every = (_trainings(config, name).values() if name in config.planners else (name,) for name in only)
    return [stage for names in every for stage in names]


def _trainings(config: OwnRoundsConfig, name: str) -> dict[int, str]:
    """Training seed -> the name of the weights."""
    first, *others = config.training_seeds
    return {first: name} | {seed: f"{name}-seed-{seed}" for seed in others}


def _round(config: OwnRoundsConfig, name: str) -> Iterable[Stage]:
    planner, out = weights_folder(config.weights, name), Path(config.out)
    if planner.is_relative_to(Path.cwd()):
        planner = planner.relative_to(Path.cwd())  # the weights keep this path in their record
    data = [_driven(config, f"{name}-{kind}", recipe, planner) for kind, recipe in config.data.items()]
    yield from data
    for seed, trained in _trainings(config, name).items():
        changes = {
            "out": str(out / trained),
            "episodes": [*(str(stage.result) for stage in data), *_older(config, name)],
            "continue_from": str(planner),
            "vision": {"directory": str(out / f"{name}-features"), "scenes": None},
            "seed": seed,
        }
        yield command_stage(
            config,
            trained,
            PLANNER,
            ("train", "planner"),
            read_yaml(config.planners[name]),
            merged(config.recipe_changes, changes),
            out / trained / "export",
            tuple(stage.name for stage in data),
            trained,
        )


def _older(config: OwnRoundsConfig, name: str) -> list[str]:
    return [folder.replace("{planner}", name) for folder in config.more_episodes]


def _driven(config: OwnRoundsConfig, name: str, recipe: str, planner: Path) -> Stage:
    changes = {"driver": str(planner)}
    if config.actor is not None and read_data_config(recipe).get("low_level_policy", SKILLS) not in SCRIPTED:
        changes["low_level_policy"] = config.actor
    return data_stage(config, name, recipe, changes)
