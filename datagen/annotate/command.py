"""`predimem annotate`: episodes once more, with the subtasks that a model names, and keyframes by the arms' motion."""

from __future__ import annotations

import csv
import dataclasses
import io
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from datagen.annotate.annotate import Annotator, ViewConfig
from datagen.decompose.config import VlmConfig
from datagen.imports.arms import Arm, keyframes_of_motion
from datagen.imports.subtasks import HEADER
from datagen.keyframes import KeyframeConfig
from datagen.report import summary
from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.core.files import write_text
from predimem.jobs.journal import DataJournal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome

TABLE = "spans.csv"


@dataclass(frozen=True)
class AnnotateConfig:
    """arms: whose motion gives the keyframes (Eq. 1 to 3, united); without, each subtask but the last ends in one.

    labels: those that the model may use; empty: any.
    """

    vlm: VlmConfig
    views: ViewConfig
    arms: tuple[Arm, ...] = ()
    motion: KeyframeConfig = dataclasses.field(default_factory=KeyframeConfig)
    labels: tuple[str, ...] = ()


def annotate(
    episodes: Path, out: Path, config: AnnotateConfig, workers: int = 1, again: bool = False, retry_errors: bool = False
) -> str:
    """Write the episodes that `out` lacks, and a table of their spans for people to read; what to print at the end.

    again: also episodes that have several subtasks already. Raises ValueError where `out` is the folder of the
    episodes, and what `run_jobs` raises.
    """
    if out.resolve() == episodes.resolve():
        raise ValueError(f"--out {out}: episodes are never changed; name a folder for the annotated ones")
    files = _by_job(list_episodes(episodes))
    done = set() if again else {job for job, path in files.items() if _is_annotated(path)}
    jobs = [job for job in files if job not in done]
    told = (
        f"{len(done)} episodes have several subtasks already and are left out (--again takes them, too)\n"
        if done
        else ""
    )
    if not jobs:
        return f"{told}nothing is left to annotate"
    noted = {name: value for name, value in asdict(config).items() if name != "vlm"}
    noted |= {"episodes": str(episodes.resolve()), "model": config.vlm.model, "temperature": config.vlm.temperature}
    with DataJournal(out, noted) as journal:
        make = partial(AnnotateWorker, files, str(out.absolute()), config)
        outcomes = run_jobs(jobs, make, journal, BackendConfig(workers), retry_errors=retry_errors)
    write_table(out)
    return f"{told}{summary(outcomes, out)}\ntheir subtasks are in {out / TABLE}: look through it before you train"


class AnnotateWorker:
    """A `predimem.jobs.tasks.Worker`: a job is an episode."""

    def __init__(self, files: dict[Job, Path], out: str, config: AnnotateConfig) -> None:
        self._files, self._out, self._config = files, out, config
        self._annotator = Annotator(config.vlm, config.views, config.labels)

    def play(self, job: Job) -> Outcome:
        began_s, config = time.perf_counter(), self._config
        episode = load_episode(self._files[job])
        moved = keyframes_of_motion(episode.state, config.arms, episode.control_hz, config.motion)
        spans = self._annotator.spans(episode, moved or episode.keyframes)
        keyframes = moved if config.arms else [span.end - 1 for span in spans[:-1]]
        metadata = {**episode.metadata, "annotated_by": config.vlm.model}
        annotated = dataclasses.replace(
            episode, subtasks=spans, keyframes=tuple(keyframes), goal=episode.goal or spans[-1].label, metadata=metadata
        )
        save_episode(episode_path(self._out, job.task, job.seed), annotated)
        seconds = time.perf_counter() - began_s
        return Outcome(job.task, job.seed, kept=True, steps=len(episode), seconds=seconds)

    def close(self) -> None:
        pass


def write_table(out: Path) -> None:
    """The spans of all episodes of a folder, as `predimem import --subtasks` reads them, with a column for the task.

    Lines that are there already stay, since people correct them. Raises ValueError if they have no task or episode.
    """
    path = out / TABLE
    old = path.read_text() if path.exists() else ""
    rows = csv.DictReader(io.StringIO(old))
    if old and (missing := {"task", "episode"} - set(rows.fieldnames or ())):
        raise ValueError(f"{path} has no column {' and '.join(sorted(missing))}; expected task,{','.join(HEADER)}")
    there = {(row["task"], row["episode"]) for row in rows}
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    if not old:
        table.writerow(["task", *HEADER])
    for found in list_episodes(out):
        episode = load_episode(found, verify=False)
        if (episode.task, str(_number(episode))) not in there:
            for span in episode.subtasks:
                table.writerow([episode.task, _number(episode), span.start, span.end, span.label])
    write_text(path, old + ("" if old.endswith("\n") or not old else "\n") + text.getvalue())


def _number(episode: Episode) -> int:
    """That of the data set which it was imported from, else its own."""
    return int(dict(episode.metadata.get("lerobot") or {}).get("episode", episode.seed))


def _by_job(paths: Sequence[Path]) -> dict[Job, Path]:
    files: dict[Job, Path] = {}
    for path in paths:
        job = Job(path.parent.name, int(path.stem.removeprefix("seed")))
        if job in files:
            raise ValueError(f"{files[job]} and {path} are the same episode: annotate their folders one by one")
        files[job] = path
    return files


def _is_annotated(path: Path) -> bool:
    return len(load_episode(path, verify=False).subtasks) > 1


def read_labels(path: Path | None) -> tuple[str, ...]:
    """One label a line. Raises ValueError for a file without any."""
    if path is None:
        return ()
    labels = tuple(dict.fromkeys(line.strip() for line in path.read_text().splitlines() if line.strip()))
    if not labels:
        raise ValueError(f"{path}: expected a label a line, the file has none")
    return labels
