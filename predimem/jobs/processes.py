"""Workers in processes of this machine, spawned, long-lived, and quiet when interrupted."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from predimem.core import progress
from predimem.jobs.pool import MakeHandler, Message, WorkerGone, failed

LOG = "workers.log"
END_TIMEOUT_S = 20.0


class Processes:
    """A `Backend`. What workers print, and the trace of a crash, goes to `out`/workers.log.

    make_handler must be picklable: each process builds its own handler with it, once.
    """

    def __init__(self, make_handler: MakeHandler, out: Path, build_timeout_s: float | None = 1800.0):
        self.build_timeout_s = build_timeout_s
        self.hint = str(out / LOG)
        self._make_handler = make_handler
        out.mkdir(parents=True, exist_ok=True)

    def spawn(self) -> ProcessHandle:
        return ProcessHandle(self._make_handler, self.hint)

    def wait(self, handles: Sequence[ProcessHandle], timeout_s: float) -> list[ProcessHandle]:
        ready = wait([handle.connection for handle in handles], timeout_s)
        return [handle for handle in handles if handle.connection in ready]

    def close(self) -> None:
        pass


class ProcessHandle:
    """One worker process, from its parent's side.

    ignores_sigterm: SIGTERM, too, is for the parent to handle. Whoever stops a service sends it to the whole process
    group, and a worker that ends by itself looks like one that crashed.
    """

    def __init__(self, make_handler: MakeHandler, log: str, ignores_sigterm: bool = False):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        stages, their_stages = context.Pipe(duplex=False)
        ignored = (signal.SIGINT, signal.SIGTERM) if ignores_sigterm else (signal.SIGINT,)
        given = (theirs, their_stages, make_handler, log, ignored)
        self.process = context.Process(target=_serve, args=given, daemon=True)
        with _blocked(ignored):  # Ctrl-C is for the parent to handle
            self.process.start()
        # multiprocessing asks workers that are left at the end to go, with SIGTERM, and waits for them.
        self._at_exit = Finalize(None, self.process.kill, exitpriority=0) if ignores_sigterm else None
        theirs.close()
        their_stages.close()
        threading.Thread(target=_announce_stages, args=(stages,), name="stages", daemon=True).start()

    def send(self, job: Any) -> None:
        try:
            self.connection.send(job)
        except OSError as error:
            raise self._gone() from error

    def receive(self) -> Message:
        try:
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error

    def end(self, kill: bool) -> None:
        if not kill:
            try:
                self.connection.send(None)
                self.process.join(END_TIMEOUT_S)
            except OSError:
                pass
        self.connection.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        if self._at_exit is not None:
            self._at_exit.cancel()

    def _gone(self) -> WorkerGone:
        self.process.join(1.0)  # else it might be killed while it is ending, and the cause be lost
        self.end(kill=True)
        code = self.process.exitcode
        return WorkerGone(signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}")


def _serve(
    connection: Connection, stages: Connection, make_handler: MakeHandler, log: str, ignored: Sequence[signal.Signals]
) -> None:
    """The life of a worker process."""
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    progress.report_to(stages.send)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        _redirect_output(log)
        handler = make_handler()
        connection.send(("built", handler.greeting()))
    except Exception as error:
        connection.send(failed(error, "broken"))
        return
    try:
        while (job := connection.recv()) is not None:
            try:
                answer: Message = ("done", handler.do(job))
            except Exception as error:
                answer = failed(error, "raised")
            connection.send(answer)
    except (EOFError, ConnectionError):
        pass  # the parent is gone; the connection is reset if it left an answer unread
    finally:
        handler.close()


def _announce_stages(stages: Connection) -> None:
    """Show the stages that a worker reports, until it ends."""
    with stages, suppress(EOFError, OSError):
        while True:
            progress.announce(stages.recv())


def _die_with_parent() -> None:
    """Else a killed parent's workers would go on writing beside those of the run that resumes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _redirect_output(log: str) -> None:
    """Send what libraries print (the simulator is talkative) and the trace of a crash to a file."""
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable()


@contextmanager
def _blocked(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """For a child that is being spawned: it inherits the mask, so that these signals never hit its imports."""
    resource_tracker.ensure_running()  # starting it later, inside the block, would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
