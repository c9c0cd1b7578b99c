"""Agent configs: which planner (S2) and low-level policy (S1) an agent is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memory_bank import MemoryConfig
from predimem.core.own_code import full_place, is_place

ORACLE = "oracle"  # the oracle planner, which says the ground-truth subtask
INSTRUCTION = "instruction"  # no planner: the subtask is the whole instruction
SKILLS = "skills"  # scripted skills that know the true state and carry out a subtask
EXPERT = "expert"  # the memoryless expert: it knows the true state, too, and decides every step afresh
SCRIPTED = (SKILLS, EXPERT)
REMOTE = ("ws://", "wss://")  # a low-level policy on another machine, by the address of its server
NO_MEMORY = MemoryConfig(recent_window=1, keyframes=False)

_FORMER_PLANNERS = {"truth": ORACLE}


def is_remote(actor: str) -> bool:
    """Whether `actor` is the address of a server that speaks openpi's protocol."""
    return actor.startswith(REMOTE)


def check_actor_options(actor: str, options: dict[str, Any]) -> None:
    """Raises ValueError for options of an actor that has none."""
    if options and not is_remote(actor):
        raise ValueError(f"actor_options: they are for a server, such as ws://host:8000; {actor!r} has none")


@dataclass(frozen=True)
class AgentConfig:
    """A planner (S2) and a low-level policy (S1) in the asynchronous runtime.

    planner: `oracle` (ground-truth subtasks), `instruction` (no planner: a reactive policy), the folder of its
    weights, or the place of a class or function of your own that makes one (`my_planner.py:MyPlanner`,
    `package.module:make_planner`). `truth`, the former name of `oracle`, is read as well.
    actor: `skills` (scripted skills), `expert` (the memoryless expert), the address of a server of openpi's protocol
    (`ws://host:port`), or the folder of its weights. Folders are names below the root of weights, such as
    `arena-planner`.
    actor_options: how a server is asked, as in `actor.remote.RemoteConfig`.
    planner_options: what a planner of your own is made with, by the names of its arguments.
    memory: what differs from the memory that the planner was trained with, as in `MemoryConfig`. In YAML
    `memory: file.py:Class` names a memory of one's own.
    prompt: what differs from the prompt that the planner was trained with, as in `PromptConfig`; it follows the memory.
    s2_latency_steps: the planner's latency in simulated time; null: that of all agents.
    confirm_plans: how many plans in a row must name a new subtask; null: as `play.agent` has it for all agents.
    execute_steps: how many actions of a chunk are executed before the next one is asked for; null: as `play.agent` has
    it for all agents.
    camera_every: control steps from one image to the next; null: as often as planner and actor need them.
    slip_probability: with the actor `skills`, the probability with which a thing that cannot be poured slips out of
    the gripper each time that it was lifted.
    against: the agent that this one is compared with; null: the first one played.
    note: what the agent is, for the report.
    """

    planner: str
    actor: str
    actor_options: dict[str, Any] = field(default_factory=dict)
    planner_options: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    prompt: dict[str, Any] = field(default_factory=dict)
    s2_latency_steps: int | None = None
    confirm_plans: int | None = None
    execute_steps: int | None = None
    camera_every: int | None = None
    slip_probability: float = 0.0
    against: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "planner", _FORMER_PLANNERS.get(self.planner, self.planner))
        if self.planner == INSTRUCTION and self.actor in SCRIPTED:
            raise ValueError(f"actor: {self.actor} carries out subtasks, and the planner `instruction` names none")
        check_actor_options(self.actor, self.actor_options)
        for name in ("memory", "prompt"):
            if self.planner in (ORACLE, INSTRUCTION) and getattr(self, name):
                raise ValueError(f"{name}: the planner {self.planner!r} has none")
        if self.planner_options and not self.has_own_planner:
            raise ValueError(
                f"planner_options: they are for a planner of your own, such as my_planner.py:MyPlanner; "
                f"{self.planner!r} has none"
            )
        if self.prompt and self.has_own_planner:
            raise ValueError("prompt: a planner of your own writes its own prompt; give it planner_options")
        place = self.memory.get("implementation")
        if isinstance(place, str):
            place = full_place(place, "memory: implementation")
            object.__setattr__(self, "memory", self.memory | {"implementation": place})
        for name in ("confirm_plans", "execute_steps", "camera_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if not 0 <= self.slip_probability <= 1 or (self.slip_probability and self.actor != SKILLS):
            raise ValueError(
                f"slip_probability: expected 0 to 1, and more than 0 with the actor {SKILLS!r} alone; "
                f"got {self.slip_probability} with {self.actor!r}"
            )

    @property
    def is_scripted(self) -> bool:
        """Whether its actor is an expert that knows the true state."""
        return self.actor in SCRIPTED

    @property
    def has_own_planner(self) -> bool:
        """Whether its planner is made by code that the config names."""
        return is_place(self.planner)

    @property
    def weights(self) -> tuple[str, ...]:
        """The folders of weights that this agent needs."""
        planner = () if self.planner in (ORACLE, INSTRUCTION) or self.has_own_planner else (self.planner,)
        return (*planner, *(() if self.is_scripted or is_remote(self.actor) else (self.actor,)))

    def images_every(self, plan_every_steps: int, actor_camera_every: int) -> int | None:
        """Control steps from one image to the next where this agent acts; None where it looks at none."""
        if self.camera_every is not None:
            return self.camera_every
        if not self.is_scripted:
            return actor_camera_every
        return None if self.planner == ORACLE else plan_every_steps
