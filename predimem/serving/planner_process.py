"""S2 in a process of its own: it can crash, hang or hold its interpreter's lock, and S1 goes on.

Snapshots and plans cross as plain data; nothing that a client sent is ever unpickled.
"""

from __future__ import annotations

import logging
import multiprocessing
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from predimem.core.interfaces import Planner, StreamingPlanner
from predimem.core.types import MemorySnapshot, Plan
from predimem.jobs.pool import WorkerGone
from predimem.jobs.processes import ProcessHandle
from predimem.serving import wire
from predimem.serving.config import PlannerProcessConfig
from predimem.serving.planner_wire import Job, JobReader, JobWriter

log = logging.getLogger(__name__)
LOG_FILE = "planner.log"
MAX_PAUSE_S = 60.0
Flag = Any  # a number in memory that both processes see
State = Literal["starting", "ready", "restarting", "stopped"]


class PlannerGone(RuntimeError):
    """There is no planner at the moment; says why."""


class PlannerHandler:
    """The far end: it plans batches. One snapshot that cannot be planned does not spoil the others' plans."""

    def __init__(self, make_planner: Callable[[], Planner], warm_up: bytes, leave_off: Flag):
        planner = make_planner()
        self._planner, self._leave_off, self._reader = planner, leave_off, JobReader()
        self._streaming = planner if isinstance(planner, StreamingPlanner) else None
        job = JobReader().read(warm_up)
        planner.plan(job.asked[0])
        self._forget([job.asked[0].episode_id])

    def greeting(self) -> bool:
        """Whether the planner can work ahead."""
        return self._streaming is not None

    def do(self, job: bytes) -> bytes:
        read = self._reader.read(job)
        self._forget(read.forget)
        if read.upcoming is not None and self._streaming is not None:
            try:
                self._streaming.prepare(read.upcoming, lambda: self._leave_off.value != 0)
            except Exception:
                log.exception("a planner cannot work ahead")
        return wire.pack([_plan_data(answer) for answer in self._plan(list(read.asked))])

    def close(self) -> None:
        pass

    def _forget(self, episodes: Sequence[str]) -> None:
        if self._streaming is None:
            return
        for episode_id in episodes:
            self._streaming.forget(episode_id)

    def _plan(self, snapshots: list[MemorySnapshot]) -> Sequence[Plan | Exception]:
        batch = getattr(self._planner, "plan_batch", None)
        if batch is not None and len(snapshots) > 1:
            try:
                answers: Sequence[Plan | Exception] = list(batch(snapshots))
                for answer, snapshot in zip(answers, snapshots, strict=True):
                    if isinstance(answer, Plan) and answer.episode_id != snapshot.episode_id:
                        raise ValueError(f"the plan of {snapshot.episode_id} is about {answer.episode_id}")
                return answers
            except Exception:
                log.exception("a batch of %d failed; its snapshots are planned one by one", len(snapshots))
        one_by_one: list[Plan | Exception] = []
        for snapshot in snapshots:
            try:
                one_by_one.append(self._planner.plan(snapshot))
            except Exception as error:
                log.exception("a snapshot cannot be planned")
                one_by_one.append(error)
        return one_by_one


