"""Runs in real worker processes: resumed, killed, interrupted, raising; no seed repeated or skipped."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.faults import SetupError
from predimem.core.progress import stage
from predimem.jobs.pool import WorkerError
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job
from tests.jobs.small_worker import (
    STEPS,
    SmallWorker,
    broken_worker,
    dying_worker,
    open_journal,
    starts,
    unfit_worker,
    wait_for_starts,
)
from tests.processes import wait_until_ended

ROOT = Path(__file__).parents[2]
JOBS = [Job(task, seed) for task in ("Pour", "Stack") for seed in range(1001, 1007)]
FAILED = [Job("Pour", 1001), Job("Stack", 1001)]  # 1001 = 7 * 143
TWO = BackendConfig(workers=2)


def run(out: Path, jobs: list[Job] = JOBS, backend: BackendConfig | None = None, retry_errors=False, **worker):
    make_worker = partial(SmallWorker, str(out), **worker)
    with open_journal(out) as journal:
        return run_jobs(jobs, make_worker, journal, backend, progress=False, retry_errors=retry_errors)


def played(out: Path) -> Counter[tuple[str, int]]:
    return Counter((task, seed) for task, seed, _ in starts(out))


def test_every_job_is_played_once_and_a_second_run_plays_only_what_is_new(tmp_path: Path) -> None:
    outcomes = run(tmp_path, JOBS[:8], TWO, together=2)
    assert [outcome.job for outcome in outcomes] == JOBS[:8]
    assert [outcome.job for outcome in outcomes if not outcome.kept] == FAILED
    assert {outcome.cause for outcome in outcomes if not outcome.kept} == {"dropped the butter"}
    assert [(o.steps, o.report) for o in outcomes if o.kept] == [(STEPS, {"retries": 1})] * 6
    assert len({process for _, _, process in starts(tmp_path)}) == 2
    assert len(list(tmp_path.glob("closed*"))) == 2
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 8

    again = run(tmp_path, JOBS)
    assert again[:8] == outcomes
    assert played(tmp_path) == Counter({(job.task, job.seed): 1 for job in JOBS})
    assert len(list_episodes(tmp_path)) == 10
    for path in list_episodes(tmp_path):
        load_episode(path)


def test_a_killed_worker_loses_only_its_running_episode(tmp_path: Path) -> None:
    killed: list[tuple[str, int, int]] = []

    def kill() -> None:
        killed.append(wait_for_starts(tmp_path, 3)[-1])
        os.kill(killed[0][2], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = run(tmp_path, backend=TWO, delay_s=0.3)
    killer.join()
    victim = killed[0][:2]
    assert played(tmp_path) == Counter({(job.task, job.seed): 1 for job in JOBS}) + Counter([victim])
    assert sum(outcome.kept for outcome in outcomes) == 10
    assert not any(outcome.is_error for outcome in outcomes)
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert sorted((line["task"], line["seed"]) for line in lines) == sorted((job.task, job.seed) for job in JOBS)


def test_a_job_that_kills_its_workers_is_discarded_as_an_error(tmp_path: Path) -> None:
    outcomes = run(tmp_path, JOBS[:5], crash_seed=1003)
    assert [outcome.kept for outcome in outcomes] == [False, True, False, True, True]
    assert outcomes[2].cause == "worker died 3 times" and outcomes[2].is_error and not outcomes[0].is_error
    assert outcomes[2].report["deaths"] == ["died (SIGKILL)"] * 3
    assert played(tmp_path)["Pour", 1003] == 3


def test_a_worker_that_dies_after_it_stored_is_not_asked_again(tmp_path: Path) -> None:
    outcomes = run(tmp_path, JOBS[:4], crash_after_seed=1003)
    assert outcomes[2].kept and outcomes[2].steps == STEPS and outcomes[2].report == {"recovered": True}
    assert max(played(tmp_path).values()) == 1


@pytest.mark.slow
def test_a_job_that_hangs_is_stopped(tmp_path: Path) -> None:
    outcomes = run(tmp_path, JOBS[1:4], BackendConfig(timeout_s=2.0), hang_seed=1003)
    assert outcomes[1].report["deaths"] == ["was stopped after 2 s without an answer"] * 3
    assert outcomes[0].kept and outcomes[2].kept


def test_errors_are_told_of_at_the_end_and_retried_on_request(tmp_path: Path, capsys) -> None:
    outcomes = run(tmp_path, error_seeds=(1003,))
    errors = [outcome for outcome in outcomes if outcome.is_error]
    assert [outcome.job for outcome in errors] == [Job("Pour", 1003), Job("Stack", 1003)]
    assert errors[0].cause == "error: LookupError"
    assert errors[0].report["message"] == "LookupError: no 1003 in the drawer: look elsewhere"
    assert "2 of 12 episodes ended in an error" in capsys.readouterr().err
    trace = (tmp_path / "errors" / "Pour-seed0000001003.txt").read_text()
    assert "small_worker.py" in trace and "raise LookupError" in trace
    assert sum(outcome.kept for outcome in outcomes) == 8

    run(tmp_path)
    assert played(tmp_path)["Pour", 1003] == 1
    retried = run(tmp_path, retry_errors=True)
    assert sum(outcome.kept for outcome in retried) == 10 and not any(o.is_error for o in retried)
    assert max(played(tmp_path).values()) == 2 and sum(played(tmp_path).values()) == 14


def test_many_errors_in_a_row_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(
        WorkerError, match=r"5 errors in a row, the first one Pour seed 1002: LookupError: no 1002.*--retry-errors"
    ):
        run(tmp_path, JOBS[:6], error_seeds=tuple(range(1002, 1007)))
    assert len(starts(tmp_path)) == 6


def test_where_every_job_ends_in_an_error_the_run_fails_and_says_why(tmp_path: Path) -> None:
    told = r"2 of 2 .* the first one Pour seed 1002: LookupError: no 1002 in the drawer.*--retry-errors"
    for _ in range(2):  # also where nothing is left to play
        with pytest.raises(WorkerError, match=told):
            run(tmp_path, JOBS[1:3], error_seeds=(1002, 1003))
    assert len(starts(tmp_path)) == 2
    assert all(outcome.kept for outcome in run(tmp_path, JOBS[1:3], retry_errors=True))


def test_a_full_disk_costs_no_seed_and_the_same_command_goes_on(tmp_path: Path, capsys) -> None:
    jobs = [job for job in JOBS if job.seed % 7]
    run(tmp_path, jobs[:3])
    with pytest.raises(OSError) as raised:
        run(tmp_path, jobs, TWO, file_bytes=2000, hang_seed=1005, together=3)  # two, and the one of the run before
    assert raised.value.errno == errno.EFBIG and str(raised.value.filename).startswith(str(tmp_path))
    assert f"stopped with 3 of {len(jobs)} episodes" in capsys.readouterr().err
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 3
    assert not (tmp_path / "errors").exists() and not list(tmp_path.rglob("*.partial"))
    assert all(outcome.kept for outcome in run(tmp_path, jobs))


def test_weights_that_are_missing_are_told_in_one_line(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        with pytest.raises(SetupError) as raised:
            run_jobs(JOBS, unfit_worker, journal, progress=False)
        assert str(raised.value) == "no weights for 'planner'; train them" and not journal.outcomes
    assert "in unfit_worker" in (tmp_path / "workers.log").read_text(), "the traceback is kept"


def test_workers_that_cannot_be_built_end_the_run(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        with pytest.raises(WorkerError, match="no robot description"):
            run_jobs(JOBS, broken_worker, journal, progress=False)
        with pytest.raises(WorkerError, match=r"exit code 7.*workers\.log may say why"):
            run_jobs(JOBS, dying_worker, journal, progress=False)
        assert not journal.outcomes


def test_a_job_listed_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Pour seed 1001 more than once"):
        run(tmp_path, [*JOBS, JOBS[0]])


@pytest.mark.parametrize("changes,message", [({"workers": 0}, "workers"), ({"timeout_s": 0}, "timeout_s")])
def test_the_backend_config_says_what_is_wrong(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BackendConfig(**changes)


SCRIPT = """
import sys
from pathlib import Path
from tests.jobs.test_runner import JOBS, TWO, run
if __name__ == "__main__":
    run(Path(sys.argv[1]), JOBS, TWO, delay_s=0.3)
