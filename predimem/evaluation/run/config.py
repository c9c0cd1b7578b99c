"""How episodes are played: time, pictures, weights, and the rows of a table of learned systems."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from predimem.agent.clock import TimeConfig
from predimem.agent.config import SCRIPTED, TRUTH, AgentConfig
from predimem.agent.dual_system import DualSystemConfig
from predimem.core.config import ConfigError, from_dict, read_yaml
from predimem.core.seeds import EVALUATION_SEEDS_FROM
from predimem.evaluation.analysis.studies import StudyConfig

Suite = Literal["mikasa", "arena"]

@dataclass(frozen=True)
class PlayConfig:
    """weights: a folder with `planner/`, `actor/`, ...; null: the shipped ones.
    rendering: of mikasa: `stock` meshes for figures to quote, `fast` (decimated) ones for studies.
    image_px: width and height of the arena's pictures. actor_camera_every: control steps from one picture
    of the arena to the next where a learned actor looks. inverse_kinematics: who turns its actions
    (`pd_ee_delta_pose`) into joint angles, our solver, as in the data that it was trained on and faster,
    or ManiSkill's controller. rows: of the arena, name -> learned system.
    task_files: name -> file of the arena's tasks that are not among the 26."""

    suite: Suite = "mikasa"
    rendering: Literal["stock", "fast"] = "stock"
    image_px: int = 128
    actor_camera_every: int = 2
    inverse_kinematics: Literal["predimem", "maniskill"] = "predimem"
    time: TimeConfig = field(default_factory=TimeConfig)
    agent: DualSystemConfig = field(default_factory=DualSystemConfig)
    weights: str | None = None
    torch_threads: int = 1
    rows: dict[str, AgentConfig] = field(default_factory=dict)
    task_files: dict[str, str] = field(default_factory=dict)

    def camera_every(self, row: AgentConfig) -> int | None:
        """Control steps from one picture to the next where `row` plays; None where nobody looks."""
        if row.camera_every is not None:
            return row.camera_every
        if row.actor not in SCRIPTED:
            return self.actor_camera_every
        return None if row.planner == TRUTH else self.agent.plan_every_steps


@dataclass(frozen=True)
class EvaluationFile:
    """`predimem eval --config`: what is played, and how. tasks: empty: all of the suite. agents: rows and
    built-in agents (`oracle`, ...), the first one is compared with the others; empty: all rows whose weights are
    there, in their order. videos: of each task and agent; null: 2, of the arena none. clips: failed episodes of each
    agent and cause that are played again to film the seconds around the failure. studies: rows that are drawn
    against what they differ in."""

    suite: Suite = "mikasa"
    tasks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    episodes: int = 100
    seed_start: int = EVALUATION_SEEDS_FROM
    out: str = "runs/eval"
    workers: int = 1
    videos: int | None = None
    clips: int = 0
    play: PlayConfig = field(default_factory=PlayConfig)
    rows: dict[str, AgentConfig] = field(default_factory=dict)
    studies: dict[str, StudyConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted({row for study in self.studies.values() for row in study.values} - set(self.rows))
        if unknown:
            raise ValueError(f"studies: no row {unknown[0]!r}; there are: {', '.join(self.rows) or 'none'}")
        if self.play.rows or self.play.task_files:
            raise ValueError("play: rows belong on the top level of the file, task files into tasks")
        if self.rows and self.suite != "arena":
            raise ValueError(f"rows are systems that play the arena, not {self.suite}")


def evaluation_settings(path: str | Path | None, given: Mapping[str, Any]) -> EvaluationFile:
    """A file's settings (None: the defaults) with what is given in their place.

    given: "episodes", "play.time.mode", ... -> value; None: not given. Raises ConfigError.
    """
    data = {} if path is None else read_yaml(path)
    for name, value in given.items():
        if value is not None:
            *parents, last = name.split(".")
            place = data
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = value
    return from_dict(EvaluationFile, data, "options" if path is None else str(path))


def played_with(results: str | Path, weights: str | None = None) -> PlayConfig:
    """How the episodes of a results.json were played. weights: their folder, if it lies elsewhere by now.

    Raises ConfigError for a file that does not say it.
    """
    try:
        provenance = json.loads(Path(results).read_text())["provenance"]
        play, rows = dict(provenance["play"]), provenance.get("rows", {})
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{results} is no results.json of `predimem eval` ({error!r})") from error
    if "task_files" in provenance:
        raise ConfigError(f"{results} has tasks of your own; it does not say where their files are now")
    play["rows"] = {name: {k: v for k, v in row.items() if k != "weights"} for name, row in rows.items()}
    if weights is not None:
        play["weights"] = weights
    return from_dict(PlayConfig, play, str(results))
