"""What a study of the predictive head trains, replays and plays; the shipped ones are in `configs/studies/`."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.prompt import follow_memory
from planner.tracking import TrackingConfig
from planner.train_config import TrainConfig
from predimem.agent.config import SCRIPTED, AgentConfig
from predimem.core.config import ConfigError, from_dict, load_config, merged, read_yaml
from predimem.evaluation.run.config import EvaluationFile

WITHOUT = 0.0  # the weight that the others are compared with


@dataclass(frozen=True)
class Training:
    """One planner of the study.

    share: of the demonstrations that it is trained on (`dataset.training_share`).
    weight: the factor of L_Pre; 0 trains without a head.
    seed: of the training; planners of the same seed and share are trained on the same samples.
    """

    share: float
    weight: float
    seed: int

    @property
    def name(self) -> str:
        """As its folders and its agent are called."""
        return f"share-{self.share:g}-weight-{self.weight:g}-seed-{self.seed}"


@dataclass(frozen=True)
class HeadStudy:
    """A study: every weight with every share of the demonstrations and every training seed.

    recipe: the config of the training that all have in common.
    recipe_changes: what differs from it, as in it.
    closed_loop: what is played and how, as in a config of `predimem eval`; its agents and its `out` are the study's.
    played_shares: closed loop is for planners of these shares of the demonstrations; empty: of all.
    out: the folder for everything that the study writes.
    predictive_weights: the factors of L_Pre. All others are compared with 0.
    training_seeds: one training with each.
    training_shares: shares of the demonstrations of each task, those with the lowest seeds.
    actor: the scripted low-level policy that carries out the planner's subtasks.
    replay: how planners are replayed on held-out episodes; the targets of keyframes are the recipe's.
    held_out_per_task: replay so many held-out episodes of each task, those with the lowest seeds; null: all.
    """

    recipe: str
    closed_loop: EvaluationFile
    recipe_changes: dict[str, Any] = field(default_factory=dict)
    played_shares: tuple[float, ...] = ()
    out: str = "runs/studies/planner_head"
    predictive_weights: tuple[float, ...] = (WITHOUT, 0.1, 0.5)
    training_seeds: tuple[int, ...] = (0, 1, 2)
    training_shares: tuple[float, ...] = (1.0, 0.25)
    actor: str = "skills"
    replay: TrackingConfig = field(default_factory=TrackingConfig)
    held_out_per_task: int | None = None

    def __post_init__(self) -> None:
        for name in ("predictive_weights", "training_seeds", "training_shares"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ConfigError(f"{name}: expected one or more different numbers, got {list(values)}")
        if min(self.predictive_weights) < 0:
            raise ConfigError(f"predictive_weights: expected none below 0, got {min(self.predictive_weights)}")
        for share in self.training_shares:
            if not 0 < share <= 1:
                raise ConfigError(f"training_shares: expected shares above 0 and at most 1, got {share}")
        if unknown := set(self.played_shares) - set(self.training_shares):
            raise ConfigError(f"played_shares: expected some of training_shares, got {sorted(unknown)} besides")
        if self.actor not in SCRIPTED:
            raise ConfigError(f"actor: expected a scripted one, {' or '.join(SCRIPTED)}, got {self.actor!r}")
        if self.held_out_per_task is not None and self.held_out_per_task < 1:
            raise ConfigError(f"held_out_per_task: expected at least 1, or null for all; got {self.held_out_per_task}")
        if self.closed_loop.agents or self.closed_loop.agent_configs or self.closed_loop.studies:
            raise ConfigError("closed_loop: agents, agent_configs and studies are the study's own: leave them out")

    @property
    def trainings(self) -> list[Training]:
        """All planners, those without a head first: the others are compared with them."""
        weights = sorted(self.predictive_weights)
        every = itertools.product(self.training_shares, self.training_seeds, weights)
        return [Training(share, weight, seed) for share, seed, weight in every]

    @property
    def played(self) -> list[Training]:
        """The planners that are played in closed loop."""
        return [t for t in self.trainings if t.share in (self.played_shares or self.training_shares)]

    @functools.cached_property
    def common(self) -> dict[str, Any]:
        """The recipe that all trainings share, as plain data."""
        return merged(read_yaml(self.recipe), self.recipe_changes)

    def recipe_of(self, training: Training) -> dict[str, Any]:
        """The config of one training, as plain data. A share of the demonstrations has a vision tower of its own,
        unless the tower is another planner's (`vision.from_planner`)."""
        changes: dict[str, Any] = {
            "out": str(Path(self.out) / "trainings" / training.name),
            "seed": training.seed,
            "predictive_weight": training.weight,
            "dataset": {"training_share": training.share},
        }
        if training.share < 1 and self.common.get("vision") is not None:
            vision = self.train_config(replace(training, share=1.0)).vision
            assert vision is not None
            if vision.from_planner is None:
                changes["vision"] = {"directory": f"{vision.directory}-share-{training.share:g}"}
        return follow_memory(merged(self.common, changes))

    def train_config(self, training: Training) -> TrainConfig:
        """Raises ConfigError for a recipe that cannot be used."""
        try:
            return from_dict(TrainConfig, self.recipe_of(training), f"{self.recipe} with recipe_changes")
        except ValueError as error:
            raise error if isinstance(error, ConfigError) else ConfigError(f"{self.recipe}: {error}") from error

    @property
    def tracking(self) -> TrackingConfig:
        """How planners are replayed, with the targets that they were taught."""
        return replace(self.replay, nominate=self.train_config(self.trainings[0]).dataset.nominate)

    @property
    def weights(self) -> Path:
        """The root of the trained planners' weights."""
        return Path(self.out) / "weights"

    def evaluation(self, trainings: list[Training], workers: int) -> EvaluationFile:
        """What is played in closed loop: one agent for each training, compared with the one without a head."""
        agents = {}
        for training in trainings:
            reference = replace(training, weight=WITHOUT)
            against = reference.name if reference in trainings and reference != training else None
            agents[training.name] = AgentConfig(planner=training.name, actor=self.actor, against=against)
        play = replace(self.closed_loop.play, weights=str(self.weights))
        own = {"out": str(Path(self.out) / "play"), "workers": workers, "play": play}
        return replace(self.closed_loop, agents=tuple(agents), agent_configs=agents, **own)


def load_study(path: str | Path, out: str | None = None) -> HeadStudy:
    """Read a study, and check the recipes of all its trainings. Raises ConfigError."""
    study = load_config(HeadStudy, path)
    study = study if out is None else replace(study, out=out)
    for training in study.trainings:
        study.train_config(training)
    return study
