"""What Prometheus reads at `/metrics`. One registry for each server, so that a process can hold several."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MILLISECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STEPS = (0, 1, 2, 3, 5, 8, 13, 20, 40, 80, 160, 320)
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 32)


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        seconds: dict[str, Any] = {"registry": registry, "buckets": MILLISECONDS}
        self.reply = Histogram("predimem_reply_seconds", "From a request's arrival to its reply", **seconds)
        self.s1_latency = Histogram("predimem_s1_seconds", "A forward pass of the actor", **seconds)
        self.s2_latency = Histogram("predimem_s2_seconds", "A batch of the planner", **seconds)
        self.store_latency = Histogram("predimem_store_seconds", "Storing a plan", **seconds)
        self.s1_batch = Histogram("predimem_s1_batch", "Observations in a pass", registry=registry, buckets=BATCHES)
        self.s2_batch = Histogram("predimem_s2_batch", "Snapshots in a batch", registry=registry, buckets=BATCHES)
        self.plan_age = Histogram(
            "predimem_plan_age_steps", "Control steps since what the subtask rests on", registry=registry, buckets=STEPS
        )
        self.rejected = Counter("predimem_rejected", "Requests without actions", ["code"], registry=registry)
        self.handshakes_refused = Counter("predimem_handshakes_refused", "Connections", ["status"], registry=registry)
        self.episodes = Counter("predimem_episodes", "Begun or gone on with", ["how"], registry=registry)
        self.outcomes = Counter("predimem_outcomes", "Episodes that their robots ended", ["outcome"], registry=registry)
        self.unknown_tasks = Counter(
            "predimem_unknown_tasks", "Episodes whose task the planner was not trained on", registry=registry
        )
        self.plans = Counter("predimem_plans", "Plans that sessions took over", registry=registry)
        self.s2_errors = Counter("predimem_s2_errors", "Plans that failed", registry=registry)
        self.s2_restarts = Counter("predimem_s2_restarts", "Planner processes lost", registry=registry)
        self.store_errors = Counter("predimem_store_errors", "Plans that could not be stored", registry=registry)
        self.ready = Gauge("predimem_ready", "1 while both models answer", registry=registry)

    def gauge(self, name: str, what: str, read: Callable[[], float]) -> None:
        """A number that is read when it is asked for."""
        Gauge(f"predimem_{name}", what, registry=self.registry).set_function(read)

    def page(self) -> bytes:
        return generate_latest(self.registry)


def gpu_memory_bytes() -> float:
    """What is in use on the GPU, by the planner's process too; 0 where the actor does not run on one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return float(total - free)
