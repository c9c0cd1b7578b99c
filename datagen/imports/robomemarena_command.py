"""`predimem import robomemarena`: in worker processes, with instructions from a table."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from datagen.imports.robomemarena import SubtaskFile, group_files, import_episode, task_of
from datagen.report import summary
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.jobs.journal import DataJournal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome

Instructions = Mapping[tuple[int, int | None], str]
"""By the number of the task, and the seed where it has an instruction of its own."""


def import_in_workers(
    data: Path, out: Path, table: Path | None = None, workers: int = 1, retry_errors: bool = False
) -> str:
    """Write the episodes that `out` lacks; what to print at the end.

    Raises EpisodeError for files that do not fit together, and ValueError for a table that cannot be used.
    """
    groups = group_files(data)
    told = read_instructions(table) if table is not None else {}
    files = {Job(task_of(group).name, group[0].seed): group for group in groups.values()}
    noted = {"data": str(data.resolve()), "instructions": None}
    if table is not None:
        noted["instructions"] = f"{table.name}, SHA-256 {hashlib.sha256(table.read_bytes()).hexdigest()}"
        lacking = sorted({task for task, seed in groups if not {(task, seed), (task, None)} & told.keys()})
        if lacking:
            raise ValueError(f"{table} has no instruction for {_tasks(lacking)} of {data}")
    with DataJournal(out, noted) as journal:
        make = partial(ArenaImportWorker, files, told, str(out.absolute()))
        outcomes = run_jobs(list(files), make, journal, BackendConfig(workers), retry_errors=retry_errors)
    return summary(outcomes, out)


class ArenaImportWorker:
    """A `predimem.jobs.tasks.Worker`: a job is an episode, the files of a task and seed."""

    def __init__(self, files: Mapping[Job, list[SubtaskFile]], told: Instructions, out: str) -> None:
        self._files, self._told, self._out = files, told, out

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        files = self._files[job]
        task = files[0].task_id
        episode = import_episode(files, instruction=self._told.get((task, job.seed), self._told.get((task, None))))
        save_episode(episode_path(self._out, job.task, job.seed), episode)
        seconds = time.perf_counter() - began_s
        return Outcome(job.task, job.seed, kept=True, steps=len(episode), seconds=seconds)

    def close(self) -> None:
        pass


def read_instructions(path: Path) -> dict[tuple[int, int | None], str]:
    """A CSV file with the columns `task` (its number), `instruction`, and perhaps `seed`. Raises ValueError, naming the
    line.
    """
    rows = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
    lacking = {"task", "instruction"} - set(rows.fieldnames or ())
    if lacking:
        raise ValueError(
            f"{path}: expected a first line with the columns task, instruction and, if they differ, seed; missing: "
            f"{', '.join(sorted(lacking))}"
        )
    told: dict[tuple[int, int | None], str] = {}
    for row in rows:
        seed, words = (row.get("seed") or "").strip(), (row["instruction"] or "").strip()
        try:
            key = int(row["task"]), int(seed) if seed else None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {rows.line_num}: expected the number of a task, got {row}") from error
        if not words or key in told:
            fault = "there is no instruction" if not words else "the same task and seed came before"
            raise ValueError(f"{path}, line {rows.line_num}: {fault}")
        told[key] = words
    return told


def _tasks(numbers: list[int]) -> str:
    return ("task " if len(numbers) == 1 else "tasks ") + ", ".join(map(str, numbers))
