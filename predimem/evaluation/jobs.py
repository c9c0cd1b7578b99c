"""Long-lived worker processes that play episodes, and a parent that survives their deaths.

A worker is spawned, builds its player once and plays one job at a time. When it dies while
playing (a segmentation fault in the simulator, the kernel's out-of-memory killer), that episode
is an `error` and another worker takes its place.
"""

from __future__ import annotations

import faulthandler
import json
import math
import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from predimem.evaluation.ticks import TickStatistics
from predimem.evaluation.video import Film, KeyframeThumbnails, VideoRecorder
from predimem.interfaces import Subscriber
from predimem.recording import TraceRecorder
from predimem.types import EpisodeResult

Row = dict[str, Any]
LOG = "workers.log"
BUILD_TIMEOUT_S = 1800.0


class EvaluationError(ValueError):
    """The evaluation cannot go on or cannot be trusted; says why and how to mend it."""


class Player(Protocol):
    """Plays episodes in one process: builds environments and models once each and keeps them."""

    def play(self, task: str, agent: str, seed: int, subscribers: Sequence[Subscriber]) -> EpisodeResult: ...

    def provenance(self) -> dict[str, Any]:
        """Plain JSON data: what results depend on (`suite_version`, weights' hashes, config). Cheap."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Job:
    """One episode to play. film: also write its video and its keyframes' thumbnails. trace: write its trace."""

    task: str
    agent: str
    seed: int
    film: Film | None = None
    trace: bool = True

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.agent, self.seed

    def file(self, folder: str, suffix: str) -> str:
        """Where something of this episode is kept, relative to the evaluation's folder."""
        return f"{folder}/{self.task}/{self.agent}/seed{self.seed:010d}{suffix}"


def play_job(player: Player, job: Job, out: Path) -> Row:
    """Play one episode, write its trace and its video under `out`, and sum it up as plain data."""
    recorder, statistics, thumbnails = TraceRecorder(), TickStatistics(), KeyframeThumbnails()
    subscribers: list[Subscriber] = [statistics]
    if job.trace:
        subscribers.append(recorder)
    video = None
    if job.film is not None:
        video = job.file("videos", ".mp4")
        title = f"{job.task}   agent {job.agent}   seed {job.seed}"
        subscribers += [thumbnails, VideoRecorder(out / video, job.film, title=title)]
    began_s = time.perf_counter()
    try:
        result = player.play(job.task, job.agent, job.seed, subscribers)
    except Exception as error:
        message = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        result = EpisodeResult(job.task, job.agent, job.seed, "error", 0, message=message)
    trace = job.file("traces", ".json") if job.trace else None
    if trace is not None:
        data = {"task": job.task, "agent": job.agent, "seed": job.seed} | recorder.trace
        _write_json(out / trace, data | {"thumbnails": thumbnails.as_json()})
    if video is not None and not (out / video).is_file():
        video = None  # the episode crashed before its first step
    files = {"trace": trace, "video": video}
    return episode_row(result) | statistics.numbers | {"wall_s": time.perf_counter() - began_s} | files


def episode_row(result: EpisodeResult) -> Row:
    """The result as JSON data: numbers that JSON does not have (NaN, infinity) become None."""
    return {
        "task": result.task,
        "agent": result.agent,
        "seed": result.seed,
        "status": result.status,
        "steps": result.steps,
        "stages_passed": result.stages_passed,
        "stages_total": result.stages_total,
        "message": result.message,
        "metrics": {name: x if math.isfinite(x) else None for name, x in result.metrics.items()},
    }


