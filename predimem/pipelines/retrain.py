"""Everything that plays the arena, trained anew from generated data: which commands, in which order.

Each stage is a command of `predimem` with a whole config of its own, which is written to `out`/configs. Planners are
trained in rounds (DAgger): practice driven by the truth, a planner trained on it, practice driven by that planner, and
so on; at the end all variants are trained on all practice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.prompt import follow_memory
from predimem.core.config import ConfigError, merged, read_yaml, to_dict
from predimem.core.seeds import check_training_seeds

DATA, PLANNER, ACTOR = "data", "planner", "actor"  # kinds of stages


@dataclass(frozen=True)
class RoundConfig:
    """Practice: `episodes` seeds of each task from `first_seed` on. hand: as in `PracticeConfig`; the name of the actor
    is the one that is trained here, before it."""

    episodes: int
    first_seed: int
    hand: str = "skills"

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"rounds: expected at least 1 episode of each task, got {self.episodes}")
        check_training_seeds(self.seeds, "rounds: first_seed, episodes")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)


@dataclass(frozen=True)
class PlannersConfig:
    """practice: config of the practice; its rounds: the first one is driven by the truth, each other one by the planner
    that was trained on all before it. recipes: name of the weights -> config of its training; the first one is the
    planner that drives practice. demonstrations: config of further data; scenes: of the images that the vision tower
    learns from; or null. practice_changes, scene_changes, recipe_changes: what differs from those configs, as in them.
    """

    practice: str
    rounds: tuple[RoundConfig, ...]
    recipes: dict[str, str]
    demonstrations: str | None = None
    scenes: str | None = None
    practice_changes: dict[str, Any] = field(default_factory=dict)
    scene_changes: dict[str, Any] = field(default_factory=dict)
    recipe_changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rounds or not self.recipes:
            raise ConfigError("planners: needs at least one round of practice and one recipe")
        seeds: set[int] = set()
        for number, one in enumerate(self.rounds):
            twice = seeds.intersection(one.seeds)
            if twice:
                raise ConfigError(
                    f"planners: round {number} practises seed {min(twice)}, which an earlier round did: rounds need "
                    "seeds of their own"
                )
            seeds.update(one.seeds)


@dataclass(frozen=True)
class ActorConfig:
    """name: of the weights. skills: config of its data. recipe: of its training, rounds of DAgger included.
    variants: name of further weights -> config of a training that goes on from this actor, with its data and roll-outs.
    skill_changes, recipe_changes: what differs from those configs, as in them."""

    recipe: str
    skills: str
    name: str = "arena-actor"
    variants: dict[str, str] = field(default_factory=dict)
    skill_changes: dict[str, Any] = field(default_factory=dict)
    recipe_changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RetrainConfig:
    """out: where everything goes, weights in `out`/weights. workers: processes of simulators. tasks: of the arena,
    for all data where nothing else is said; empty: those of the configs."""

    planners: PlannersConfig
    actor: ActorConfig
    out: str = "runs/train/arena"
    workers: int = 2
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {self.workers}")


@dataclass(frozen=True)
class Stage:
    """command: arguments of `predimem`; its config, as plain data, has to be written to `config_path` first.
    result: the folder that it leaves. weights: the name under which that is placed, if it is weights. needs: stages
    before it.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    config_path: Path
    config: dict[str, Any]
    result: Path
    needs: tuple[str, ...] = ()
    weights: str | None = None


def plan_stages(config: RetrainConfig) -> list[Stage]:
    """All stages in an order in which each comes after what it needs: the full system first, then variants.

    Raises ConfigError for a config file that is not there.
    """
    planners, (skills, actor) = _Planners(config), _actor(config)
    rounds = planners.rounds(actor)
    practises = next((i for i, stage in enumerate(rounds) if actor.name in stage.needs), len(rounds))
    rounds[practises:practises] = skills, actor
    first, *variants = config.planners.recipes
    others = [*(planners.final(name) for name in variants), *_actor_variants(config, skills, actor)]
    return [*rounds, planners.final(first), *others]


def choose_stages(stages: Sequence[Stage], only: Collection[str]) -> list[Stage]:
    """Those that `only` names, by name or by kind, and what they need; all if it names none."""
    known = {stage.name: stage for stage in stages}
    for name in only:
        if name not in known and name not in (DATA, PLANNER, ACTOR):
            raise ConfigError(f"no stage {name!r}; there are: {DATA}, {PLANNER}, {ACTOR} (kinds), {', '.join(known)}")
    wanted = [stage.name for stage in stages if not only or stage.name in only or stage.kind in only]
    chosen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in chosen:
            chosen.add(name)
            wanted += known[name].needs
    return [stage for stage in stages if stage.name in chosen]


