"""Everything that plays the arena, trained anew from generated data: which commands, in which order.

Each stage is a command of `predimem` with a whole config of its own, which is written to `out`/configs. Planners are
trained in rounds of DAgger: a perturbed oracle planner drives the first episodes, a planner is trained on them and
drives the next ones, and so on. At the end all variants are trained on the episodes of all rounds. With `continue_from`
every training goes on from weights that are there, for tasks of one's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from predimem.agent.config import ORACLE, SKILLS
from predimem.core.config import ConfigError, merged, read_yaml, tasks_as_text, to_dict
from predimem.core.seeds import check_training_seeds
from predimem.pipelines.own_tasks import StartConfig, located, with_words_of
from predimem.pipelines.stage import (
    ACTOR,
    ACTOR_DATA,
    DAGGER,
    PLANNER,
    VISION_DATA,
    Stage,
    command_stage,
    data_stage,
)

REHEARSAL = "rehearsal"


@dataclass(frozen=True)
class RoundConfig:
    """The DAgger episodes of one round.

    episodes, first_seed: so many seeds of each task, from this one on.
    low_level_policy: as in `PlannerDaggerConfig`. The name of the actor is the one that is trained here, before this
    round.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"hand": "low_level_policy"}

    episodes: int
    first_seed: int
    low_level_policy: str = SKILLS

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"rounds: expected at least 1 episode of each task, got {self.episodes}")
        check_training_seeds(self.seeds, "rounds: first_seed, episodes")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)


@dataclass(frozen=True)
class PlannersConfig:
    """How the planners are trained.

    dagger: the config of their DAgger data.
    rounds: the first one is driven by the oracle planner, each other one by the planner trained on all before it.
    recipes: the name of the weights -> the config of their training. The first one is the planner that drives.
    demonstrations: the config of further data, or null.
    vision_data: the config of the images that the vision tower learns from, or null.
    dagger_changes, vision_data_changes, recipe_changes: what differs from those configs, as in them.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {
        "practice": "dagger",
        "practice_changes": "dagger_changes",
        "scenes": "vision_data",
        "scene_changes": "vision_data_changes",
    }

    dagger: str
    rounds: tuple[RoundConfig, ...]
    recipes: dict[str, str]
    demonstrations: str | None = None
    vision_data: str | None = None
    dagger_changes: dict[str, Any] = field(default_factory=dict)
    vision_data_changes: dict[str, Any] = field(default_factory=dict)
    recipe_changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rounds or not self.recipes:
            raise ConfigError("planners: needs at least one round of DAgger and one recipe")
        seeds: set[int] = set()
        for number, one in enumerate(self.rounds):
            twice = seeds.intersection(one.seeds)
            if twice:
                raise ConfigError(
                    f"planners: round {number} plays seed {min(twice)}, as an earlier round does: rounds need seeds of "
                    "their own"
                )
            seeds.update(one.seeds)


@dataclass(frozen=True)
class ActorConfig:
    """How the actors are trained.

    name: of the weights.
    data: the config of its data.
    recipe: the config of its training, rounds of DAgger included.
    variants: the name of further weights -> the config of a training that goes on from this actor, with its data and
    roll-outs.
    data_changes, recipe_changes: what differs from those configs, as in them.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"skills": "data", "skill_changes": "data_changes"}

    recipe: str
    data: str
    name: str = "arena-actor"
    variants: dict[str, str] = field(default_factory=dict)
    data_changes: dict[str, Any] = field(default_factory=dict)
    recipe_changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RetrainConfig:
    """All trainings of the arena.

    planners, actor: how they are trained.
    out: where everything goes, weights in `out`/weights.
    workers: processes of simulators.
    tasks: of the arena, or files of one's own, for all data where nothing else is said; empty: those of the configs.
    continue_from: the weights that all trainings go on from; null: they start from nothing.
    """

    planners: PlannersConfig
    actor: ActorConfig
    out: str = "runs/train/arena"
    workers: int = 2
    tasks: tuple[str, ...] = ()
    continue_from: StartConfig | None = None

    complete_data = staticmethod(tasks_as_text)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {self.workers}")
        if self.continue_from is not None and self.planners.vision_data is not None:
            raise ConfigError("planners: vision_data is for a new vision tower; with continue_from it has to be null")
        object.__setattr__(self, "tasks", located(self.tasks))


def plan_stages(config: RetrainConfig) -> list[Stage]:
    """All stages in an order in which each comes after what it needs: the full system first, then variants.

    Raises ConfigError for a config file that is not there.
    """
    planners, (actor_data, actor) = _Planners(config), _actor(config)
    rounds = planners.rounds(actor)
    acts = next((i for i, stage in enumerate(rounds) if actor.name in stage.needs), len(rounds))
    rounds[acts:acts] = actor_data, actor
    first, *variants = config.planners.recipes
    others = [*(planners.final(name) for name in variants), *_actor_variants(config, actor_data, actor)]
    return [*rounds, planners.final(first), *others]


