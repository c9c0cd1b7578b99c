"""A worker of few dependencies: it stores real episodes of four steps, and can be told to fail."""

from __future__ import annotations

import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.files import AtomicWrite
from predimem.core.weight_files import WeightsError
from predimem.jobs.journal import DataJournal
from predimem.jobs.tasks import Job, Outcome

STEPS = 4


@dataclass(frozen=True)
class SmallWorker:
    """Notes in `starts.txt` which job it begins and as which process. Seeds divisible by 7 are failures.

    crash_seed kills the worker whenever it is played, crash_after_seed once its episode is stored;
    error_seeds raise; hang_seed begins its file and does not end. file_bytes: the system lets files grow no larger
    than this, as on a full disk. together: an episode lasts until so many workers have begun one.
    """

    out: str
    delay_s: float = 0.0
    crash_seed: int | None = None
    crash_after_seed: int | None = None
    error_seeds: tuple[int, ...] = ()
    hang_seed: int | None = None
    file_bytes: int | None = None
    together: int = 1

    def play(self, job: Job) -> Outcome:
        if job.seed == self.hang_seed:
            AtomicWrite(episode_path(self.out, job.task, job.seed)).partial.touch()
        with open(f"{self.out}/starts.txt", "a") as file:
            file.write(f"{job.task} {job.seed} {os.getpid()}\n")
        while len({process for _, _, process in starts(Path(self.out))}) < self.together:
            time.sleep(0.02)
        time.sleep(3600 if job.seed == self.hang_seed else self.delay_s)
        if job.seed == self.crash_seed:
            os.kill(os.getpid(), signal.SIGKILL)
        if job.seed in self.error_seeds:
            raise LookupError(f"no {job.seed} in the drawer: look elsewhere")
        if self.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, resource.RLIM_INFINITY))
        if job.seed % 7 == 0:
            return Outcome(job.task, job.seed, kept=False, cause="dropped the butter", seconds=self.delay_s)
        save_episode(episode_path(self.out, job.task, job.seed), small_episode(job))
        if job.seed == self.crash_after_seed:
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(job.task, job.seed, kept=True, steps=STEPS, seconds=self.delay_s, report={"retries": 1})

    def close(self) -> None:
        Path(self.out, f"closed{os.getpid()}").touch()


def small_episode(job: Job) -> Episode:
    return Episode(
        benchmark="test",
        task=job.task,
        seed=job.seed,
        instruction="wait",
        control_hz=20.0,
        success=True,
        images={"camera": np.full((STEPS, 8, 8, 3), job.seed % 256, np.uint8)},
        state=np.zeros((STEPS, 7), np.float32),
        actions=np.full((STEPS, 7), job.seed, np.float32),
        subtasks=(SubtaskSpan(0, STEPS, "wait"),),
        keyframes=(0,),
    )


def broken_worker() -> SmallWorker:
    raise FileNotFoundError("no robot description")


def unfit_worker() -> SmallWorker:
    raise WeightsError("no weights for 'planner'; train them")


def dying_worker() -> SmallWorker:
    os._exit(7)


def open_journal(out: Path, workers: int = 1, speed: float = 0.1) -> DataJournal:
    return DataJournal(out, {"workers": workers, "speed": speed}, may_differ=("workers",))


def starts(out: Path) -> list[tuple[str, int, int]]:
    """(task, seed, process) of every beginning."""
    path = out / "starts.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(task, int(seed), int(process)) for task, seed, process in map(str.split, lines)]


def wait_for_starts(out: Path, count: int, timeout_s: float = 60.0) -> list[tuple[str, int, int]]:
    deadline = time.monotonic() + timeout_s
    while len(starts(out)) < count:
        assert time.monotonic() < deadline, f"only {starts(out)} after {timeout_s} s"
        time.sleep(0.02)
    return starts(out)
