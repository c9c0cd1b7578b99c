"""What practice to make: who speaks, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from datagen.generation import ArenaDataConfig, check_at_least
from datagen.keyframes import KeyframeConfig
from predimem.agent.config import SCRIPTED, SKILLS
from predimem.core.config import ConfigError
from predimem.core.seeds import PLANNER_DAGGER_SEEDS

TRUTH = "truth"

Range = tuple[float, float]  # lowest and highest, drawn evenly


@dataclass(frozen=True)
class DisturbanceConfig:
    """What goes wrong in an episode, except in `undisturbed_share` of them.

    What is said (driver `truth` alone): late_share of the switches to another subtask come `late_s` too late (after
    a pour at most a second, lest it is poured once more); in premature_share of the subtasks the next one is said
    too early, for `premature_s`; wrong_per_minute spells of another subtask, of `wrong_s` (of a pour half a second).
    What is done: pauses_per_minute in which the arm stands still for `pause_s`; missed_share of grasps in which the
    gripper does not close; dropped_share of carried things (none that can be poured) for which it opens on the way.
    """

    undisturbed_share: float = 0.33
    late_share: float = 0.35
    late_s: Range = (0.0, 3.0)
    premature_share: float = 0.2
    premature_s: Range = (0.5, 2.0)
    wrong_per_minute: float = 2.0
    wrong_s: Range = (0.5, 2.0)
    pauses_per_minute: float = 2.0
    pause_s: Range = (0.5, 3.0)
    missed_share: float = 0.12
    dropped_share: float = 0.12

    def __post_init__(self) -> None:
        for name in ("undisturbed_share", "late_share", "premature_share", "missed_share", "dropped_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"disturbances: {name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("late_s", "premature_s", "wrong_s", "pause_s"):
            if len(getattr(self, name)) != 2 or not 0 <= getattr(self, name)[0] <= getattr(self, name)[1]:
                raise ConfigError(f"disturbances: {name} is [lowest, highest] in s, got {list(getattr(self, name))}")
        for name in ("wrong_per_minute", "pauses_per_minute"):
            if getattr(self, name) < 0:
                raise ConfigError(f"disturbances: {name} must be >= 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class TruthSpellConfig:
    """How often the truth speaks in a planner's stead: for `truth_s` at a time, such that it makes up `share`; and,
    for each stage that takes `rescue_after_s` longer than it may, until the stage is passed."""

    share: float = 0.25
    truth_s: Range = (4.0, 12.0)
    rescue_after_s: float | None = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ConfigError(f"truth_spells: share must be in [0, 1), got {self.share}")
        if len(self.truth_s) != 2 or not 0 < self.truth_s[0] <= self.truth_s[1]:
            raise ConfigError(f"truth_spells: truth_s is [lowest, highest] in s, got {list(self.truth_s)}")


@dataclass(frozen=True)
class PracticeConfig(ArenaDataConfig):
    """driver: "truth", or the folder of a planner's weights. hand: `skills`, the scripted ones; `expert`, the one
    without a memory whom learned actors imitate (none of its grasps is missed: it would not notice); or the folder of
    a learned actor's weights, of whose chunks `execute_steps` are carried out, with an image every
    `actor_camera_every` control steps.

    image_every: control steps (20 Hz) from one stored image to the next. plan_every_steps, s2_latency_steps: when
    the driver is asked and when its answer arrives, as in an evaluation. max_overtime_s: an episode is ended when a
    stage takes so much longer than it may. control_mode: of the actions; joint angles are three times as fast to
    simulate.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"picture_every": "image_every"}

    suite: Literal["practice"] = "practice"
    out: str = "runs/data/practice"
    driver: str = TRUTH
    hand: str = SKILLS
    first_seed: int = PLANNER_DAGGER_SEEDS.start
    image_every: int = 10
    plan_every_steps: int = 10
    s2_latency_steps: int = 4
    execute_steps: int = 4
    actor_camera_every: int = 2
    max_overtime_s: float = 15.0
    control_mode: Literal["pd_joint_pos", "pd_ee_delta_pose"] = "pd_joint_pos"
    disturbances: DisturbanceConfig = field(default_factory=DisturbanceConfig)
    truth_spells: TruthSpellConfig = field(default_factory=TruthSpellConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "image_every", "plan_every_steps", "execute_steps", "actor_camera_every")
        check_at_least(self, 0, "s2_latency_steps", "max_overtime_s")
        if self.hand not in SCRIPTED and self.control_mode != "pd_joint_pos":
            raise ConfigError(f"control_mode: the learned actor {self.hand} is carried out with pd_joint_pos alone")
        if self.driver != TRUTH and self.plan_every_steps % self.image_every:
            raise ConfigError(
                f"a planner sees an image whenever it is asked: plan_every_steps ({self.plan_every_steps}) has to be "
                f"a multiple of image_every ({self.image_every})"
            )
