"""Running stages one after the other: each is a process, and one whose result exists is skipped."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import yaml

from predimem.core.config import ConfigError, differences, from_dict
from predimem.core.files import write_json, write_text
from predimem.core.weight_files import WeightsError, place_weights, weights_hash
from predimem.pipelines.retrain import ACTOR, DATA, PLANNER, Stage, todays_stage

DONE = "done"  # folder of notes: with which config a stage was run


class StageError(ValueError):
    """A stage that failed; the message names its command."""


def run_stages(stages: Sequence[Stage], out: Path) -> Path:
    """Run what is not done yet; the folder of all weights.

    A finished stage is noted with its config in `out`/done. Ctrl-C (or SIGTERM) is passed on to the running stage,
    whose end is waited for; the same call then goes on. Raises ConfigError where `out` holds a stage of another
    config or of an earlier version, before anything runs, and StageError if a stage fails.
    """
    weights = out / "weights"
    _refuse_former_stages(stages, out)
    todo = [stage for stage in stages if not is_done(stage, out)]
    began = time.monotonic()
    for number, stage in enumerate(stages, start=1):
        title = f"[{number}/{len(stages)}] {stage.name}"
        if stage in todo:
            print(f"{title}: {shown(stage)}", flush=True)
            seconds = _run(stage)
            write_json(_note(stage, out), stage.config, indent=1)
            print(f"{title}: done in {_time(seconds)}, {_time(time.monotonic() - began)} in all", flush=True)
        else:
            print(f"{title}: is there ({stage.result})", flush=True)
        if stage.weights is not None and not _is_placed(stage, weights):
            place_weights(stage.result, weights, stage.weights)
    return weights


def check_configs(stages: Sequence[Stage]) -> None:
    """Raises ValueError for a stage whose command would refuse its config, before hours are spent on others."""
    from actor.training.config import ActorTrainConfig
    from datagen.command import KINDS
    from planner.train import TrainConfig

    trained = {PLANNER: TrainConfig, ACTOR: ActorTrainConfig}
    for stage in stages:
        where = f"the stage {stage.name}"
        config = from_dict(trained.get(stage.kind) or KINDS[stage.config["kind"]], stage.config, where)
        if stage.kind == DATA:
            config.jobs()


def is_done(stage: Stage, out: Path) -> bool:
    """Raises ConfigError if the stage was done with another config than it would be run with now."""
    note = _note(stage, out)
    if not (note.is_file() and stage.result.is_dir()):
        return False
    before, now = json.loads(note.read_text()), json.loads(json.dumps(stage.config))
    if before != now:
        raise ConfigError(
            f"{out} holds the stage {stage.name} of another config: {', '.join(differences(before, now)[:3])}; choose "
            f"another --out, or delete {note} to run the stage again where it can go on, and {stage.result} too "
            "where it cannot"
        )
    return True


def _refuse_former_stages(stages: Sequence[Stage], out: Path) -> None:
    """A run of an earlier version would begin anew in the same folder, since its stages had other names."""
    known = {stage.name for stage in stages}
    for name in sorted(note.stem for note in (out / DONE).glob("*.json")):
        if name not in known and (now := todays_stage(name)) in known:
            raise ConfigError(
                f"{out} was begun by an earlier version: its stage {name} is {now} now; choose another --out"
            )


def shown(stage: Stage) -> str:
    return shlex.join(["predimem", *stage.command])


def _run(stage: Stage) -> float:
    write_text(stage.config_path, yaml.safe_dump(stage.config, sort_keys=False, width=120))
    began = time.monotonic()
    root = str(Path(__file__).parents[2])  # the code that runs here is the code that runs there
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with _Stop() as stop:
        # A process group of its own, so that one Ctrl-C is one signal, whoever sends it.
        command = [sys.executable, "-m", "predimem.cli", *stage.command]
        stop.watch(subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, process_group=0))
        code = stop.wait()
    if stop.asked:
        print(f"\ninterrupted in {stage.name}: the same command goes on", file=sys.stderr, flush=True)
        raise KeyboardInterrupt
    if code != 0:
        raise StageError(f"the stage {stage.name} ended with code {code}; its command was: {shown(stage)}")
    if not stage.result.is_dir():
        raise StageError(f"the stage {stage.name} left no {stage.result}; its command was: {shown(stage)}")
    return time.monotonic() - began


class _Stop:
    """Ctrl-C (or SIGTERM) asks the process to stop, which may take it time: it may write a checkpoint. A second one
    kills it. Where SIGINT is ignored, as in the background of a script, it still is, but not by the process."""

    def __init__(self) -> None:
        self.asked = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Stop:
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self._before[signal.SIGINT] is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.asked:  # while it was being started
            self._pass_on()

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait()

    def _ask(self, *_: object) -> None:
        self.asked += 1
        if self._process is not None:
            self._pass_on()

    def _pass_on(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT if self.asked == 1 else signal.SIGKILL)


def _is_placed(stage: Stage, weights: Path) -> bool:
    assert stage.weights is not None
    placed = weights / stage.weights
    try:
        return placed.is_dir() and weights_hash(placed) == weights_hash(stage.result)
    except WeightsError:  # a file that it shared is gone
        return False


def _note(stage: Stage, out: Path) -> Path:
    return out / DONE / f"{stage.name}.json"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
