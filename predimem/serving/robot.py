"""The robot: what a config says of it, what the models expect of it, and whether the two fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from memory_bank import MemoryConfig
from predimem.agent.homing import HomingConfig
from predimem.core.interfaces import Planner, Policy
from predimem.serving.known_tasks import KnownTasks


@dataclass(frozen=True)
class RobotConfig:
    """The robot that is controlled.

    control_hz: control steps a second.
    hold: the action that keeps the robot where it is before any other was sent; a number for each action.
    hold_keeps: indices of the actions whose last value is repeated instead, such as a gripper's.
    joints: for a robot whose actions are absolute joint positions. For each action it has the index of the state's
    entry that measures the same joint, and null for an action that is none; `hold` and `hold_keeps` then say what
    becomes of that one. Empty: no action is an absolute position, and `hold` is for all of them.
    example_prompt: a task, for clients that want to try; null: the first one that the planner was trained on.
    action_horizon: how many rows `actions` has in a reply; null: as many as the agent executes before it asks S1 again.
    """

    control_hz: float = 20.0
    hold: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    hold_keeps: tuple[int, ...] = (6,)
    joints: tuple[int | None, ...] = ()
    example_prompt: str | None = None
    action_horizon: int | None = None

    def __post_init__(self) -> None:
        if not self.control_hz > 0:
            raise ValueError(f"robot: control_hz has to be positive, got {self.control_hz}")
        if self.action_horizon is not None and self.action_horizon < 1:
            raise ValueError(f"robot: action_horizon must be at least 1, got {self.action_horizon}")

    @property
    def measured(self) -> dict[int, int]:
        """action -> entry of the state, of the actions that are absolute joint positions."""
        return {action: entry for action, entry in enumerate(self.joints) if entry is not None}


@dataclass(frozen=True)
class RobotSpec:
    """cameras: names of the images; image_size: their [height, width].

    optional_cameras: those of the cameras that an observation may lack.
    positions: for each action the entry of the state that measures the same thing, None for an action that is no
    absolute position; empty where the actor does not say.
    """

    cameras: tuple[str, ...]
    image_size: tuple[int, int]
    state_dim: int
    action_dim: int
    optional_cameras: tuple[str, ...] = ()
    positions: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Served:
    """The models, as `predimem.serving.models.make_served` gives them.

    make_planner: builds S2 in its own process, so it can be pickled; None: there is no planner, and the task
    is the subtask.
    memory: the memory that the planner was trained with.
    weights: model -> hash.
    tasks: what the planner was trained to do.
    """

    robot: RobotSpec
    policy: Policy
    make_planner: Callable[[], Planner] | None
    memory: MemoryConfig
    weights: Mapping[str, str] = field(default_factory=dict)
    tasks: KnownTasks = field(default_factory=KnownTasks)

    def example_prompt(self, config: RobotConfig) -> str:
        """A task that these models can be tried with."""
        return config.example_prompt or next(iter(self.tasks.instructions), "pick it up")


def check_robot(config: RobotConfig, robot: RobotSpec) -> None:
    """Raises ValueError where the config is not about a robot with the actor's actions and state: an action of another
    width would only be noticed on the robot."""
    actions, names = robot.action_dim, "`robot: joints`"
    if config.joints and len(config.joints) != actions:
        raise ValueError(
            f"{names} has {len(config.joints)} entries, and the actor gives {actions} actions: name the entry of the "
            "state for each of them, null for one that is no absolute joint position"
        )
    wrong = [entry for entry in config.measured.values() if not 0 <= entry < robot.state_dim]
    if wrong:
        raise ValueError(f"{names}: the state has the entries 0 to {robot.state_dim - 1}, got {wrong}")
    for action, entry in enumerate(robot.positions):
        if entry is not None and config.measured.get(action) != entry:
            raise ValueError(
                f"{names}: action {action} is the absolute position that entry {entry} of the state measures, by the "
                f"actor's relative_to_state, and `joints` says {config.measured.get(action)}: a held robot would "
                f"lunge; give `joints: {list(robot.positions)}`, with entries for its grippers where they are measured"
            )
    if len(config.measured) == actions:
        return
    if len(config.hold) != actions:
        raise ValueError(
            f"`robot: hold` has {len(config.hold)} numbers, and the actor gives {actions} actions: give {actions} "
            f"numbers that keep the robot where it is (zeros where actions are deltas). Where they are absolute joint "
            f"positions, say in {names} which entries of the state measure them, and the robot is held at its own"
        )
    if any(not 0 <= index < actions for index in config.hold_keeps):
        raise ValueError(f"`robot: hold_keeps` are indices of the {actions} actions, got {list(config.hold_keeps)}")


def check_homing(homing: HomingConfig, config: RobotConfig, robot: RobotSpec) -> None:
    """Raises ValueError where the hand of this robot cannot be sent home."""
    homing.check(robot.state_dim, robot.action_dim)
    if config.measured:
        raise ValueError(
            "agent: homing: it is for actions that move the hand, and by `robot: joints` this robot's are absolute "
            "joint positions"
        )