class PlannerProcess:
    """The near end. `plan` and `prepare` are called by one thread, and start the next process where one has ended; a
    monitor ends one that hangs.

    on_restart is told why a process was lost.
    """

    def __init__(
        self,
        make_planner: Callable[[], Planner],
        warm_up: MemorySnapshot,
        config: PlannerProcessConfig,
        on_restart: Callable[[str], object],
    ):
        folder = Path(config.log_dir or tempfile.mkdtemp(prefix="predimem-serve-"))
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / LOG_FILE
        self._leave_off: Flag = multiprocessing.get_context("spawn").Value("b", 0, lock=False)
        warm_up_job = JobWriter().write(Job(asked=[warm_up]))
        self._make_handler = partial(PlannerHandler, make_planner, warm_up_job, self._leave_off)
        self._writer, self._forgotten = JobWriter(), deque[str]()
        self.works_ahead = False
        self._config = config
        self._on_restart = on_restart
        self._handle: ProcessHandle | None = None
        self._overdue_s: float | None = None
        self._pause_s = config.restart_s
        self._stop = threading.Event()
        self.state: State = "starting"
        threading.Thread(target=self._monitor, name="s2-monitor", daemon=True).start()

    @property
    def pid(self) -> int | None:
        handle = self._handle
        return None if handle is None else handle.process.pid

    def start(self) -> None:
        """Build the process and wait until it has planned once. Raises PlannerGone with the cause."""
        handle = ProcessHandle(self._make_handler, str(self.log_file), ignores_sigterm=True)
        self._handle = handle
        self._overdue_s = time.monotonic() + self._config.build_s
        if self._stop.is_set():
            handle.process.kill()
        try:
            kind, value = handle.receive()
        except WorkerGone as gone:
            raise PlannerGone(
                f"the planner's process ended while it was started ({gone}), see {self.log_file}"
            ) from None
        finally:
            self._overdue_s = None
        if kind != "built":
            handle.end(kill=True)
            raise PlannerGone(f"the planner cannot be started: {str(value).splitlines()[0]}")
        self._writer.reset()
        self.works_ahead = bool(value)
        self.state = "ready"

    def forget(self, episode_id: str) -> None:
        """There will be no more questions about an episode. Any thread may say so; the next job passes it on."""
        self._forgotten.append(episode_id)

    def prepare(self, upcoming: MemorySnapshot) -> None:
        """Work ahead until it is done, or until `leave_off`. Raises PlannerGone."""
        self._do(Job(upcoming=upcoming))

    def leave_off(self) -> None:
        """End a `prepare` under way soon. Any thread may say so."""
        self._leave_off.value = 1

    def go_on(self) -> None:
        """`prepare` may be called again."""
        self._leave_off.value = 0

    def plan(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan | Exception]:
        """A plan, or why there is none, for each snapshot. Raises PlannerGone; the process is then started anew."""
        plans = self._do(Job(asked=snapshots))
        self._pause_s = self._config.restart_s
        return plans

    def _do(self, job: Job) -> list[Plan | Exception]:
        handle = self._handle
        if handle is None or self.state != "ready":
            raise PlannerGone("the planner is being restarted")
        job = replace(job, forget=[self._forgotten.popleft() for _ in range(len(self._forgotten))])
        self._overdue_s = time.monotonic() + self._config.timeout_s
        try:
            handle.send(self._writer.write(job))
            kind, value = handle.receive()
        except WorkerGone as gone:
            self._restart(f"the planner's process ended ({gone})")
            raise PlannerGone("the planner's process ended; it is being restarted") from None
        finally:
            self._overdue_s = None
        if kind != "done":
            self._writer.reset()  # nobody knows which images have arrived
            raise PlannerGone("the planner raised an error")
        return [_read_plan(data) for data in wire.unpack(value, wire.NO_LIMIT, wire.NO_LIMIT)]

    def close(self) -> None:
        self._stop.set()
        self.state = "stopped"
        if self._handle is not None:
            self._handle.process.kill()
            self._handle.process.join()

    def _monitor(self) -> None:
        while not self._stop.wait(0.1):
            overdue_s, handle = self._overdue_s, self._handle
            if overdue_s is not None and time.monotonic() > overdue_s and handle is not None:
                log.error("the planner hangs; its process is ended")
                self._overdue_s = None
                handle.process.kill()

    def _restart(self, why: str) -> None:
        if self._stop.is_set():
            return
        self.state = "restarting"
        self._on_restart(why)
        threading.Thread(target=self._start_again, name="s2-restart", daemon=True).start()

    def _start_again(self) -> None:
        while not self._stop.wait(self._pause_s):
            self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
            try:
                self.start()
            except PlannerGone as gone:
                self._on_restart(str(gone))
            else:
                return


def _plan_data(answer: Plan | Exception) -> dict[str, Any]:
    if isinstance(answer, Exception):
        return {"raised": type(answer).__name__}
    return vars(answer) | {"keyframe_steps": list(answer.keyframe_steps)}


def _read_plan(data: dict[str, Any]) -> Plan | Exception:
    if "raised" in data:
        return PlannerGone(f"the planner raised {data['raised']}")
    fields: dict[str, Any] = data | {name: tuple(data[name]) for name in ("keyframe_steps", "next_subtasks")}
    return Plan(**fields)
