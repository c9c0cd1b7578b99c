"""Imports a data set: side by side in worker processes, going on where an earlier run stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from datagen.imports.source import Source, store
from predimem.jobs.journal import DataJournal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome


def run_import(
    source: Source,
    out: str | Path,
    options: Mapping[str, Any],
    workers: int = 1,
    progress: bool = True,
    retry_errors: bool = False,
) -> list[Outcome]:
    """Write the episodes of `source` that `out` lacks; the outcomes of all of them.

    options: what the episodes are made with, as JSON data. JournalError is raised where `out` was made with others.
    An episode that cannot be read is told of and left out; see `run_jobs`.
    """
    with DataJournal(out, dict(options)) as journal:
        worker = partial(ImportWorker, source, str(Path(out).absolute()))
        return run_jobs(source.jobs(), worker, journal, BackendConfig(workers), progress, retry_errors)


class ImportWorker:
    """A `predimem.jobs.tasks.Worker`: a job is an episode of the data set."""

    def __init__(self, source: Source, out: str):
        self._source, self._out = source, out

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        steps = store(self._source, job, self._out)
        return Outcome(job.task, job.seed, kept=True, steps=steps, seconds=time.perf_counter() - began_s)

    def close(self) -> None:
        pass
