"""The end of a worker process whose parent leaves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from predimem.jobs.processes import LOG, ProcessHandle
from predimem.jobs.tasks import WorkerHandler
from tests.jobs.small_worker import SmallWorker


def test_a_worker_leaves_quietly_when_its_answer_was_not_read(tmp_path: Path) -> None:
    handle = ProcessHandle(partial(WorkerHandler, partial(SmallWorker, str(tmp_path))), str(tmp_path / LOG))
    assert handle.connection.poll(60.0)  # its greeting, which nobody reads, so that the connection is reset
    handle.connection.close()
    handle.process.join(60.0)
    assert handle.process.exitcode == 0
    assert (tmp_path / LOG).read_text() == ""