"""


def start_script(out: Path) -> subprocess.Popen[str]:
    script = out / "script.py"
    script.write_text(SCRIPT)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), str(out)]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_ctrl_c_drops_running_episodes_and_the_next_run_goes_on(tmp_path: Path) -> None:
    process = start_script(tmp_path)
    wait_for_starts(tmp_path, 5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the parent and to its workers
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT  # so that a shell reports 130
    assert "interrupted: the same command goes on" in stderr
    assert stderr.count("KeyboardInterrupt") == 1, stderr
    assert (tmp_path / "workers.log").read_text() == ""  # the workers leave quietly
    noted = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    done = {(line["task"], line["seed"]) for line in noted}
    assert 3 <= len(done) == len(noted) < 12

    outcomes = run(tmp_path, backend=TWO)
    assert sum(outcome.kept for outcome in outcomes) == 10
    counts = played(tmp_path)
    assert all(counts[job] == 1 for job in done) and sum(counts.values()) <= 12 + 2
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 12


def test_workers_do_not_outlive_a_killed_run(tmp_path: Path) -> None:
    process = start_script(tmp_path)
    pids = {pid for _, _, pid in wait_for_starts(tmp_path, 5)}
    process.kill()
    process.communicate(timeout=30)
    wait_until_ended(pids, 10)
    outcomes = run(tmp_path, backend=TWO)
    assert sum(outcome.kept for outcome in outcomes) == 10
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 12


def staged_worker(out: str) -> SmallWorker:
    """A worker whose start has a stage, and prints what only its log is for."""
    with stage("starting the simulator of the test"):
        print("the simulator is talkative", file=sys.stderr)
    return SmallWorker(out)


def test_the_stages_of_workers_are_shown_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with open_journal(tmp_path) as journal:
        run_jobs(JOBS[:4], partial(staged_worker, str(tmp_path)), journal, TWO)
    lines = capfd.readouterr().err.splitlines()
    assert lines.count("starting the simulator of the test") == 1 and "the simulator is talkative" not in lines
    assert "the simulator is talkative" in (tmp_path / "workers.log").read_text()
    assert lines[-1].startswith("4 of 4 episodes, in ")
