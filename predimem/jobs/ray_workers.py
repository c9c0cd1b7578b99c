"""Workers as Ray actors, one environment each, on a cluster or on this machine.

All nodes need this package installed in the same version, and share the folder of the episodes under
the same path: actors store episodes themselves, and only outcomes travel.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Sequence
from typing import Any

from predimem.jobs.local_ray import start_local_ray
from predimem.jobs.pool import MakeHandler, Message, WorkerError, WorkerGone, failed

END_TIMEOUT_S = 20.0


class RayWorkers:
    """A `predimem.jobs.pool.Backend` whose workers are Ray actors.

    address: "local" starts a cluster for this run, sized for its workers.

    An actor that died gets a successor here rather than by Ray's `max_restarts`: that leaves an unreachable
    actor alive, and two would write the same episode. Actors wait for free CPUs as long as it takes.
    """

    build_timeout_s: float | None = None

    def __init__(
        self,
        make_handler: MakeHandler,
        address: str,
        workers: int = 1,
        cpus_per_worker: float = 1.0,
        gpus_per_worker: float = 0.0,
    ):
        try:
            import ray
        except ImportError as error:
            raise ValueError("Ray is not installed: pip install 'predimem[ray]'") from error
        self._make_handler = make_handler
        self._started, self._local = not ray.is_initialized(), address == "local"
        if self._started:
            _connect(address, workers * cpus_per_worker, workers * gpus_per_worker)
        free = ray.cluster_resources().get("CPU", 0.0)
        if free < workers * cpus_per_worker:
            print(
                f"the Ray cluster has {free:g} CPUs, {workers} workers need {workers * cpus_per_worker:g}: "
                "some will wait until it grows",
                file=sys.stderr,
            )
        self._actor_class = ray.remote(_Actor).options(
            num_cpus=cpus_per_worker, num_gpus=gpus_per_worker, max_restarts=0, max_task_retries=0
        )
        self.hint = "the log of the Ray session (ray logs)"

    def spawn(self) -> RayHandle:
        return RayHandle(self._actor_class.remote(), self._make_handler)

    def wait(self, handles: Sequence[RayHandle], timeout_s: float) -> list[RayHandle]:
        import ray

        pending = {handle.pending: handle for handle in handles if handle.pending is not None}
        if not pending:
            return []
        ready, _ = ray.wait(list(pending), num_returns=1, timeout=timeout_s)
        if not ready and self._local and not any(node["Alive"] for node in ray.nodes()):
            raise WorkerError("the Ray cluster of this run has died: the same command goes on where it stopped")
        ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=0)  # the others that have come as well
        return [pending[reference] for reference in ready]

    def close(self) -> None:
        import ray

        if self._started:
            ray.shutdown()


class RayHandle:
    """One actor, and what it was last asked for: at most one thing at a time."""

    def __init__(self, actor: Any, make_handler: MakeHandler):
        self._actor = actor
        self.pending: Any = actor.build.remote(make_handler)

    def send(self, job: Any) -> None:
        self.pending = self._actor.do.remote(job)  # a death shows when the answer is fetched

    def receive(self) -> Message:
        import ray
        from ray.exceptions import RayError

        try:
            return ray.get(self.pending)
        except RayError as error:
            raise WorkerGone(_cause(error)) from error
        finally:
            self.pending = None

    def end(self, kill: bool) -> None:
        import ray
        from ray.exceptions import RayError

        if not kill:
            with contextlib.suppress(RayError):
                ray.get(self._actor.close.remote(), timeout=END_TIMEOUT_S)
        ray.kill(self._actor, no_restart=True)


class _Actor:
    """What runs in the actor's process. Exceptions travel as messages, with their traceback."""

    _handler: Any = None

    def build(self, make_handler: MakeHandler) -> Message:
        try:
            self._handler = make_handler()
            return "built", self._handler.greeting()
        except Exception as error:
            return failed(error, "broken")

    def do(self, job: Any) -> Message:
        try:
            return "done", self._handler.do(job)
        except Exception as error:
            return failed(error, "raised")

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()


def _connect(address: str, cpus: float, gpus: float) -> None:
    import ray

    if address == "local":
        return start_local_ray(cpus, gpus)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except ConnectionError as error:
        raise ValueError(
            f"no Ray cluster at {address!r}: {str(error).rstrip('.')}. `ray start --head` starts one; for one with "
            "token authentication, which newer versions of Ray prefer, set RAY_AUTH_MODE=token here too"
        ) from error


def _cause(error: Exception) -> str:
    """One line of Ray's message, which says what is known of the actor's end."""
    known = [line.strip() for line in str(error).splitlines() if "exit" in line.lower() or "signal" in line.lower()]
    return (known or [type(error).__name__])[0][:300]
