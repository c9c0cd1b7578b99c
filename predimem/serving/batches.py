"""One model, many callers: requests wait in a bounded queue and are answered in batches by one thread.

A batch is what is there when the model is free, so that a lone caller never waits for company (unless asked to).
Callers block; each has a deadline, and a request whose caller has given up is not computed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from predimem.serving.config import BatchConfig

log = logging.getLogger(__name__)
Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class QueueFull(Exception):
    """As many requests as are allowed wait already."""


class TooLate(Exception):
    """There was no answer by the deadline."""


class Stopped(Exception):
    """The service is shut down, or the caller called it off."""


@dataclass(eq=False)
class _Call(Generic[Asked, Answered]):
    asked: Asked
    deadline_s: float
    done: threading.Event = field(default_factory=threading.Event)
    answer: Any = None
    error: BaseException | None = None

    def finish(self, answer: Any = None, error: BaseException | None = None) -> None:
        if not self.done.is_set():
            self.answer, self.error = answer, error
            self.done.set()


class Cancellation:
    """Lets another thread end the waiting of one caller's calls, and forbid further ones until `clear`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: _Call[Any, Any] | None = None
        self._cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._call is not None:
                self._call.finish(error=Stopped("called off"))

    def clear(self) -> None:
        with self._lock:
            self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def watch(self, call: _Call[Any, Any] | None) -> None:
        with self._lock:
            self._call = call
            if call is not None and self._cancelled:
                call.finish(error=Stopped("called off"))


class Batches(Generic[Asked, Answered]):
    """`answer(asked)` gives one answer, or one exception, for each item; it runs in this object's thread only.

    An exception that it raises is every caller's of the batch. Times are those of `time.monotonic`.

    meanwhile: what the thread does with what was foreseen (`foresee`), while nobody waits; it has to end soon after
    `leave_off` was called, which happens when somebody does. It is told so with True, and with False before it begins.
    """

    def __init__(
        self,
        answer: Callable[[list[Asked]], Sequence[Answered | Exception]],
        name: str,
        limit: int,
        config: BatchConfig,
        meanwhile: Callable[[Asked], None] | None = None,
        leave_off: Callable[[bool], None] = lambda now: None,
    ):
        self._answer = answer
        self._meanwhile, self._leave_off = meanwhile, leave_off
        self._foreseen: dict[str, Asked] = {}
        self._limit = limit
        self._config = config
        self._condition = threading.Condition()
        self._waiting: deque[_Call[Asked, Answered]] = deque()
        self._stopped = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self._limit

    @property
    def busy_s(self) -> float:
        """How long the batch under way has taken so far; 0 between batches."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def call(self, asked: Asked, deadline_s: float, cancellation: Cancellation | None = None) -> Answered:
        """The answer. Raises QueueFull, TooLate, Stopped, or what `answer` gave or raised for it."""
        call: _Call[Asked, Answered] = _Call(asked, deadline_s)
        with self._condition:
            if self._stopped:
                raise Stopped("shut down")
            if self.full:
                raise QueueFull(f"{self._limit} requests wait already")
            self._waiting.append(call)
            self._leave_off(True)
            self._condition.notify()
        if cancellation is not None:
            cancellation.watch(call)
        try:
            if not call.done.wait(max(0.0, deadline_s - time.monotonic())):
                call.finish(error=TooLate("no answer by the deadline"))
        finally:
            if cancellation is not None:
                cancellation.watch(None)
        error, answer = call.error, call.answer
        if isinstance(error, TooLate | Stopped):
            self._forget(call)
        if error is None:
            return answer
        try:
            raise error
        finally:
            del call, error  # this frame is in the error's traceback: they would hold each other, and what was asked

    def foresee(self, who: str, asked: Asked | None) -> None:
        """Somebody will ask about this soon, or not (None); it replaces what they said before. Never blocks."""
        with self._condition:
            self._foreseen.pop(who, None)
            if asked is not None and self._meanwhile is not None and not self._stopped:
                self._foreseen[who] = asked
                self._condition.notify()

    def _forget(self, call: _Call[Asked, Answered]) -> None:
        with self._condition:
            if call in self._waiting:
                self._waiting.remove(call)

    def close(self) -> None:
        """Refuse what waits and what comes. A batch under way is not waited for: it may hang."""
        with self._condition:
            self._stopped = True
            waiting, self._waiting = list(self._waiting), deque()
            self._leave_off(True)
            self._condition.notify_all()
        for call in waiting:
            call.finish(error=Stopped("shut down"))

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            if not batch:
                self._work_ahead()
                continue
            self._busy_since = time.monotonic()
            try:
                answers = self._answer([call.asked for call in batch])
                for call, answer in zip(batch, answers, strict=True):
                    if isinstance(answer, Exception):
                        call.finish(error=answer)
                    else:
                        call.finish(answer)
            except Exception as error:
                for call in batch:
                    call.finish(error=error)
            finally:
                self._busy_since = None

    def _work_ahead(self) -> None:
        with self._condition:
            if self._waiting or self._stopped or not self._foreseen:
                return
            foreseen = self._foreseen.pop(next(iter(self._foreseen)))
            self._leave_off(False)
        try:
            assert self._meanwhile is not None
            self._meanwhile(foreseen)
        except Exception:
            log.exception("what was foreseen cannot be prepared")

    def _take(self) -> list[_Call[Asked, Answered]] | None:
        """The next batch, without those that nobody waits for any more; empty: nobody waits; None: shut down."""
        with self._condition:
            while not self._waiting and not self._stopped and not self._foreseen:
                self._condition.wait()
            if self._config.wait_s > 0 and self._waiting:
                until = time.monotonic() + self._config.wait_s
                while len(self._waiting) < self._config.size and not self._stopped:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    self._condition.wait(left)
            if self._stopped:
                return None
            batch: list[_Call[Asked, Answered]] = []
            while self._waiting and len(batch) < self._config.size:
                call = self._waiting.popleft()
                if not call.done.is_set():
                    batch.append(call)
            return batch
