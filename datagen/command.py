"""`predimem datagen`: makes the data of a config file, of whichever kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from datagen.actor_data.config import ActorDataConfig
from datagen.dagger.config import PlannerDaggerConfig
from datagen.demos.config import GenerationConfig
from datagen.demos.edited_cues import EditedCuesConfig, edited_cues_worker
from datagen.demos.edited_robomme import EditedRobommeConfig, EditedRobommeWorker
from datagen.demos.edits import EditConfig
from datagen.demos.mikasa import CollectConfig, ExpertWorker, write_summary
from datagen.demos.mirrored_robomme import MirroredRobommeConfig, MirroredRobommeWorker
from datagen.demos.moved_robomme import MovedRobommeConfig, MovedRobommeWorker
from datagen.demos.recounted_presses import RecountedPressesConfig, recounted_presses_worker
from datagen.demos.reordered_touches import ReorderedTouchesConfig, reordered_touches_worker
from datagen.demos.robomme import RobommeDataConfig
from datagen.former_names import todays_kind
from datagen.generation import run_generation
from datagen.report import summary
from datagen.vision_data.config import VisionDataConfig
from predimem.core.config import ConfigError, load_config, read_yaml, renamed
from predimem.jobs.runner import BackendConfig
from predimem.jobs.tasks import Worker

KINDS: dict[str, Any] = {
    "arena": GenerationConfig,
    "mikasa": CollectConfig,
    "edited_cues": EditedCuesConfig,
    "reordered_touches": ReorderedTouchesConfig,
    "recounted_presses": RecountedPressesConfig,
    "robomme": RobommeDataConfig,
    "edited_robomme": EditedRobommeConfig,
    "moved_robomme": MovedRobommeConfig,
    "mirrored_robomme": MirroredRobommeConfig,
    "actor_data": ActorDataConfig,
    "dagger": PlannerDaggerConfig,
    "vision_data": VisionDataConfig,
}


def make_data(
    path: Path, workers: int, ray: str | None, changes: Mapping[str, Any], retry_errors: bool = False
) -> None:
    """changes: fields of the config to replace.

    Raises ConfigError for a faulty file, for an unknown kind of data, and for changes that the kind does not know.
    """
    kind = read_data_config(path)["kind"]
    given = load_config(KINDS[kind], path)
    fixed = {"tasks", "episodes"} if isinstance(given, CollectConfig | EditConfig) else set()
    known = {field.name for field in fields(given)} - fixed
    if unknown := sorted(set(changes) - known):
        where = "are in the file itself" if fixed else "cannot be set: this kind has none"
        raise ConfigError(f"{path} is of the kind {kind}: its {', '.join(unknown)} {where}")
    config = replace(given, **changes)
    if isinstance(config, GenerationConfig) and (vlm := config.decomposition.vlm):
        where = f" at {vlm.base_url}" if vlm.base_url else ""
        print(
            f"asking {vlm.model}{where} for the steps of each episode: each answer may take {vlm.timeout_s:g} s",
            file=sys.stderr,
            flush=True,
        )
    backend = BackendConfig(workers=workers, ray=ray)
    outcomes = run_generation(config, make_worker, backend, retry_errors=retry_errors)
    if isinstance(config, CollectConfig):
        write_summary(config, outcomes)
    print(summary(outcomes, config.out))


def make_worker(config: Any) -> Worker:
    """Called in the process that the worker lives in: only there is the simulator loaded."""
    if isinstance(config, CollectConfig):
        return ExpertWorker(config)
    if isinstance(config, EditedCuesConfig):
        return edited_cues_worker(config)
    if isinstance(config, ReorderedTouchesConfig):
        return reordered_touches_worker(config)
    if isinstance(config, RecountedPressesConfig):
        return recounted_presses_worker(config)
    if isinstance(config, EditedRobommeConfig):
        return EditedRobommeWorker(config)
    if isinstance(config, MovedRobommeConfig):
        return MovedRobommeWorker(config)
    if isinstance(config, MirroredRobommeConfig):
        return MirroredRobommeWorker(config)
    if isinstance(config, ActorDataConfig):
        from datagen.actor_data.worker import ActorDataWorker

        return ActorDataWorker(config)
    if isinstance(config, RobommeDataConfig):
        from datagen.demos.robomme import RobommeWorker

        return RobommeWorker(config)
    if isinstance(config, VisionDataConfig):
        from datagen.vision_data.worker import VisionDataWorker

        return VisionDataWorker(config)
    if isinstance(config, PlannerDaggerConfig):
        from datagen.dagger.agent import load_models
        from datagen.dagger.worker import DaggerWorker

        return DaggerWorker(config, *load_models(config))
    from datagen.demos.worker import ArenaWorker

    return ArenaWorker(config)


def read_data_config(path: str | Path) -> dict[str, Any]:
    """The plain data of a config file, with today's names of its keys and of its `kind`.

    Raises ConfigError if it names no kind of data that there is.
    """
    data = todays_kind(read_yaml(path))
    kind = data.get("kind")
    if kind not in KINDS:
        names = " or ".join(f"`kind: {name}`" for name in KINDS)
        raise ConfigError(f"{path}: expected {names}, got {kind!r}")
    return renamed(data, getattr(KINDS[kind], "FORMER_NAMES", {}), str(path))