class _Planners:
    def __init__(self, config: RetrainConfig):
        self.config, self.planners, self.out = config, config.planners, Path(config.out)
        self.recipe = next(iter(config.planners.recipes.values()))
        self.data: list[Stage] = []
        self.scenes: list[Stage] = []

    def rounds(self, actor: Stage) -> list[Stage]:
        """Practice, and between its rounds the planner that drives the next one. actor: the training of the hand."""
        stages: list[Stage] = []
        if self.planners.scenes is not None:
            self.scenes = [_data(self.config, "scenes", self.planners.scenes, self.planners.scene_changes)]
            stages += self.scenes
        if self.planners.demonstrations is not None:
            stages.append(_data(self.config, "demonstrations", self.planners.demonstrations, {}))
            self.data.append(stages[-1])
        driver: Stage | None = None
        for number, one in enumerate(self.planners.rounds):
            if number:
                driver = self._train(f"planner-round-{number - 1}", self.recipe)
                stages.append(driver)
            changes = {**self.planners.practice_changes, **to_dict(one)}
            changes["driver"] = str(driver.result) if driver else "truth"
            needs = (driver.name,) if driver else ()
            if one.hand == actor.name:
                changes["hand"], needs = str(actor.result), (*needs, actor.name)
            stages.append(_data(self.config, f"practice-{number}", self.planners.practice, changes, needs))
            self.data.append(stages[-1])
        return stages

    def final(self, name: str) -> Stage:
        """The training of one variant on all data."""
        return self._train(name, self.planners.recipes[name], weights=name)

    def _train(self, name: str, recipe: str, weights: str | None = None) -> Stage:
        data, out = list(self.data), self.out / name
        changes = merged(self.planners.recipe_changes, {"out": str(out), "episodes": [str(s.result) for s in data]})
        plain = read_yaml(recipe)
        if plain.get("vision") is None:  # a tower that is not trained
            changes.pop("vision", None)
        else:
            scenes = str(self.scenes[0].result) if self.scenes else None
            changes = merged(changes, {"vision": {"directory": str(self.out / "vision"), "scenes": scenes}})
        if plain.get("sft", {}).get("epochs") == 0:
            data, changes["episodes"], changes["sft"] = [], [], {}
        needs = tuple(stage.name for stage in (self.scenes + data if data else ()))
        return _stage(self.config, name, PLANNER, ("train", "planner"), recipe, changes, out / "export", needs, weights)


def _actor(config: RetrainConfig) -> tuple[Stage, Stage]:
    """Its data and its training."""
    actor, out = config.actor, Path(config.out)
    data = _data(config, "skills", actor.skills, actor.skill_changes)
    recipe = {"episodes": str(data.result), "out": str(out / actor.name)}
    changes = merged(actor.recipe_changes, recipe)
    rounds = merged(read_yaml(actor.recipe), changes).get("dagger", {}).get("rounds", 0)
    if rounds:
        changes = merged(changes, {"dagger": {"data": str(data.config_path)}})
    result = out / actor.name / (f"round{rounds}/weights" if rounds else "weights")
    command = ("train", "actor", "--workers", str(config.workers)) + (() if rounds else ("--resume",))
    return data, _stage(config, actor.name, ACTOR, command, actor.recipe, changes, result, (data.name,), actor.name)


def _actor_variants(config: RetrainConfig, skills: Stage, actor: Stage) -> list[Stage]:
    dagger = actor.config.get("dagger", {})
    rounds, by_expert = dagger.get("rounds", 0), dagger.get("expert_episodes", 0) > 0
    played = range(0 if by_expert else 1, rounds + 1) if rounds else ()
    stages = []
    for name, recipe in config.actor.variants.items():
        out = Path(config.out) / name
        changes = {
            "episodes": str(skills.result),
            "more_episodes": [str(Path(actor.config["out"]) / f"rollouts{number}") for number in played],
            "continue_from": str(actor.result),
            "out": str(out),
            "dagger": {"rounds": 0, "expert_episodes": 0},
        }
        command = ("train", "actor", "--resume")
        needs = (skills.name, actor.name)
        changes = merged(config.actor.recipe_changes, changes)
        stages.append(_stage(config, name, ACTOR, command, recipe, changes, out / "weights", needs, name))
    return stages


def _data(
    config: RetrainConfig, name: str, extends: str, changes: dict[str, Any], needs: tuple[str, ...] = ()
) -> Stage:
    folder = Path(config.out) / "data" / name
    changes = ({"tasks": list(config.tasks)} if config.tasks else {}) | changes | {"out": str(folder)}
    command = ("datagen", "--workers", str(config.workers))
    return _stage(config, name, DATA, command, extends, changes, folder, needs)


def _stage(
    config: RetrainConfig,
    name: str,
    kind: str,
    command: tuple[str, ...],
    extends: str,
    changes: dict[str, Any],
    result: Path,
    needs: tuple[str, ...] = (),
    weights: str | None = None,
) -> Stage:
    path = Path(config.out) / "configs" / f"{name}.yaml"
    data = merged(read_yaml(extends), changes)
    data = follow_memory(data) if kind == PLANNER else data
    return Stage(name, kind, (*command, "--config", str(path)), path, data, result, needs, weights)
