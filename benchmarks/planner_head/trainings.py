"""Trains the planners of a study with `predimem train planner`, each a stage that is resumed and noted by itself."""

from __future__ import annotations

from pathlib import Path

from benchmarks.planner_head.config import HeadStudy, Training
from predimem.pipelines.stage import PLANNER, Stage
from predimem.pipelines.stage_runs import run_stages


def train_all(study: HeadStudy, workers: int) -> None:
    """Train what is not trained yet, `workers` planners side by side.

    Raises StageError if a training fails, and ConfigError if one was made by another config.
    """
    run_stages([stage_of(study, training) for training in study.trainings], Path(study.out), workers)


def trained(study: HeadStudy) -> list[Training]:
    """Those whose weights are there. Raises ValueError where there are none."""
    found = [training for training in study.trainings if (study.weights / training.name).is_dir()]
    if not found:
        raise ValueError(f"no planner of the study is in {study.weights} yet: run it with `--only train` first")
    return found


def stage_of(study: HeadStudy, training: Training) -> Stage:
    """The command of one training, as `run_stages` runs it."""
    path = Path(study.out) / "configs" / f"{training.name}.yaml"
    config = study.recipe_of(training)
    command = ("train", "planner", "--config", str(path))
    result = Path(config["out"]) / "export"
    return Stage(training.name, PLANNER, command, path, config, result, weights=training.name)
