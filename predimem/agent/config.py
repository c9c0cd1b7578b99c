"""Agent configs: which planner (S2) and low-level policy (S1) an agent is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memory_bank import MemoryConfig

TRUTH = "truth"  # a planner that is told the subtask that is due
INSTRUCTION = "instruction"  # no planner: the subtask is the whole instruction
SKILLS = "skills"  # an actor made of scripted skills that know the true state
EXPERT = "expert"  # one that knows it, too, and decides each step afresh: whom learned actors imitate
SCRIPTED = (SKILLS, EXPERT)
NO_MEMORY = MemoryConfig(recent_window=1, keyframes=False)


@dataclass(frozen=True)
class AgentConfig:
    """A system of the arena: a planner (S2) and an actor (S1) in the asynchronous runtime.

    planner: `truth` (oracle memory), `instruction` (a reactive policy), or the folder of its weights. actor: `skills`
    (the oracle actor), `expert` (the one without a memory), or the folder of its weights. Folders are names below the
    root of weights, such as `arena-planner`. memory: what differs from the memory that the planner was trained with,
    as in `MemoryConfig`. s2_latency_steps: of this row, in simulated time. camera_every: control steps from one
    picture to the next; null: as often as planner and actor need them. slip_probability: of the oracle actor: each
    thing that it has lifted, and that cannot be poured, slips out of its hand with it. against: the row that this one
    is compared with; null: the first one played. note: what it is, for the report.
    """

    planner: str
    actor: str
    memory: dict[str, Any] = field(default_factory=dict)
    s2_latency_steps: int | None = None
    camera_every: int | None = None
    slip_probability: float = 0.0
    against: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.planner == INSTRUCTION and self.actor in SCRIPTED:
            raise ValueError(f"actor: {self.actor} carries out subtasks, and the planner `instruction` names none")
        if self.planner in (TRUTH, INSTRUCTION) and self.memory:
            raise ValueError(f"memory: the planner {self.planner!r} has none")
        if self.camera_every is not None and self.camera_every < 1:
            raise ValueError(f"camera_every: expected at least 1, got {self.camera_every}")

        if not 0 <= self.slip_probability <= 1 or (self.slip_probability and self.actor != SKILLS):
            raise ValueError(
                f"slip_probability: expected 0 to 1, and more than 0 with the actor {SKILLS!r} alone; "
                f"got {self.slip_probability} with {self.actor!r}"
            )

    @property
    def weights(self) -> tuple[str, ...]:
        """The folders of weights that this row needs."""
        planner = () if self.planner in (TRUTH, INSTRUCTION) else (self.planner,)
        return (*planner, *(() if self.actor in SCRIPTED else (self.actor,)))
