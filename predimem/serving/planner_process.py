"""S2 in a process of its own: it can crash, hang or hold its interpreter's lock, and S1 goes on.

Snapshots and plans cross as plain data; nothing that a client sent is ever unpickled.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from predimem.core.interfaces import Planner
from predimem.core.types import Frame, MemorySnapshot, Plan
from predimem.jobs.pool import WorkerGone
from predimem.jobs.processes import ProcessHandle
from predimem.serving import wire
from predimem.serving.config import PlannerProcessConfig

log = logging.getLogger(__name__)
LOG_FILE = "planner.log"
MAX_PAUSE_S = 60.0
_NO_LIMIT = 1 << 40  # of arrays: this end wrote them
State = Literal["starting", "ready", "restarting", "stopped"]


class PlannerGone(RuntimeError):
    """There is no planner at the moment; says why."""


class PlannerHandler:
    """The far end: it plans batches. One snapshot that cannot be planned does not spoil the others' plans."""

    def __init__(self, make_planner: Callable[[], Planner], warm_up: bytes):
        self._planner = make_planner()
        self._planner.plan(_read_snapshot(wire.unpack(warm_up, _NO_LIMIT)))

    def greeting(self) -> None:
        return None

    def do(self, job: bytes) -> bytes:
        snapshots = [_read_snapshot(data) for data in wire.unpack(job, _NO_LIMIT)]
        return wire.pack([_plan_data(answer) for answer in self._plan(snapshots)])

    def close(self) -> None:
        pass

    def _plan(self, snapshots: list[MemorySnapshot]) -> Sequence[Plan | Exception]:
        batch = getattr(self._planner, "plan_batch", None)
        if batch is not None and len(snapshots) > 1:
            try:
                return batch(snapshots)
            except Exception:
                log.exception("a batch of %d failed; its snapshots are planned one by one", len(snapshots))
        answers: list[Plan | Exception] = []
        for snapshot in snapshots:
            try:
                answers.append(self._planner.plan(snapshot))
            except Exception as error:
                log.exception("a snapshot cannot be planned")
                answers.append(error)
        return answers


class PlannerProcess:
    """The near end. `plan` is called by one thread; a monitor ends a process that hangs, `plan` starts the next.

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
        self._make_handler = partial(PlannerHandler, make_planner, wire.pack(_snapshot_data(warm_up)))
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
            raise PlannerGone(f"the planner's process ended while it was started ({gone}), see {LOG_FILE}") from None
        finally:
            self._overdue_s = None
        if kind != "built":
            handle.end(kill=True)
            raise PlannerGone(f"the planner cannot be started: {str(value).splitlines()[0]}")
        self.state = "ready"

    def plan(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan | Exception]:
        """A plan, or why there is none, for each snapshot. Raises PlannerGone; the process is then started anew."""
        handle = self._handle
        if handle is None or self.state != "ready":
            raise PlannerGone("the planner is being restarted")
        self._overdue_s = time.monotonic() + self._config.timeout_s
        try:
            handle.send(wire.pack([_snapshot_data(snapshot) for snapshot in snapshots]))
            kind, value = handle.receive()
        except WorkerGone as gone:
            self._restart(f"the planner's process ended ({gone})")
            raise PlannerGone("the planner's process ended; it is being restarted") from None
        finally:
            self._overdue_s = None
        if kind != "done":
            raise PlannerGone("the planner raised an error")
        self._pause_s = self._config.restart_s
        return [_read_plan(data) for data in wire.unpack(value, _NO_LIMIT)]

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


def _snapshot_data(snapshot: MemorySnapshot) -> dict[str, Any]:
    """As plain data; a frame that occurs twice (the image of a step that is repeated) is sent once."""
    images: dict[int, int] = {}
    arrays: list[Any] = []

    def frame_data(frame: Frame) -> list[Any]:
        places = []
        for name, image in frame.images.items():
            if id(image) not in images:
                images[id(image)] = len(arrays)
                arrays.append(image)
            places.append([name, images[id(image)]])
        return [frame.step, frame.time_s, places]

    return {
        "episode_id": snapshot.episode_id,
        "step": snapshot.step,
        "instruction": snapshot.instruction,
        "recent": [frame_data(frame) for frame in snapshot.recent],
        "keyframes": [frame_data(frame) for frame in snapshot.keyframes],
        "past_subtasks": list(snapshot.past_subtasks),
        "images": arrays,
    }


def _read_snapshot(data: dict[str, Any]) -> MemorySnapshot:
    def frame(found: list[Any]) -> Frame:
        step, time_s, places = found
        return Frame(step, time_s, MappingProxyType({name: data["images"][k] for name, k in places}))

    return MemorySnapshot(
        episode_id=data["episode_id"],
        step=data["step"],
        instruction=data["instruction"],
        recent=tuple(map(frame, data["recent"])),
        keyframes=tuple(map(frame, data["keyframes"])),
        past_subtasks=tuple(data["past_subtasks"]),
    )


def _plan_data(answer: Plan | Exception) -> dict[str, Any]:
    if isinstance(answer, Exception):
        return {"raised": type(answer).__name__}
    return vars(answer) | {"keyframe_steps": list(answer.keyframe_steps)}


def _read_plan(data: dict[str, Any]) -> Plan | Exception:
    if "raised" in data:
        return PlannerGone(f"the planner raised {data['raised']}")
    fields: dict[str, Any] = data | {"keyframe_steps": tuple(data["keyframe_steps"])}
    return Plan(**fields)