class _Planners:
    def __init__(self, config: RetrainConfig):
        self.config, self.planners, self.out = config, config.planners, Path(config.out)
        self.recipe = next(iter(config.planners.recipes.values()))
        self.data: list[Stage] = []
        self.vision_data: list[Stage] = []

    def rounds(self, actor: Stage) -> list[Stage]:
        """The DAgger data, and between its rounds the planner that drives the next one.

        actor: the training of the actor, which may be the low-level policy of a round.
        """
        stages: list[Stage] = []
        planners = self.planners
        if planners.vision_data is not None:
            self.vision_data = [
                data_stage(self.config, VISION_DATA, planners.vision_data, planners.vision_data_changes)
            ]
            stages += self.vision_data
        if self.planners.demonstrations is not None:
            stages.append(data_stage(self.config, "demonstrations", self.planners.demonstrations, {}))
            self.data.append(stages[-1])
        if start := self.config.continue_from:
            rehearsal = _rehearsal(self.config, start)
            self.data += rehearsal
            stages += rehearsal
        driver: Stage | None = None
        for number, one in enumerate(self.planners.rounds):
            if number:
                driver = self._train(f"planner-round-{number - 1}", self.recipe)
                stages.append(driver)
            changes = {**self.planners.dagger_changes, **to_dict(one)}
            changes["driver"] = str(driver.result) if driver else ORACLE
            needs = (driver.name,) if driver else ()
            if one.low_level_policy == actor.name:
                changes["low_level_policy"], needs = str(actor.result), (*needs, actor.name)
            stages.append(data_stage(self.config, f"{DAGGER}-{number}", self.planners.dagger, changes, needs))
            self.data.append(stages[-1])
        return stages

    def final(self, name: str) -> Stage:
        """The training of one variant on all data."""
        return self._train(name, self.planners.recipes[name], weights=name)

    def _train(self, name: str, recipe: str, weights: str | None = None) -> Stage:
        data, out = list(self.data), self.out / name
        changes = merged(self.planners.recipe_changes, {"out": str(out), "episodes": [str(s.result) for s in data]})
        plain = read_yaml(recipe)
        changes = merged(changes, with_words_of(plain, self.config.tasks))
        if plain.get("vision") is None:  # a tower that is not trained
            changes.pop("vision", None)
        elif start := self.config.continue_from:
            changes = merged(changes, {"vision": {"directory": str(self.out / "features"), "scenes": None}})
            changes["continue_from"] = str(start.planner_folder)
        else:
            scenes = str(self.vision_data[0].result) if self.vision_data else None
            changes = merged(changes, {"vision": {"directory": str(self.out / "vision"), "scenes": scenes}})
        if plain.get("sft", {}).get("epochs") == 0:
            data, changes["episodes"], changes["sft"] = [], [], {}
        needs = tuple(stage.name for stage in (self.vision_data + data if data else ()))
        return command_stage(
            self.config, name, PLANNER, ("train", "planner"), plain, changes, out / "export", needs, weights
        )


def _actor(config: RetrainConfig) -> tuple[Stage, Stage]:
    """Its data and its training."""
    actor, out, start = config.actor, Path(config.out), config.continue_from
    more = {"tasks": [*config.tasks, *start.rehearse]} if start else {}
    data = data_stage(config, ACTOR_DATA, actor.data, more | actor.data_changes)
    recipe, own = read_yaml(actor.recipe), {"episodes": str(data.result), "out": str(out / actor.name)}
    own |= {"continue_from": str(start.actor_folder)} if start else {}
    changes = merged(actor.recipe_changes, own)
    rounds = merged(recipe, changes).get("dagger", {}).get("rounds", 0)
    if rounds:
        changes = merged(changes, {"dagger": {"data": str(data.config_path)}})
    result = out / actor.name / (f"round{rounds}/weights" if rounds else "weights")
    command = ("train", "actor", "--workers", str(config.workers)) + (() if rounds else ("--resume",))
    return data, command_stage(config, actor.name, ACTOR, command, recipe, changes, result, (data.name,), actor.name)


def _actor_variants(config: RetrainConfig, data: Stage, actor: Stage) -> list[Stage]:
    dagger = actor.config.get("dagger", {})
    rounds, by_expert = dagger.get("rounds", 0), dagger.get("expert_episodes", 0) > 0
    played = range(0 if by_expert else 1, rounds + 1) if rounds else ()
    stages = []
    for name, recipe in config.actor.variants.items():
        out = Path(config.out) / name
        changes = {
            "episodes": str(data.result),
            "more_episodes": [str(Path(actor.config["out"]) / f"rollouts{number}") for number in played],
            "continue_from": str(actor.result),
            "out": str(out),
            "dagger": {"rounds": 0, "expert_episodes": 0},
        }
        command = ("train", "actor", "--resume")
        needs = (data.name, actor.name)
        changes = merged(config.actor.recipe_changes, changes)
        stages.append(
            command_stage(config, name, ACTOR, command, read_yaml(recipe), changes, out / "weights", needs, name)
        )
    return stages


def _rehearsal(config: RetrainConfig, start: StartConfig) -> list[Stage]:
    """DAgger data of tasks that the weights know, driven by the oracle planner."""
    if not start.rehearse:
        return []
    first = config.planners.rounds[0]
    changes = {**config.planners.dagger_changes, **to_dict(replace(first, episodes=start.rehearse_episodes))}
    changes |= {"tasks": list(start.rehearse), "driver": ORACLE, "low_level_policy": SKILLS}
    return [data_stage(config, REHEARSAL, config.planners.dagger, changes)]