class WorkerPool:
    """Plays jobs in up to `size` processes. `start` before `play`; `close` when done."""

    def __init__(self, make_player: Callable[[], Player], out: Path, size: int, timeout_s: float):
        self._make_player = make_player
        self._out = out
        self._size = size
        self._timeout_s = timeout_s
        self._workers: list[_Worker] = []
        self._provenance: dict[str, Any] | None = None

    def start(self) -> dict[str, Any]:
        """Start the first worker; its player's provenance. Raises EvaluationError if it cannot be built."""
        self._spawn()
        while self._provenance is None:
            self._receive(1.0)
        return self._provenance

    def play(self, jobs: Sequence[Job]) -> Iterator[Row]:
        """One row for each job, in the order in which they end."""
        queue = _Queue(jobs)
        while queue or any(w.job for w in self._workers):
            while len(self._workers) < self._size and len(self._workers) < queue.left + self._playing:
                self._spawn()
            for worker in list(self._workers):
                if worker.idle and queue:
                    job = queue.take(worker.task)
                    if not worker.send(job, self._timeout_s):  # it died while it had nothing to do
                        queue.put_back(job)
                        self._drop(worker)
            yield from self._receive(1.0)

    def close(self, kill: bool = False) -> None:
        """End the workers; `kill` does not wait for the episodes being played."""
        for worker in self._workers:
            worker.end(kill)
        self._workers = []

    @property
    def _playing(self) -> int:
        return sum(w.job is not None for w in self._workers)

    def _spawn(self) -> None:
        self._workers.append(_Worker(self._make_player, self._out))

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.end(kill=True)

    def _receive(self, timeout_s: float) -> list[Row]:
        rows = []
        ready = wait([w.connection for w in self._workers], timeout_s)
        for worker in [w for w in self._workers if w.connection in ready]:
            try:
                kind, payload = worker.connection.recv()
            except (EOFError, OSError):
                rows += self._bury(worker, "died ({})")
                continue
            if kind == "broken":
                raise EvaluationError(f"the player could not be built in the worker process:\n{payload}")
            worker.free()
            if kind == "played":
                rows.append(payload)
            elif self._provenance is not None and payload != self._provenance:
                raise EvaluationError("worker processes disagree: a config or weights changed during the run")
            else:
                self._provenance = payload
        for worker in [w for w in self._workers if w.overdue]:
            worker.process.kill()
            limit_s = self._timeout_s if worker.started else BUILD_TIMEOUT_S
            rows += self._bury(worker, f"was stopped after {limit_s:g} s without an answer ({{}})")
        return rows

    def _bury(self, worker: _Worker, how: str) -> list[Row]:
        job, started = worker.job, worker.started
        self._drop(worker)
        how = how.format(_cause(worker.process.exitcode))
        if not started:
            raise EvaluationError(
                f"a worker process {how} while it built the player; {self._out / LOG} may say why "
                "(nothing there: out of memory? then use fewer --workers)"
            )
        if job is None:
            return []
        message = f"the worker process {how} while it played this episode (see {LOG})"
        result = EpisodeResult(job.task, job.agent, job.seed, "error", 0, message=message)
        files = {"trace": None, "video": None}
        return [episode_row(result) | TickStatistics().numbers | {"wall_s": None} | files]


class _Worker:
    """The parent's end of one process."""

    def __init__(self, make_player: Callable[[], Player], out: Path):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, make_player, str(out)), daemon=True)
        with _interrupts_blocked():  # Ctrl-C is for the parent to handle
            self.process.start()
        theirs.close()
        self.started = False
        self.job: Job | None = None
        self.task: str | None = None
        self._deadline_s: float | None = time.monotonic() + BUILD_TIMEOUT_S

    @property
    def idle(self) -> bool:
        return self.started and self.job is None

    @property
    def overdue(self) -> bool:
        return self._deadline_s is not None and time.monotonic() > self._deadline_s

    def send(self, job: Job, timeout_s: float) -> bool:
        try:
            self.connection.send(job)
        except OSError:
            return False
        self.job, self.task, self._deadline_s = job, job.task, time.monotonic() + timeout_s
        return True

    def free(self) -> None:
        self.started, self.job, self._deadline_s = True, None, None

    def end(self, kill: bool) -> None:
        if not kill:
            try:
                self.connection.send(None)
                self.process.join(20)
            except OSError:
                pass
        self.connection.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


class _Queue:
    """Jobs in order, but a worker stays with its task: another task's environment costs a build."""

    def __init__(self, jobs: Sequence[Job]):
        self._by_task: dict[str, deque[Job]] = {}
        self._workers_at: dict[str, int] = {}
        for job in jobs:
            self._by_task.setdefault(job.task, deque()).append(job)

    def __bool__(self) -> bool:
        return self.left > 0

    @property
    def left(self) -> int:
        return sum(map(len, self._by_task.values()))

    def take(self, task: str | None) -> Job:
        if task is None or not self._by_task.get(task):
            waiting = [t for t, jobs in self._by_task.items() if jobs]
            task = min(waiting, key=lambda t: self._workers_at.get(t, 0))  # the first of the least served
            self._workers_at[task] = self._workers_at.get(task, 0) + 1
        return self._by_task[task].popleft()

    def put_back(self, job: Job) -> None:
        self._by_task[job.task].appendleft(job)


def _serve(connection: Connection, make_player: Callable[[], Player], out: str) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _redirect_output(Path(out) / LOG)
    try:
        player = make_player()
        connection.send(("ready", json.loads(json.dumps(player.provenance()))))
    except Exception:
        connection.send(("broken", traceback.format_exc()))
        return
    try:
        while (job := connection.recv()) is not None:
            connection.send(("played", play_job(player, job, Path(out))))
    except (EOFError, BrokenPipeError):
        pass  # the parent is gone
    finally:
        player.close()


def _redirect_output(log: Path) -> None:
    """Send what libraries print (the simulator is talkative) and the trace of a crash to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """For a child that is being spawned: it inherits the mask, so Ctrl-C never hits its imports."""
    resource_tracker.ensure_running()  # starting it later, inside the block, would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cause(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"


def _write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
