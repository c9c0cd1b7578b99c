"""Run jobs to their end: on processes of this machine or on Ray, resumed, counted, retried when workers die."""

from __future__ import annotations

import functools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from predimem.core.faults import SetupError
from predimem.core.files import check_folder
from predimem.jobs.journal import DataJournal
from predimem.jobs.pool import JobQueue, Pool, Reply, WorkerError
from predimem.jobs.processes import Processes
from predimem.jobs.progress import Progress
from predimem.jobs.ray_workers import RayWorkers
from predimem.jobs.tasks import DIED, ERROR, Job, MakeWorker, Outcome, WorkerHandler

ATTEMPTS = 3  # that many workers may die while they play a job
ERRORS_IN_A_ROW = 5  # the next ones would fail too
GOES_ON = "when that is mended, the same command goes on"
RETRY = "when that is mended, the same command with --retry-errors plays them again"
SHARED_FOLDER_WAIT_S = 60.0  # network file systems show new files late


@dataclass(frozen=True)
class BackendConfig:
    """Where workers run.

    workers: how many there are.
    ray: None for processes of this machine; "local" for a Ray cluster of this machine, started for this run; else the
    address of a cluster ("auto", "host:6379").
    cpus_per_worker, gpus_per_worker: what Ray sets aside for each.
    timeout_s: a worker that plays one job for so long counts as dead.
    """

    workers: int = 1
    ray: str | None = None
    cpus_per_worker: float = 1.0
    gpus_per_worker: float = 0.0
    timeout_s: float = 1800.0

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"workers: expected at least 1, got {self.workers}")
        if self.timeout_s <= 0:
            raise ValueError(f"timeout_s: expected more than 0, got {self.timeout_s}")


