"""What all sessions of a server share."""

from __future__ import annotations

from dataclasses import dataclass

from memory_bank.store import MemoryStore
from predimem.agent.clock import Clock
from predimem.serving.config import ServeConfig
from predimem.serving.embedding import BackgroundEmbedding
from predimem.serving.metrics import Metrics
from predimem.serving.planners import SharedPlanner
from predimem.serving.policies import SharedPolicy
from predimem.serving.refusal import Refusal
from predimem.serving.robot import Served


class ClientClock:
    """The client keeps time: S1 answers within the request, S2 when it is ready."""

    def s1_ready_step(self, asked_step: int) -> int:
        return asked_step

    def s2_ready_step(self, asked_step: int) -> int | None:
        return None

    def begin_tick(self, step: int) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Parts:
    """Models, settings and the store."""

    config: ServeConfig
    served: Served
    policy: SharedPolicy
    planner: SharedPlanner
    store: MemoryStore | None
    metrics: Metrics
    embedding: BackgroundEmbedding | None = None

    def doubt(self, prompt: str) -> str | None:
        """Why the planner may not know this task; None where it does. Raises Refusal where such tasks are refused."""
        why = self.served.tasks.doubt(prompt, self.config.tasks)
        if why is not None and self.config.tasks.unknown == "refuse":
            raise Refusal("unknown_task", why)
        return why

    def make_clock(self) -> Clock:
        time_config = self.config.time
        return ClientClock() if time_config.mode == "real" else time_config.make_clock(self.config.robot.control_hz)
