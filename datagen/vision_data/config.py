"""Which images of scenes are made to train vision towers on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from datagen.generation import ArenaDataConfig, check_at_least
from predimem.core.config import ConfigError
from predimem.core.seeds import VISION_DATA_SEEDS


@dataclass(frozen=True)
class VisionDataConfig(ArenaDataConfig):
    """Which states of which scenes are shown. What is neither a moment of a motion nor scrambled is as subtasks leave
    it, with the gripper anywhere.

    frames: images of each seed's scene by both cameras.
    motion_share: the share of draws that are moments of a skill's motion, up to three frames each.
    scramble_share: the share of draws in which things are in any place of the task and anything may be open.
    """

    kind: Literal["vision_data"] = "vision_data"
    out: str = "runs/data/vision_data"
    episodes: int = 60
    first_seed: int = VISION_DATA_SEEDS.start
    frames: int = 8
    motion_share: float = 0.4
    scramble_share: float = 0.35

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "frames")
        if not (self.motion_share >= 0 and self.scramble_share >= 0 and self.motion_share + self.scramble_share <= 1):
            raise ConfigError(
                "motion_share and scramble_share are shares of all draws: expected both >= 0 and their sum <= 1, got "
                f"{self.motion_share} and {self.scramble_share}"
            )
