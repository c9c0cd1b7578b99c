"""The planners of RoboMME, all trained on the same episodes: `predimem train robomme`.

RoboMME's motion planners are played once. All other episodes are made from those images.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from predimem.core.config import ConfigError, read_yaml
from predimem.pipelines.stage import PLANNER, Stage, command_stage, data_stage

PLAYED = "played"  # the stage whose episodes the others are made from


@dataclass(frozen=True)
class RobommeConfig:
    """What is trained on which episodes.

    played: the config of the episodes that are played.
    made: a name -> a config of episodes that are made from them (`sources`).
    planners: the name of its weights -> the recipe of its training. They share one vision tower.
    out, workers: as in `RetrainConfig`.
    at_once: so many stages run side by side; a training of these recipes takes one core.
    """

    played: str
    made: dict[str, str]
    planners: dict[str, str]
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
        if PLAYED in self.made:
            raise ConfigError(f"made: the name {PLAYED!r} is that of the episodes that are played")
        for name in ("workers", "at_once"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")


def plan_robomme(config: RobommeConfig) -> list[Stage]:
    """All stages: the data, then planner by planner. Raises ConfigError for a config file that is not there."""
    played = data_stage(config, PLAYED, config.played, {})
    sources = {"sources": str(played.result)}
    made = [data_stage(config, name, recipe, sources, (PLAYED,)) for name, recipe in config.made.items()]
    data = [played, *made]
    return [*data, *(_training(config, name, recipe, data) for name, recipe in config.planners.items())]


def _training(config: RobommeConfig, name: str, recipe: str, data: list[Stage]) -> Stage:
    out = Path(config.out)
    changes = {
        "out": str(out / name),
        "episodes": [str(stage.result) for stage in data],
        "vision": {"directory": str(out / "vision")},
    }
    command, needs = ("train", "planner"), tuple(stage.name for stage in data)
    return command_stage(
        config, name, PLANNER, command, read_yaml(recipe), changes, out / name / "export", needs, weights=name
    )
