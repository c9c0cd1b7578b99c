"""RoboMME's own package: whether it is installed, which episodes it has, and its environment builder.

Its tasks and splits are named here so that they can be listed without the package.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from predimem.core.faults import SetupError
from predimem.core.seeds import DEMONSTRATION_SEEDS, EVALUATION_SEEDS_FROM
from predimem.core.suggestions import did_you_mean
from predimem.core.versions import version_of
from predimem.rendering import maniskill as rendering

REVISION = "598e3b4c580990d34681651b1b0ec5a6f4c26524"  # that was tried
INSTALL = f"pip install --no-deps git+https://github.com/RoboMME/robomme_benchmark.git@{REVISION}"
SUITES = {
    "Counting": ("BinFill", "PickXtimes", "SwingXtimes", "StopCube"),
    "Permanence": ("VideoUnmask", "VideoUnmaskSwap", "ButtonUnmask", "ButtonUnmaskSwap"),
    "Reference": ("PickHighlight", "VideoRepick", "VideoPlaceButton", "VideoPlaceOrder"),
    "Imitation": ("MoveCube", "InsertPeg", "PatternLock", "RouteStick"),
}
TASKS = tuple(task for tasks in SUITES.values() for task in tasks)
STICK_TASKS = ("PatternLock", "RouteStick")  # need RoboMME's fork of ManiSkill
MORE_SEEDS_FROM = 10_000_000  # RoboMME's own lie below 1.2 million
DIFFICULTIES = ("easy", "medium", "hard")
MAX_STEPS = 1300  # of an episode, as in RoboMME's own evaluation
# split -> (seed of its first episode, how many episodes it has). `more` is not RoboMME's: episodes of its environments
# with seeds that its metadata does not use, for those who want more training data than it has.
SPLITS = {
    "train": (DEMONSTRATION_SEEDS.start, 100),
    "more": (DEMONSTRATION_SEEDS.start + 100, 10_000),
    "test": (EVALUATION_SEEDS_FROM, 50),
    "val": (EVALUATION_SEEDS_FROM + 100, 50),
}


class NotInstalled(SetupError):
    """RoboMME's package is not there."""


class NoScene(RuntimeError):
    """RoboMME finds no place for the things of an episode. Only episodes that are not its own can be so."""


def is_installed() -> bool:
    """Imports nothing heavy."""
    return importlib.util.find_spec("robomme") is not None


def check_installed() -> None:
    """Raises NotInstalled, with the command that mends it."""
    if not is_installed():
        raise NotInstalled(
            "RoboMME's package `robomme` is not installed, which holds its environments and their episodes: run\n"
            f"  {INSTALL}\n"
            "(--no-deps: it pins other versions of PyTorch and ManiSkill than these, and runs on these)"
        )


def check_task(task: str) -> None:
    """Raises ValueError for a task that RoboMME does not have, or that does not run on ManiSkill as it is released."""
    if task not in TASKS:
        raise ValueError(f"RoboMME has no task {task!r}{did_you_mean(task, TASKS)}; it has: {', '.join(TASKS)}")
    if task in STICK_TASKS:
        raise ValueError(
            f"{task} needs RoboMME's own fork of ManiSkill (another robot camera and another planner for the stick); "
            f"the other {len(TASKS) - len(STICK_TASKS)} tasks run on ManiSkill {version_of('mani_skill')}"
        )


def episode_of(seed: int) -> tuple[str, int]:
    """(split, index): which of RoboMME's episodes a seed stands for. Raises ValueError where it stands for none."""
    for split, (first, count) in SPLITS.items():
        if first <= seed < first + count:
            return split, seed - first
    known = "; ".join(
        f"{first} to {first + count - 1} are its {split} episodes" for split, (first, count) in SPLITS.items()
    )
    raise ValueError(f"seed {seed} is no episode of RoboMME: {known}")


def seed_of(split: str, index: int) -> int:
    """The seed that stands for an episode of RoboMME. Raises ValueError where there is no such episode."""
    first, count = SPLITS[split]
    if not 0 <= index < count:
        raise ValueError(f"RoboMME has {count} {split} episodes of a task, numbered from 0; got {index}")
    return first + index


def versions() -> str:
    """RoboMME and the simulator that figures were made with, for result files."""
    return f"{own_version()}, " + ", ".join(f"{name} {version_of(name)}" for name in ("mani_skill", "sapien"))


def own_version() -> str:
    """RoboMME's alone."""
    return f"robomme {version_of('robomme')}{_commit()}"


@functools.cache
def load_builder() -> Any:
    """`BenchmarkEnvBuilder`, with the simulator ready to render. Raises NotInstalled, and VulkanError without a
    driver."""
    check_installed()
    with rendering.starting(), _quiet_registration():
        rendering.prepare()
        import robomme.robomme_env  # noqa: F401  # type: ignore[import-not-found]  (registers the tasks)
        from robomme.env_record_wrapper import BenchmarkEnvBuilder  # type: ignore[import-not-found]
    return BenchmarkEnvBuilder


def make_episode(task: str, seed: int, image_px: int | None = None) -> Any:
    """One of RoboMME's episodes as its own builder makes it, before its reset. Raises ValueError for unknown ones, and
    NoScene.

    image_px: the width and height that the cameras render; None: RoboMME's.
    """
    check_task(task)
    split, index = episode_of(seed)
    known = "train" if split == "more" else split
    builder = load_builder()(env_id=task, dataset=known, action_space="joint_angle", max_steps=MAX_STEPS)
    if split == "more":
        made = {"seed": MORE_SEEDS_FROM + index, "difficulty": DIFFICULTIES[index % len(DIFFICULTIES)]}
        builder.metadata_index[task, index] = made
    if builder.resolve_episode(index)[0] is None:
        raise ValueError(f"RoboMME's metadata has no {split} episode {index} of {task}")
    from robomme.robomme_env.utils.SceneGenerationError import SceneGenerationError  # type: ignore[import-not-found]

    try:
        with _quiet_registration(), _cameras_of(image_px):
            return builder.make_env_for_episode(index)
    except SceneGenerationError as error:
        raise NoScene(f"RoboMME cannot build episode {index} ({split}) of {task}, seed {seed}: {error}") from error


def _commit() -> str:
    """The revision that was installed, where pip noted it."""
    try:
        noted = importlib.metadata.distribution("robomme").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return ""
    commit = json.loads(noted or "{}").get("vcs_info", {}).get("commit_id", "")
    return f" ({commit[:7]})" if commit else ""


@contextmanager
def _cameras_of(image_px: int | None) -> Iterator[None]:
    """The builder hands no camera settings on to `gymnasium.make`; inside, that gets them nevertheless."""
    if image_px is None:
        yield
        return
    from robomme.env_record_wrapper import episode_config_resolver as module  # type: ignore[import-not-found]

    stock, size = module.gym, {"width": image_px, "height": image_px}
    module.gym = SimpleNamespace(make=lambda name, **given: stock.make(name, sensor_configs=size, **given))
    try:
        yield
    finally:
        module.gym = stock


@contextmanager
def _quiet_registration() -> Iterator[None]:
    """ManiSkill warns at each making that the tasks do not list the robot that they choose themselves."""
    logger = logging.getLogger("mani_skill")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
