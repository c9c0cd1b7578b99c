"""A real Ray cluster on this machine: the same run as in processes, with actors that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import load_episode
from predimem.jobs.local_ray import start_local_ray
from predimem.jobs.pool import WorkerError
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job
from tests.jobs.small_worker import (
    SmallWorker,
    broken_worker,
    dying_worker,
    open_journal,
    starts,
    wait_for_starts,
)

ROOT = Path(__file__).parents[2]
JOBS = [Job(task, seed) for task in ("Pour", "Stack") for seed in range(1001, 1007)]
pytestmark = pytest.mark.needs("ray")
BACKEND = BackendConfig(workers=2, ray="local", cpus_per_worker=0.5)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One for all tests, since starting it takes seconds; each run would else start its own."""
    start_local_ray(cpus=1)
    yield
    import ray

    ray.shutdown()


def run(out: Path, jobs: list[Job] = JOBS, backend: BackendConfig = BACKEND, **worker):
    with open_journal(out) as journal:
        return run_jobs(jobs, partial(SmallWorker, str(out), **worker), journal, backend, progress=False)


def test_a_killed_actor_loses_only_its_running_episode_and_the_run_resumes(tmp_path: Path) -> None:
    killed: list[tuple[str, int, int]] = []

    def kill() -> None:
        killed.append(wait_for_starts(tmp_path, 3)[-1])
        os.kill(killed[0][2], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = run(tmp_path, JOBS[:8], delay_s=0.3, together=2)
    killer.join()
    began = [(task, seed) for task, seed, _ in starts(tmp_path)]
    assert began.count(killed[0][:2]) == 2 and len(began) == 9
    assert [outcome.job for outcome in outcomes] == JOBS[:8]
    assert sum(outcome.kept for outcome in outcomes) == 6 and not any(o.is_error for o in outcomes)

    outcomes = run(tmp_path)
    assert sum(outcome.kept for outcome in outcomes) == 10
    assert len(starts(tmp_path)) == 9 + 4
    for path in list_episodes(tmp_path):
        load_episode(path)


@pytest.mark.slow
def test_errors_and_deaths_are_counted_as_in_processes(tmp_path: Path) -> None:
    outcomes = run(tmp_path, JOBS[:6], crash_seed=1003, crash_after_seed=1005, error_seeds=(1004,))
    assert [o.kept for o in outcomes] == [False, True, False, False, True, True]
    assert outcomes[2].cause == "worker died 3 times" and len(outcomes[2].report["deaths"]) == 3
    assert all("exit" in how.lower() for how in outcomes[2].report["deaths"])  # Ray says how, at length
    assert outcomes[3].report["message"] == "LookupError: no 1004 in the drawer: look elsewhere"
    assert "small_worker.py" in (tmp_path / "errors" / "Pour-seed0000001004.txt").read_text()
    assert outcomes[4].report == {"recovered": True}


@pytest.mark.slow
def test_a_job_that_hangs_is_stopped(tmp_path: Path) -> None:
    hasty = BackendConfig(workers=1, ray="local", cpus_per_worker=0.5, timeout_s=3.0)
    outcomes = run(tmp_path, JOBS[1:4], hasty, hang_seed=1003)
    assert outcomes[1].report["deaths"] == ["was stopped after 3 s without an answer"] * 3
    assert outcomes[0].kept and outcomes[2].kept


@pytest.mark.slow
def test_workers_that_cannot_be_built_end_the_run(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        with pytest.raises(WorkerError, match="no robot description"):
            run_jobs(JOBS, broken_worker, journal, BACKEND, progress=False)
        with pytest.raises(WorkerError, match="while it was built"):
            run_jobs(JOBS, dying_worker, journal, BACKEND, progress=False)


SLOW_START = """
import sys
from pathlib import Path

from ray._private import services

from predimem.jobs.local_ray import start_local_ray

which, path = sys.argv[1:]
Path(path).write_text(f'#!/bin/sh\\nsleep 40\\nexec {getattr(services, which)} "$@"\\n')
Path(path).chmod(0o755)
setattr(services, which, path)
start_local_ray(cpus=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["RAYLET_EXECUTABLE", "GCS_SERVER_EXECUTABLE"])
def test_a_cluster_that_starts_slowly_is_waited_for(program: str, tmp_path: Path) -> None:
    """Ray by itself gives up after 30 s."""
    subprocess.run([sys.executable, "-c", SLOW_START, program, tmp_path / "slow"], check=True, cwd=ROOT, timeout=300)
