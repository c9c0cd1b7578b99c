"""S1 as the sessions see it: one actor for all of them, asked in batches, by the deadline of each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from actor.remote import RemotePolicyAway
from predimem.core.interfaces import ContinuingPolicy, Policy
from predimem.core.types import ActionChunk, Observation, ObservationError
from predimem.serving.batches import Batches, QueueFull, Stopped, TooLate
from predimem.serving.config import BatchConfig
from predimem.serving.metrics import Metrics
from predimem.serving.refusal import Refusal

log = logging.getLogger(__name__)
AWAY_S = 2.0  # between two attempts to reach an actor on another machine, while the server starts


@dataclass(frozen=True, eq=False)
class Continued:
    """What a chunk is to continue, as in `ContinuingPolicy`."""

    queued: np.ndarray
    delay_steps: int
    method: Literal["guided", "trained"]


Asked = tuple[Observation, str, Continued | None]


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

    def infer(
        self, observation: Observation, subtask: str, deadline_s: float, continued: Continued | None = None
    ) -> ActionChunk:
        """Raises Refusal. deadline_s: on the clock of `time.monotonic`."""
        try:
            return self._batches.call((observation, subtask, continued), deadline_s)
        except QueueFull:
            raise Refusal("overloaded", "too many observations wait for the actor; ask again later") from None
        except TooLate:
            raise Refusal("deadline", "the actor did not answer in time") from None
        except Stopped:
            raise Refusal("draining", "the server is being shut down") from None
        except ObservationError as error:
            raise Refusal("malformed", str(error)) from None
        except FloatingPointError as error:
            log.error("%s", error)
            raise Refusal("internal", "the actor's actions are not finite; they are not sent to a robot") from None
        except ConnectionError as error:
            log.error("%s", error)
            raise Refusal("deadline", "the actor, on another machine, gave no actions; ask again later") from error

    def warm_up(self, observation: Observation, subtask: str, deadline_s: float) -> None:
        """The first pass. An actor on another machine that is away is waited for. Raises ValueError where the actor
        cannot be used."""
        while True:
            try:
                self.infer(observation, subtask, deadline_s)
                return
            except Refusal as refusal:
                away = isinstance(refusal.__cause__, RemotePolicyAway) and time.monotonic() < deadline_s
                if not away:
                    raise ValueError(f"the actor cannot be used: {refusal.__cause__ or refusal.why}") from refusal
            time.sleep(AWAY_S)

    def close(self) -> None:
        self._batches.close()

    def _answer(self, asked: list[Asked]) -> list[ActionChunk | Exception]:
        began_s = time.perf_counter()
        answers = self._infer(asked)
        self._metrics.s1_latency.observe(time.perf_counter() - began_s)
        self._metrics.s1_batch.observe(len(asked))
        return answers

    def _infer(self, asked: list[Asked]) -> list[ActionChunk | Exception]:
        alone = any(continued is not None for _, _, continued in asked)
        if len(asked) > 1 and not alone and isinstance(self._policy, BatchPolicy):
            observations, subtasks, _ = zip(*asked, strict=True)
            try:
                return list(self._policy.infer_batch(observations, subtasks))
            except Exception:
                pass  # one of them is at fault: below it fails alone
        answers: list[ActionChunk | Exception] = []
        for one in asked:
            try:
                answers.append(self._infer_one(*one))
            except Exception as error:
                answers.append(error)
        return answers

    def _infer_one(self, observation: Observation, subtask: str, continued: Continued | None) -> ActionChunk:
        if continued is None:
            return self._policy.infer(observation, subtask)
        assert isinstance(self._policy, ContinuingPolicy)  # the config was checked
        c = continued
        return self._policy.continue_chunk(observation, subtask, c.queued, c.delay_steps, c.method)


class SessionPolicy:
    """Implements `ContinuingPolicy` for one session's agent; `deadline_s` is that of the request under way."""

    def __init__(self, shared: SharedPolicy):
        self._shared = shared
        self.deadline_s = 0.0

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self._shared.infer(observation, subtask, self.deadline_s)

    def continue_chunk(
        self,
        observation: Observation,
        subtask: str,
        queued: np.ndarray,
        delay_steps: int,
        method: Literal["guided", "trained"],
    ) -> ActionChunk:
        return self._shared.infer(observation, subtask, self.deadline_s, Continued(queued, delay_steps, method))
