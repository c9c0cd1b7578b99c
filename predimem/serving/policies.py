"""S1 as the sessions see it: one actor for all of them, asked in batches, by the deadline of each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from predimem.core.interfaces import Policy
from predimem.core.types import ActionChunk, Observation, ObservationError
from predimem.serving.batches import Batches, QueueFull, Stopped, TooLate
from predimem.serving.config import BatchConfig
from predimem.serving.metrics import Metrics
from predimem.serving.refusal import Refusal

log = logging.getLogger(__name__)
Asked = tuple[Observation, str]


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy that answers several observations in one forward pass."""

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]: ...


class SharedPolicy:
    """One policy for all sessions, used by one thread."""

    def __init__(self, policy: Policy, waiting: int, batches: BatchConfig, metrics: Metrics):
        self._policy = policy
        self._metrics = metrics
        self._batches: Batches[Asked, ActionChunk] = Batches(self._answer, "s1", waiting, batches)

    @property
    def depth(self) -> int:
        return self._batches.depth

    @property
    def busy_s(self) -> float:
        return self._batches.busy_s

    def admit(self) -> None:
        """Raises Refusal where one more request would only wait."""
        if self._batches.full:
            raise Refusal("overloaded", f"{self._batches.depth} observations wait for the actor; ask again later")

    def infer(self, observation: Observation, subtask: str, deadline_s: float) -> ActionChunk:
        """Raises Refusal. deadline_s: on the clock of `time.monotonic`."""
        try:
            return self._batches.call((observation, subtask), deadline_s)
        except QueueFull:
            raise Refusal("overloaded", "too many observations wait for the actor; ask again later") from None
        except TooLate:
            raise Refusal("deadline", "the actor did not answer in time") from None
        except Stopped:
            raise Refusal("draining", "the server is being shut down") from None
        except ObservationError as error:
            raise Refusal("malformed", str(error)) from None
        except ConnectionError as error:
            log.error("%s", error)
            raise Refusal("deadline", "the actor, on another machine, gave no actions; ask again later") from None

    def close(self) -> None:
        self._batches.close()

    def _answer(self, asked: list[Asked]) -> list[ActionChunk | Exception]:
        began_s = time.perf_counter()
        answers = self._infer(asked)
        self._metrics.s1_latency.observe(time.perf_counter() - began_s)
        self._metrics.s1_batch.observe(len(asked))
        return answers

    def _infer(self, asked: list[Asked]) -> list[ActionChunk | Exception]:
        if len(asked) > 1 and isinstance(self._policy, BatchPolicy):
            observations, subtasks = zip(*asked, strict=True)
            try:
                return list(self._policy.infer_batch(observations, subtasks))
            except Exception:
                pass  # one of them is at fault: below it fails alone
        answers: list[ActionChunk | Exception] = []
        for observation, subtask in asked:
            try:
                answers.append(self._policy.infer(observation, subtask))
            except Exception as error:
                answers.append(error)
        return answers


class SessionPolicy:
    """Implements `Policy` for one session's agent; `deadline_s` is that of the request under way."""

    def __init__(self, shared: SharedPolicy):
        self._shared = shared
        self.deadline_s = 0.0

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self._shared.infer(observation, subtask, self.deadline_s)
