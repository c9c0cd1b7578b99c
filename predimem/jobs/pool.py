"""Jobs for workers that may die: who gets which job, and what becomes of it.

A worker lives elsewhere (another process, another machine), is built once and does one job at a time.
Nothing waits at a worker, so its death costs the job it was doing and no other.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from predimem.core.faults import setup_fault


class WorkerError(ValueError):
    """Workers cannot be built, or cannot be trusted; says why and how to mend it."""


class WorkerGone(Exception):
    """The worker does not exist any more; says how it ended ("SIGKILL")."""


class HasTask(Protocol):
    @property
    def task(self) -> str: ...


JobT = TypeVar("JobT", bound=HasTask)


class JobHandler(Protocol):
    """What a worker runs: it is built once, and handles one job at a time."""

    def greeting(self) -> Any:
        """What the answers depend on; all workers must give the same."""
        ...

    def do(self, job: Any) -> Any: ...

    def close(self) -> None: ...


MakeHandler = Callable[[], JobHandler]
# With "built" comes the greeting, with "done" the answer, with "unfit" the fault of the set-up that was met (an
# exception), else the exception in building or doing (`describe`).
Message = tuple[Literal["built", "broken", "done", "raised", "unfit"], Any]


def describe(error: Exception) -> str:
    """An exception as text that can travel: its type and message, then the traceback."""
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error))


def failed(error: Exception, doing: Literal["broken", "raised"]) -> Message:
    """The message of a worker for an exception. The traceback of a fault of the set-up goes to its standard error."""
    fault = setup_fault(error)
    if fault is None:
        return doing, describe(error)
    with contextlib.suppress(OSError):  # its disk may be full
        traceback.print_exception(error)
    return "unfit", fault


class Handle(Protocol):
    """The near end of one worker. It sends one message once it is built and one for each job."""

    def send(self, job: Any) -> None:
        """Raises WorkerGone."""
        ...

    def receive(self) -> Message:
        """Raises WorkerGone."""
        ...

    def end(self, kill: bool) -> None:
        """kill: at once, whatever it is doing. May be called again, and of a worker that is gone."""
        ...


class Backend(Protocol):
    """Where workers live.

    build_timeout_s: how long building one may take; None: as long as it likes.
    hint: where to look when a worker died while it was built.
    """

    @property
    def build_timeout_s(self) -> float | None: ...

    @property
    def hint(self) -> str: ...

    def spawn(self) -> Handle: ...

    def wait(self, handles: Sequence[Any], timeout_s: float) -> list[Any]:
        """Those of `handles` that have a message or are gone, as soon as there is one."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Reply(Generic[JobT]):
    """What became of a job.

    kind: it was done, it raised, or its worker died.
    value: the job's answer; what it raised (`describe`); or how its worker died.
    """

    job: JobT
    kind: Literal["done", "raised", "died"]
    value: Any


class JobQueue(Generic[JobT]):
    """Jobs in order, but a worker stays with its task: another task's environment costs a build."""

    def __init__(self, jobs: Sequence[JobT]):
        self._by_task: dict[str, deque[JobT]] = {}
        self._workers_at: dict[str, int] = {}
        for job in jobs:
            self._by_task.setdefault(job.task, deque()).append(job)

    def __bool__(self) -> bool:
        return self.left > 0

    @property
    def left(self) -> int:
        return sum(map(len, self._by_task.values()))

    def take(self, task: str | None) -> JobT:
        """The next job for a worker whose last job was of `task`."""
        if task is None or not self._by_task.get(task):
            waiting = [t for t, jobs in self._by_task.items() if jobs]
            task = min(waiting, key=lambda t: self._workers_at.get(t, 0))  # the first of the least served
            self._workers_at[task] = self._workers_at.get(task, 0) + 1
        return self._by_task[task].popleft()

    def put_back(self, job: JobT) -> None:
        """It is the next of its task."""
        self._by_task[job.task].appendleft(job)


@dataclass(eq=False)
class _Worker:
    handle: Any
    deadline_s: float | None
    built: bool = False
    job: Any = None
    task: str | None = None

    @property
    def overdue(self) -> bool:
        return self.deadline_s is not None and time.monotonic() > self.deadline_s


