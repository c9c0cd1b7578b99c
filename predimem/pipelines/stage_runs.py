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
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from predimem.core.config import ConfigError, differences, from_dict, in_todays_words
from predimem.core.episode_folder import list_episodes
from predimem.core.files import write_json, write_text
from predimem.core.progress import say
from predimem.core.weight_files import WeightsError, place_weights, weights_hash
from predimem.pipelines.stage import ACTOR, DATA, PLANNER, Stage, todays_stage

POLL_S, TELL_EVERY_S = 0.1, 60.0
DONE = "done"  # folder of notes: with which config a stage was run


class StageError(ValueError):
    """A stage that failed; the message names its command."""


def run_stages(stages: Sequence[Stage], out: Path, at_once: int = 1) -> Path:
    """Run what is not done yet; the folder of all weights.

    A finished stage is noted with its config in `out`/done. Ctrl-C (or SIGTERM) is passed on to the running stages,
    whose end is waited for; the same call then goes on. Raises ConfigError where `out` holds a stage of another
    config or of an earlier version, or one that was made from what is to be made again, before anything runs, and
    StageError if a stage fails; others are then stopped.

    at_once: so many stages run side by side, as far as none needs another. Each then writes to `out`/logs, as their
    lines would mix.
    """
    weights = out / "weights"
    _refuse_former_stages(stages, out)
    todo = [stage for stage in stages if not is_done(stage, out)]
    _refuse_stale_stages(stages, todo, out)
    waiting = list(enumerate(stages, start=1))
    running: list[_Running] = []
    began = time.monotonic()
    with _Stop() as stop:
        try:
            while waiting or running:
                while waiting and (len(running) < at_once or waiting[0][1] not in todo):
                    number, stage = waiting[0]
                    title = f"[{number}/{len(stages)}] {stage.name}"
                    if stage not in todo:
                        print(f"{title}: is there ({stage.result})", flush=True)
                        _place(stage, weights)
                    elif any(other.stage.name in stage.needs for other in running):
                        break
                    else:
                        print(f"{title}: {shown(stage)}", flush=True)
                        log = out / "logs" / f"{stage.name}.log" if at_once > 1 else None
                        running.append(_Running(stage, title, _start(stage, stop, log), log))
                    del waiting[0]
                if running:
                    ended = _first_to_end(running, stop)
                    running.remove(ended)
                    write_json(_note(ended.stage, out), ended.stage.config, indent=1)
                    _place(ended.stage, weights)
                    print(f"{ended.title}: done in {ended.time}, {_time(time.monotonic() - began)} in all", flush=True)
        finally:
            for other in running:
                stop.end(other.process)
    return weights


def check_configs(stages: Sequence[Stage]) -> None:
    """Raises ValueError for a stage whose command would refuse its config, before hours are spent on others."""
    made = {str(stage.result) for stage in stages}
    for stage in stages:
        config = from_dict(_config_class(stage), stage.config, f"the stage {stage.name}")
        if stage.kind == DATA and stage.config.get("sources") not in made:  # else they are listed once it is there
            config.jobs()


def _config_class(stage: Stage) -> type:
    """Of the config that the command of a stage reads."""
    from actor.training.config import ActorTrainConfig
    from datagen.command import KINDS
    from planner.train import TrainConfig

    trained: dict[str, type] = {PLANNER: TrainConfig, ACTOR: ActorTrainConfig}
    return trained.get(stage.kind) or KINDS[stage.config["kind"]]


def check_episodes(stages: Sequence[Stage], out: Path) -> None:
    """Raises EpisodeError for episodes that a training needs and that neither are there nor are made by a stage."""
    made = {Path(folder) for stage in stages for folder in (stage.result, stage.config["out"])}
    for stage in stages:
        if stage.kind == DATA or is_done(stage, out):
            continue
        episodes = stage.config.get("episodes", ())
        folders = [episodes] if isinstance(episodes, str) else episodes
        for folder in (*folders, *stage.config.get("more_episodes", ())):
            if made.isdisjoint((Path(folder), *Path(folder).parents)):
                list_episodes(folder)


