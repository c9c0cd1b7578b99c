"""The planners and actors of RoboMME, each kind trained on the same episodes: `predimem train robomme`.

RoboMME's motion planners are played for both. All other episodes are made from the images of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from predimem.core.config import ConfigError, read_yaml
from predimem.pipelines.stage import ACTOR, ACTOR_DATA, PLANNER, Stage, command_stage, data_stage

RESULT = {PLANNER: "export", ACTOR: "weights"}  # the folder in `out` in which a training leaves them
MIRRORED = "mirrored"  # the stage whose episodes are made from the demonstrations
PLAYED = "played"  # the stage whose episodes those of planners are made from


@dataclass(frozen=True)
class RobommeConfig:
    """What is trained on which episodes.

    played: the config of the episodes that are played for planners.
    made: a name -> a config of episodes that are made from them (`sources`).
    planners: the name of its weights -> the recipe of its training. They share one vision tower.
    demonstrations: the config of the episodes that actors learn from; null where there are no actors.
    mirrored: the config of further episodes for actors, which are made from the demonstrations; null: there are none.
    actors: the name of its weights -> the recipe of its training.
    out, workers: as in `RetrainConfig`.
    at_once: so many stages run side by side; a planner's training of these recipes takes one core.
    """

    played: str
    made: dict[str, str]
    planners: dict[str, str]
    demonstrations: str | None = None
    mirrored: str | None = None
    actors: dict[str, str] = field(default_factory=dict)
    out: str = "runs/train/robomme"
    workers: int = 2
    at_once: int = 1

    @property
    def tasks(self) -> tuple[str, ...]:
        """None, as in `Training`: the data are of those that their configs name."""
        return ()

    def __post_init__(self) -> None:
        if not self.planners:
            raise ConfigError("expected at least one of planners")
        if self.actors and self.demonstrations is None:
            raise ConfigError("demonstrations: expected the config of the episodes that actors learn from, got null")
        if self.mirrored and self.demonstrations is None:
            raise ConfigError("demonstrations: expected the config of the episodes that are mirrored, got null")
        for name in (PLAYED, ACTOR_DATA, MIRRORED):
            if name in self.made:
                raise ConfigError(f"made: expected other names than those of its own stages, got {name!r}")
        for name in ("workers", "at_once"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")


def plan_robomme(config: RobommeConfig) -> list[Stage]:
    """All stages: the planners' data, planner by planner, then those of actors.

    Raises ConfigError for a config file that is not there.
    """
    played = data_stage(config, PLAYED, config.played, {})
    sources = {"sources": str(played.result)}
    data = [played, *(data_stage(config, name, recipe, sources, (PLAYED,)) for name, recipe in config.made.items())]
    vision = {"vision": {"directory": str(Path(config.out) / "vision")}}
    episodes = {"episodes": [str(stage.result) for stage in data]}
    planners = [
        _training(config, PLANNER, name, recipe, data, episodes | vision) for name, recipe in config.planners.items()
    ]
    return [*data, *planners, *_actors(config)]


def _actors(config: RobommeConfig) -> list[Stage]:
    if config.demonstrations is None:
        return []
    data = [data_stage(config, ACTOR_DATA, config.demonstrations, {})]
    if config.mirrored is not None:
        data.append(data_stage(config, MIRRORED, config.mirrored, {"sources": str(data[0].result)}, (ACTOR_DATA,)))
    first, *more = (str(stage.result) for stage in data)
    episodes = {"episodes": first, "more_episodes": more}
    return [*data, *(_training(config, ACTOR, name, recipe, data, episodes) for name, recipe in config.actors.items())]


def _training(
    config: RobommeConfig, kind: str, name: str, recipe: str, data: list[Stage], changes: dict[str, Any]
) -> Stage:
    out, needs = Path(config.out) / name, tuple(stage.name for stage in data)
    changes = changes | {"out": str(out)}
    return command_stage(
        config, name, kind, ("train", kind), read_yaml(recipe), changes, out / RESULT[kind], needs, weights=name
    )
