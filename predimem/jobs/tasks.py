"""What is run: a job is a task and a seed, a worker plays it, an outcome says what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    task: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    kept: whether its episode is stored.
    cause: why it was discarded, "" if it was not; outcomes are counted by it, so it names a kind.
    steps: the length of the episode.
    seconds: the wall time that it took.
    report: JSON data for whoever wants to know more (timings per stage, retries, ...).
    """

    task: str
    seed: int
    kept: bool
    cause: str = ""
    steps: int = 0
    seconds: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kept == bool(self.cause):
            raise ValueError(f"{self.job}: a cause is for the discarded, got kept={self.kept}, cause={self.cause!r}")

    @property
    def job(self) -> Job:
        return Job(self.task, self.seed)

    @property
    def is_error(self) -> bool:
        """The program failed, not the robot."""
        return self.cause.startswith((ERROR, DIED))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


ERROR = "error: "
DIED = "worker died"


class Worker(Protocol):
    """Lives in one process and owns one environment."""

    def play(self, job: Job) -> Outcome:
        """Play the job and store its episode, if it is kept, atomically before returning."""
        ...

    def close(self) -> None: ...


MakeWorker = Callable[[], Worker]  # picklable; called once in each process


class WorkerHandler:
    """A worker as pools know it (`predimem.jobs.pool.JobHandler`)."""

    def __init__(self, make_worker: MakeWorker):
        self._worker = make_worker()

    def greeting(self) -> None:
        return None

    def do(self, job: Job) -> Outcome:
        outcome = self._worker.play(job)
        if outcome.job != job:
            raise ValueError(f"the worker was given {job} and answered with an outcome of {outcome.job}")
        return outcome

    def close(self) -> None:
        self._worker.close()
