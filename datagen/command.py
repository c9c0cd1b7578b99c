"""`predimem datagen`: makes the data of a config file, whichever suite it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datagen.demos.config import GenerationConfig
from datagen.demos.mikasa import CollectConfig, MakeEnvironment, collect
from predimem.core.config import ConfigError, load_config, read_yaml
from predimem.jobs.runner import BackendConfig

if TYPE_CHECKING:
    from datagen.dagger.runtime import Runtime

SUITES = ("arena", "mikasa", "skills", "practice", "scenes")


def make_data(
    path: Path,
    make_mikasa: MakeEnvironment,
    make_runtime: Callable[[str, str], Runtime],
    workers: int,
    ray: str | None,
    changes: Mapping[str, Any],
    retry_errors: bool = False,
) -> None:
    """changes: fields of the config to replace. make_mikasa: how MIKASA's environments are made. make_runtime: of
    a driver and a hand of practice, the runtime in which they act.

    Raises ConfigError for a faulty file, for an unknown suite, and for changes that the suite does not know.
    """
    backend, suite = BackendConfig(workers=workers, ray=ray), suite_of(path)
    if suite == "mikasa":
        unknown = set(changes) - {"out"}
        if unknown:
            raise ConfigError(f"{path} is of the suite mikasa: its {', '.join(sorted(unknown))} are in the file itself")
        collect(replace(load_config(CollectConfig, path), **changes), make_mikasa, backend, retry_errors=retry_errors)
    elif suite == "skills":
        from datagen.actor_data.collect import collect_skills
        from datagen.actor_data.config import SkillDataConfig

        collect_skills(replace(load_config(SkillDataConfig, path), **changes), backend, retry_errors=retry_errors)
    elif suite == "scenes":
        from datagen.vision_data.collect import collect_scenes
        from datagen.vision_data.config import ScenesConfig

        collect_scenes(replace(load_config(ScenesConfig, path), **changes), backend, retry_errors=retry_errors)
    elif suite == "practice":
        from datagen.dagger.config import PracticeConfig
        from datagen.dagger.generate import practice_summary, practise

        config = replace(load_config(PracticeConfig, path), **changes)
        outcomes = practise(config, make_runtime(config.driver, config.hand), backend, retry_errors=retry_errors)
        print(practice_summary(outcomes, config.out))
    else:
        from datagen.demos.generate import generate
        from datagen.demos.report import summary

        config = replace(load_config(GenerationConfig, path), **changes)
        print(summary(generate(config, backend, retry_errors=retry_errors), config.out))


def suite_of(path: Path) -> str:
    """The suite that a config file is for. Raises ConfigError if it names none that there is."""
    data = read_yaml(path)
    suite = data.get("suite") if isinstance(data, dict) else None
    if suite not in SUITES:
        names = " or ".join(f"`suite: {name}`" for name in SUITES)
        raise ConfigError(f"{path}: expected {names}, got {suite!r}")
    return suite