def run_jobs(
    jobs: Sequence[Job],
    make_worker: MakeWorker,
    journal: DataJournal,
    backend: BackendConfig | None = None,
    progress: bool = True,
    retry_errors: bool = False,
) -> list[Outcome]:
    """Play the jobs that the journal lacks, and return the outcomes of all of them, in their order.

    A job whose worker dies is played again, and discarded with the cause "worker died 3 times" when that goes on. An
    exception in `play` discards its job with the cause "error: <its type>", its traceback goes to the journal's folder
    `errors`, and the rest is played; errors are told of at the end, and WorkerError is raised after 5 in a row. Neither
    is a failure of the robot.
    A fault of the set-up (`predimem.core.faults`) is no outcome of the job that meets it: it is raised, as SetupError
    or OSError, and the same call goes on with that job. WorkerError is also raised if every job has ended in an error.
    After Ctrl-C (KeyboardInterrupt) or a crash the same call goes on; only running episodes are lost.

    make_worker: it must be picklable, and is called once in each worker.
    progress: show it on standard error.
    retry_errors: play jobs again that ended in an error or with dead workers.
    """
    twice = [job for job, count in Counter(jobs).items() if count > 1]
    if twice:
        raise ValueError(f"each job may be listed once, got {twice[0]} more than once")
    missing = set(journal.missing(jobs, retry_errors))
    if missing:
        done = [journal.outcomes[job] for job in jobs if job not in missing]
        backend = backend or BackendConfig()
        bar = Progress(len(jobs), done, backend.workers) if progress else None
        try:
            _play([job for job in jobs if job in missing], make_worker, journal, backend, bar)
        except KeyboardInterrupt:
            print("\ninterrupted: the same command goes on", file=sys.stderr)
            raise
        except (SetupError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                error.filename = str(journal.out)
            done = sum(job in journal.outcomes for job in jobs)
            print(f"\nstopped with {done} of {len(jobs)} episodes: {GOES_ON}", file=sys.stderr)
            raise
        finally:
            if bar is not None:
                bar.close()
    outcomes = [journal.outcomes[job] for job in jobs]
    errors = [outcome for outcome in outcomes if outcome.is_error]
    if errors:
        told = (
            f"{len(errors)} of {len(jobs)} episodes ended in an error, the first one {_told(errors[0])}. See "
            f"{journal.out / 'errors'}; {RETRY}"
        )
        if len(errors) == len(jobs):
            raise WorkerError(told)
        print(told, file=sys.stderr)
    return outcomes


def _told(error: Outcome) -> str:
    return f"{error.job}: {error.report.get('message', error.cause)}"


def _play(
    jobs: list[Job], make_worker: MakeWorker, journal: DataJournal, backend: BackendConfig, bar: Progress | None
) -> None:
    """Play `jobs`, noting every outcome in the journal."""
    pool = _make_pool(make_worker, journal, backend)
    errors_in_a_row: list[Outcome] = []
    seen_kept = False
    try:
        for outcome in _outcomes(pool, JobQueue(jobs), journal):
            if outcome.kept and not seen_kept:
                _check_shared(journal, outcome)
                seen_kept = True
            if bar is not None:
                bar.add(outcome)
                if outcome.is_error:
                    bar.note(f"{_told(outcome)}; see {journal.error_path(outcome.job)}")
            errors_in_a_row = [*errors_in_a_row, outcome] if outcome.is_error else []
            if len(errors_in_a_row) == ERRORS_IN_A_ROW:
                raise WorkerError(
                    f"{ERRORS_IN_A_ROW} errors in a row, the first one {_told(errors_in_a_row[0])}. See "
                    f"{journal.out / 'errors'}; {RETRY}"
                )
    except BaseException:
        pool.close(kill=True)
        journal.remove_unfinished()
        raise
    pool.close()


def _make_pool(make_worker: MakeWorker, journal: DataJournal, backend: BackendConfig) -> Pool:
    make_handler = functools.partial(WorkerHandler, make_worker)
    if backend.ray is None:
        where = Processes(make_handler, journal.out)
    else:
        where = RayWorkers(make_handler, backend.ray, backend.workers, backend.cpus_per_worker, backend.gpus_per_worker)
    return Pool(where, backend.workers, backend.timeout_s, build_attempts=ATTEMPTS)


def _outcomes(pool: Pool, queue: JobQueue[Job], journal: DataJournal) -> Iterator[Outcome]:
    """Each job's outcome, already in the journal."""
    deaths: dict[Job, list[str]] = {}
    for reply in pool.run(queue):
        job = reply.job
        if reply.kind == "died":
            recovered = journal.recover(job)  # it may have died after it had stored the episode
            if recovered is not None:
                yield recovered
                continue
            check_folder(journal.out)  # a full disk crashes HDF5; that is no fault of the job
            deaths.setdefault(job, []).append(reply.value)
            if len(deaths[job]) < ATTEMPTS:
                queue.put_back(job)
                continue
        outcome, traceback = _judge(reply, deaths.get(job, []))
        journal.add(outcome, traceback)
        yield outcome


def _judge(reply: Reply[Job], deaths: list[str]) -> tuple[Outcome, str]:
    """The outcome of a reply, and a traceback or "". deaths: how this job's workers died."""
    job = reply.job
    if reply.kind == "done":
        return reply.value, ""
    if reply.kind == "died":
        cause = f"{DIED} {ATTEMPTS} times"
        text = "\n".join(f"{cause}:" if i == 0 else f"it {how}" for i, how in enumerate(["", *deaths]))
        return Outcome(job.task, job.seed, kept=False, cause=cause, report={"deaths": deaths}), text
    message = reply.value.splitlines()[0][:500]
    cause = f"{ERROR}{message.split(':')[0]}"  # the type alone: outcomes are counted by their cause
    return Outcome(job.task, job.seed, kept=False, cause=cause, report={"message": message}), reply.value


def _check_shared(journal: DataJournal, outcome: Outcome) -> None:
    """Raises WorkerError if an episode that a worker stored cannot be seen here."""
    path = journal.episode_path(outcome.job)
    patience_s = time.monotonic() + SHARED_FOLDER_WAIT_S
    while not path.exists():
        if time.monotonic() > patience_s:
            raise WorkerError(
                f"a worker says that it stored {outcome.job}, but {path} is not there: the folder of the "
                "episodes has to be one that all machines share, under the same path"
            )
        time.sleep(0.5)
