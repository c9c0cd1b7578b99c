"""Which DAgger data are made: who gives the subtasks, which policy carries them out, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from datagen.generation import ArenaDataConfig, check_at_least
from datagen.keyframes import KeyframeConfig
from predimem.agent.config import ORACLE, SCRIPTED, SKILLS
from predimem.core.config import ConfigError
from predimem.core.seeds import PLANNER_DAGGER_SEEDS

FORMER_DRIVERS = {"truth": ORACLE}

SHARES = (
    "undisturbed_share", "late_share", "waits_on_share", "premature_share", "missed_share", "dropped_share",
    "came_out_share",
)  # fmt: skip
Range = tuple[float, float]  # lowest and highest, drawn evenly


@dataclass(frozen=True)
class DisturbanceConfig:
    """What goes wrong in an episode, except in `undisturbed_share` of them.

    undisturbed_share: the share of episodes in which nothing goes wrong.

    The next fields are about what the driver `oracle` says. Spells of a pour last half a second at most.
    late_share, late_s: this share of the switches to another subtask comes so many seconds too late; after a pour a
    second at most, since it would be poured once more.
    waits_on_share, waits_on_s: after this share of the pauses that a long task asks for, the switch comes so many
    seconds too late instead: the arm stands still although the time is over.
    premature_share, premature_s: in this share of the subtasks the next one is named too early, for so many seconds.
    wrong_per_minute, wrong_s: how often another subtask of the task is named, and for how many seconds.

    The next fields are about what the low-level policy does.
    pauses_per_minute, pause_s: how often the arm stands still, and for how many seconds.
    missed_share: the share of grasps in which the gripper does not close.
    dropped_share: the share of carried things for which the gripper opens on the way; never what can be poured.

    came_out_share: the share of things that lie on the table again soon after they were placed.
    """

    undisturbed_share: float = 0.33
    late_share: float = 0.35
    late_s: Range = (0.0, 3.0)
    waits_on_share: float = 0.0
    waits_on_s: Range = (0.0, 40.0)
    premature_share: float = 0.2
    premature_s: Range = (0.5, 2.0)
    wrong_per_minute: float = 2.0
    wrong_s: Range = (0.5, 2.0)
    pauses_per_minute: float = 2.0
    pause_s: Range = (0.5, 3.0)
    missed_share: float = 0.12
    dropped_share: float = 0.12
    came_out_share: float = 0.0

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"disturbances: {name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("late_s", "waits_on_s", "premature_s", "wrong_s", "pause_s"):
            if len(getattr(self, name)) != 2 or not 0 <= getattr(self, name)[0] <= getattr(self, name)[1]:
                raise ConfigError(f"disturbances: {name} is [lowest, highest] in s, got {list(getattr(self, name))}")
        for name in ("wrong_per_minute", "pauses_per_minute"):
            if getattr(self, name) < 0:
                raise ConfigError(f"disturbances: {name} must be >= 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class OracleSpellConfig:
    """When the oracle planner takes over from a learned planner that drives, so that late stages are reached.

    share: the share of the time in which it does so.
    oracle_s: for how many seconds at a time, lowest and highest.
    rescue_after_s: it also takes over in a stage that takes so many seconds longer than it may, until the stage is
    passed; null: never.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"truth_s": "oracle_s"}

    share: float = 0.25
    oracle_s: Range = (4.0, 12.0)
    rescue_after_s: float | None = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigError(f"oracle_spells: share must be in [0, 1), got {self.share}")
        if len(self.oracle_s) != 2 or not 0 < self.oracle_s[0] <= self.oracle_s[1]:
            raise ConfigError(f"oracle_spells: oracle_s is [lowest, highest] in s, got {list(self.oracle_s)}")


@dataclass(frozen=True)
class PlannerDaggerConfig(ArenaDataConfig):
    """Which DAgger episodes are made for the planner.

    driver: "oracle", a perturbed oracle planner, or the folder of a planner's weights. "truth", the former name of
    the oracle planner, is read as "oracle".
    low_level_policy: `skills`, the scripted skills; `expert`, the memoryless expert that learned actors imitate (none
    of its grasps is missed, because it would not notice); or the folder of a learned actor's weights.
    image_every: control steps (20 Hz) from one stored image to the next.
    plan_every_steps, s2_latency_steps: when the driver is asked and when its answer arrives, as in an evaluation.
    execute_steps: how much of a learned actor's chunk is carried out before it is asked again.
    actor_camera_every: control steps from one image to the next that a learned actor sees.
    max_overtime_s: an episode is ended when a stage takes so much longer than it may.
    control_mode: of the actions; joint angles are three times as fast to simulate.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {
        "picture_every": "image_every",
        "hand": "low_level_policy",
        "truth_spells": "oracle_spells",
    }

    kind: Literal["dagger"] = "dagger"
    out: str = "runs/data/dagger"
    driver: str = ORACLE
    low_level_policy: str = SKILLS
    first_seed: int = PLANNER_DAGGER_SEEDS.start
    image_every: int = 10
    plan_every_steps: int = 10
    s2_latency_steps: int = 4
    execute_steps: int = 4
    actor_camera_every: int = 2
    max_overtime_s: float = 15.0
    control_mode: Literal["pd_joint_pos", "pd_ee_delta_pose"] = "pd_joint_pos"
    disturbances: DisturbanceConfig = field(default_factory=DisturbanceConfig)
    oracle_spells: OracleSpellConfig = field(default_factory=OracleSpellConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def models(self) -> dict[str, str]:
        named = {"driver": self.driver, "low_level_policy": self.low_level_policy}
        return {field: name for field, name in named.items() if name not in (ORACLE, *SCRIPTED)}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "driver", FORMER_DRIVERS.get(self.driver, self.driver))
        check_at_least(self, 1, "image_every", "plan_every_steps", "execute_steps", "actor_camera_every")
        check_at_least(self, 0, "s2_latency_steps", "max_overtime_s")
        if self.low_level_policy not in SCRIPTED and self.control_mode != "pd_joint_pos":
            raise ConfigError(
                f"control_mode: the learned actor {self.low_level_policy} is carried out with pd_joint_pos alone"
            )
        if self.driver != ORACLE and self.plan_every_steps % self.image_every:
            raise ConfigError(
                f"a planner sees an image whenever it is asked: plan_every_steps ({self.plan_every_steps}) has to be "
                f"a multiple of image_every ({self.image_every})"
            )
