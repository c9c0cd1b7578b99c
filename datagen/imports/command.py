"""`predimem import lerobot` and `predimem import mikasa`: what their options mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from datagen.imports.arms import Arm
from datagen.imports.run import run_import
from datagen.imports.source import Source
from datagen.imports.subtasks import COLUMNS, HEADER, INSTRUCTION, SpanTable, read_spans
from datagen.keyframes import KeyframeConfig
from datagen.report import summary
from predimem.core.suggestions import did_you_mean

NEEDED = {"av": "PyAV", "google_crc32c": "google-crc32c", "google.protobuf": "protobuf", "pandas": "", "pyarrow": ""}


def import_lerobot(
    data: Path,
    out: Path,
    subtasks: str,
    chosen: Mapping[str, Any],
    arms: Sequence[Arm],
    closed_below_m: float,
    workers: int,
    retry_errors: bool,
) -> str:
    """chosen: options of `lerobot_source`.

    What to print at the end. Raises ValueError for options that do not fit the data set.
    """
    check_packages()
    from datagen.imports.lerobot import lerobot_source

    given = _given(subtasks, (COLUMNS, INSTRUCTION))
    motion = KeyframeConfig(gripper_closed_below_m=closed_below_m)
    source = lerobot_source(data, given, **chosen, arms=arms, keyframes=motion)
    options = {**chosen, "arms": [[list(arm.tcp), arm.gripper] for arm in arms]}
    if arms:
        options["closed_below_m"] = closed_below_m
    return _run(source, data, out, given, options, workers, retry_errors)


def import_mikasa(data: Path, out: Path, subtasks: str, workers: int, retry_errors: bool) -> str:
    """As `import_lerobot`."""
    check_packages()
    from datagen.imports.mikasa import mikasa_source
    from predimem.envs.mikasa.suite import tasks

    given = _given(subtasks, (INSTRUCTION,))
    source = mikasa_source(data, tasks(), given)
    text = _run(source, data, out, given, {}, workers, retry_errors)
    if given == INSTRUCTION:
        text += (
            "\neach episode has its whole instruction as its one subtask, since the releases name none. That is enough "
            f"to train an actor; for a planner give --subtasks FILE.csv with the columns task, {', '.join(HEADER)}"
        )
    return text


def check_packages() -> None:
    """Raises ValueError, with the way to get them, where packages are not installed that reading data sets needs."""
    missing = [name or module for module, name in NEEDED.items() if not _there(module)]
    if missing:
        raise ValueError(f"importing needs {', '.join(missing)}: pip install 'predimem[import]'")


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def _given(subtasks: str, words: Sequence[str]) -> str | SpanTable:
    if subtasks in words:
        return subtasks
    if not Path(subtasks).is_file():
        choices = ", ".join(f"`{word}`" for word in words)
        raise ValueError(
            f"--subtasks {subtasks}: expected {choices} or a CSV file that is there{did_you_mean(subtasks, words)}"
        )
    return read_spans(subtasks)


def _run(
    source: Source,
    data: Path,
    out: Path,
    given: str | SpanTable,
    options: Mapping[str, Any],
    workers: int,
    retry_errors: bool,
) -> str:
    subtasks = given if isinstance(given, str) else f"{given.path.name}, SHA-256 {given.digest}"
    noted = {"data": str(data.resolve()), "subtasks": subtasks, **options}
    return summary(run_import(source, out, noted, workers, retry_errors=retry_errors), out)
