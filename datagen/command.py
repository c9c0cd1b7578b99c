"""`predimem datagen`: makes the data of a config file, of whichever kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from datagen.actor_data.config import SkillDataConfig
from datagen.dagger.agent import check_models
from datagen.dagger.config import PracticeConfig
from datagen.demos.config import GenerationConfig
from datagen.demos.mikasa import CollectConfig, ExpertWorker, write_summary
from datagen.generation import run_generation
from datagen.report import summary
from datagen.vision_data.config import ScenesConfig
from predimem.core.config import ConfigError, load_config, read_yaml
from predimem.jobs.runner import BackendConfig
from predimem.jobs.tasks import Worker

KINDS: dict[str, Any] = {
    "arena": GenerationConfig,
    "mikasa": CollectConfig,
    "skills": SkillDataConfig,
    "practice": PracticeConfig,
    "scenes": ScenesConfig,
}


def make_data(
    path: Path, workers: int, ray: str | None, changes: Mapping[str, Any], retry_errors: bool = False
) -> None:
    """changes: fields of the config to replace.

    Raises ConfigError for a faulty file, for an unknown kind of data, and for changes that the kind does not know.
    """
    kind = kind_of(path)
    given = load_config(KINDS[kind], path)
    if kind == "mikasa" and (unknown := set(changes) - {"out"}):
        raise ConfigError(f"{path} is of the suite mikasa: its {', '.join(sorted(unknown))} are in the file itself")
    config = replace(given, **changes)
    if isinstance(config, PracticeConfig):
        check_models(config)
    backend = BackendConfig(workers=workers, ray=ray)
    outcomes = run_generation(config, make_worker, backend, retry_errors=retry_errors)
    if isinstance(config, CollectConfig):
        write_summary(config, outcomes)
    print(summary(outcomes, config.out))


def make_worker(config: Any) -> Worker:
    """Called in the process that the worker lives in: only there is the simulator loaded."""
    if isinstance(config, CollectConfig):
        return ExpertWorker(config)
    if isinstance(config, SkillDataConfig):
        from datagen.actor_data.worker import SkillWorker

        return SkillWorker(config)
    if isinstance(config, ScenesConfig):
        from datagen.vision_data.worker import ScenesWorker

        return ScenesWorker(config)
    if isinstance(config, PracticeConfig):
        from datagen.dagger.agent import load_models
        from datagen.dagger.worker import PracticeWorker

        return PracticeWorker(config, *load_models(config))
    from datagen.demos.worker import ArenaWorker

    return ArenaWorker(config)


def kind_of(path: Path) -> str:
    """The kind of data that a config file is for, its `suite`. Raises ConfigError if it names none that there is."""
    data = read_yaml(path)
    kind = data.get("suite") if isinstance(data, dict) else None
    if kind not in KINDS:
        names = " or ".join(f"`suite: {name}`" for name in KINDS)
        raise ConfigError(f"{path}: expected {names}, got {kind!r}")
    return kind