def is_done(stage: Stage, out: Path) -> bool:
    """Raises ConfigError if the stage was done with another config than it would be run with now."""
    note = _note(stage, out)
    if not (note.is_file() and stage.result.is_dir()):
        return False
    before, now = json.loads(note.read_text()), json.loads(json.dumps(stage.config))
    if before != now:  # perhaps an option was added since, and has its default
        cls = _config_class(stage)
        before, now = in_todays_words(cls, before), in_todays_words(cls, now)
    if before != now:
        raise ConfigError(
            f"{out} holds the stage {stage.name} of another config: {', '.join(differences(before, now)[:3])}; choose "
            f"another --out, or delete {note} to run the stage again where it can go on, and {stage.result} too "
            "where it cannot; what was made from it has to be made again then"
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


def _refuse_stale_stages(stages: Sequence[Stage], todo: Sequence[Stage], out: Path) -> None:
    """A stage that is run again leaves something else than what those after it were made from."""
    again, stale = {stage.name for stage in todo}, list[Stage]()
    for stage in stages:
        if stage.name not in again and not again.isdisjoint(stage.needs):
            stale.append(stage)
            again.add(stage.name)
    if stale:
        made = ", ".join(stage.name for stage in stale)
        paths = ", ".join(str(path) for stage in stale for path in (_note(stage, out), _folder(stage)))
        raise ConfigError(
            f"{', '.join(stage.name for stage in todo)}: to be run, but {made} had been made from what was there "
            f"before; choose another --out, or delete {paths} as well, so that they are made again"
        )


def _folder(stage: Stage) -> Path:
    """All that a stage wrote, such as a training's checkpoints beside its export."""
    return Path(stage.config.get("out", stage.result))


def shown(stage: Stage) -> str:
    return shlex.join(["predimem", *stage.command])


@dataclass(frozen=True)
class _Running:
    stage: Stage
    title: str
    process: subprocess.Popen[bytes]
    log: Path | None
    began_s: float = field(default_factory=time.monotonic)

    @property
    def time(self) -> str:
        return _time(time.monotonic() - self.began_s)


def _start(stage: Stage, stop: _Stop, log: Path | None) -> subprocess.Popen[bytes]:
    write_text(stage.config_path, yaml.safe_dump(stage.config, sort_keys=False, width=120))
    root = str(Path(__file__).parents[2])  # the code that runs here is the code that runs there
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    # A process group of its own, so that one Ctrl-C is one signal, whoever sends it.
    command = [sys.executable, "-m", "predimem.cli", *stage.command]
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    with nullcontext() if log is None else log.open("ab") as output:
        environment = {**os.environ, "PYTHONPATH": path}
        process = subprocess.Popen(command, env=environment, process_group=0, stdout=output, stderr=output)
    stop.watch(process)
    return process


def _first_to_end(running: Sequence[_Running], stop: _Stop) -> _Running:
    """Wait for it. Raises KeyboardInterrupt where somebody asked to stop, and StageError where it left no result."""
    told_s = time.monotonic()
    while (ended := next((one for one in running if one.process.poll() is not None), None)) is None:
        time.sleep(POLL_S)
        if time.monotonic() - told_s > TELL_EVERY_S:
            told_s = time.monotonic()
            for one in running:
                if one.log is not None:
                    say(f"{one.title}: {one.time} so far; {_last_line(one.log)}")
    code, stage = ended.process.returncode, ended.stage
    if stop.asked:
        names = ", ".join(one.stage.name for one in running)
        print(f"\ninterrupted in {names}: the same command goes on", file=sys.stderr, flush=True)
        raise KeyboardInterrupt
    told = f"its command was: {shown(stage)}{f' (its output is in {ended.log})' if ended.log else ''}"
    if code != 0:
        raise StageError(f"the stage {stage.name} ended with code {code}; {told}")
    if not stage.result.is_dir():
        raise StageError(f"the stage {stage.name} left no {stage.result}; {told}")
    return ended


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return next((line for line in reversed(lines) if line.strip()), "nothing said yet")


class _Stop:
    """Ctrl-C (or SIGTERM) asks the processes to stop, which may take them time: they may write a checkpoint. A second
    one kills them. Where SIGINT is ignored, as in the background of a script, it still is, but not by the processes."""

    def __init__(self) -> None:
        self.asked = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Stop:
        self._before: dict[int, Any] = {
            number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        self._processes.append(process)
        if self.asked:  # while it was being started
            self._pass_on(process)

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for its end, and ask for it where nobody has."""
        if not self.asked and process.poll() is None:
            self._pass_on(process)
        process.wait()

    def _ask(self, number: int, _: object) -> None:
        if number == signal.SIGINT and self._before[number] is signal.SIG_IGN:
            return  # not by its disposition, which every process that is started would inherit
        self.asked += 1
        for process in self._processes:
            self._pass_on(process)

    def _pass_on(self, process: subprocess.Popen[bytes]) -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if self.asked > 1 else signal.SIGINT)


def _place(stage: Stage, weights: Path) -> None:
    if stage.weights is not None and not _is_placed(stage, weights):
        place_weights(stage.result, weights, stage.weights)


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
