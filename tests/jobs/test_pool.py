"""Answers that come at the same moment, of which one is a fault."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from predimem.core.faults import SetupError
from predimem.core.weight_files import WeightsError
from predimem.jobs.pool import JobQueue, Pool, Reply
from predimem.jobs.processes import Processes, ProcessHandle
from predimem.jobs.tasks import Job


@dataclass
class Together:
    """Its jobs end once both of them have begun; the one with seed 1 lacks its weights."""

    folder: Path

    def greeting(self) -> None:
        return None

    def do(self, job: Job) -> int:
        (self.folder / f"{job.seed}.begun").touch()
        while len(list(self.folder.glob("*.begun"))) < 2:
            time.sleep(0.01)
        if job.seed == 1:
            raise WeightsError("no weights for 'planner'")
        return job.seed

    def close(self) -> None:
        pass


class Patient(Processes):
    """Lets both answers come before it looks."""

    def wait(self, handles: Sequence[ProcessHandle], timeout_s: float) -> list[ProcessHandle]:
        time.sleep(1.0)
        return super().wait(handles, timeout_s)


def test_what_another_worker_has_done_is_not_lost_with_a_fault(tmp_path: Path) -> None:
    pool = Pool(Patient(partial(Together, tmp_path), tmp_path), 2, timeout_s=120.0)
    replies: list[Reply[Job]] = []
    with pytest.raises(SetupError, match="no weights for 'planner'"):
        replies.extend(pool.run(JobQueue([Job("a", 1), Job("b", 2)])))
    pool.close(kill=True)
    assert [(reply.job.seed, reply.kind, reply.value) for reply in replies] == [(2, "done", 2)]