class Pool:
    """Up to `size` workers, spawned when there is work. `close` when done.

    timeout_s: a worker without an answer for so long is killed.
    build_attempts: so many workers in a row may die while they are built; the last one raises WorkerError, as an
    exception in building does.

    A fault of the set-up that a worker meets, whether in building or in a job, is raised here: SetupError or OSError.
    """

    def __init__(self, backend: Backend, size: int, timeout_s: float, build_attempts: int = 1):
        if size < 1:
            raise ValueError(f"workers: expected at least 1, got {size}")
        self._backend = backend
        self._size = size
        self._timeout_s = timeout_s
        self._build_attempts = build_attempts
        self._died_unbuilt = 0
        self._workers: list[_Worker] = []
        self._greetings: list[Any] = []

    def start(self) -> Any:
        """Build the first worker; its greeting."""
        while not self._greetings:
            if not self._workers:
                self._spawn()
            list(self._receive())
        return self._greetings[0]

    def run(self, queue: JobQueue[JobT]) -> Iterator[Reply[JobT]]:
        """Empty the queue: one reply for each job, in the order in which they end.

        A job may be put back into the queue when its reply came.
        """
        while queue or self._busy:
            while len(self._workers) < min(self._size, queue.left + self._busy):
                self._spawn()
            for worker in [w for w in self._workers if w.built and w.job is None]:
                if queue:
                    self._hand_out(queue, worker)
            yield from self._receive()

    def close(self, kill: bool = False) -> None:
        """End the workers; `kill` does not wait for what they are doing."""
        try:
            for worker in self._workers:
                worker.handle.end(kill or not worker.built)
        finally:
            self._workers = []
            self._backend.close()

    @property
    def _busy(self) -> int:
        return sum(w.job is not None for w in self._workers)

    def _spawn(self) -> None:
        handle = self._backend.spawn()
        self._workers.append(_Worker(handle, _deadline(self._backend.build_timeout_s)))

    def _hand_out(self, queue: JobQueue[Any], worker: _Worker) -> None:
        job = queue.take(worker.task)
        try:
            worker.handle.send(job)
        except WorkerGone:  # it died while it had nothing to do
            queue.put_back(job)
            self._drop(worker)
        else:
            worker.job, worker.task, worker.deadline_s = job, job.task, _deadline(self._timeout_s)

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.handle.end(kill=True)

    def _receive(self, timeout_s: float = 1.0) -> Iterator[Reply[Any]]:
        """What has come meanwhile. Faults are raised after what the other workers have done, the first of them."""
        faults: list[Exception] = []
        ready = self._backend.wait([w.handle for w in self._workers], timeout_s)
        late = [w for w in self._workers if w.overdue and w.handle not in ready]  # before the time that replies take
        for worker in [w for w in self._workers if w.handle in ready]:
            try:
                kind, value = worker.handle.receive()
            except WorkerGone as gone:
                yield from self._bury(worker, f"died ({gone})", faults)
                continue
            if kind in ("unfit", "broken"):
                faults.append(value if kind == "unfit" else WorkerError(f"a worker could not be built:\n{value}"))
                continue
            job, worker.built, worker.job, worker.deadline_s = worker.job, True, None, None
            if kind == "built":
                self._greet(value, faults)
                continue
            if kind == "raised":  # what an exception leaves behind is not trusted
                self._drop(worker)
            yield Reply(job, kind, value)
        for worker in late:
            limit_s = self._timeout_s if worker.built else self._backend.build_timeout_s
            yield from self._bury(worker, f"was stopped after {limit_s:g} s without an answer", faults)
        if faults:
            raise faults[0]

    def _greet(self, greeting: Any, faults: list[Exception]) -> None:
        self._died_unbuilt = 0
        self._greetings.append(greeting)
        if greeting != self._greetings[0]:
            faults.append(WorkerError("workers disagree: a config or weights changed during the run"))

    def _bury(self, worker: _Worker, how: str, faults: list[Exception]) -> list[Reply[Any]]:
        self._drop(worker)
        if not worker.built:
            self._died_unbuilt += 1
            if self._died_unbuilt >= self._build_attempts:
                text = f"a worker {how} while it was built; {self._backend.hint} may say why "
                faults.append(WorkerError(f"{text}(nothing there: out of memory? then use fewer workers)"))
        return [Reply(worker.job, "died", how)] if worker.job is not None else []


def _deadline(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s
