"""What pictures of scenes to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from predimem.core.config import ConfigError
from predimem.core.seeds import check_training_seed

FIRST_SEED = 60_000  # apart from the seeds of whole episodes


@dataclass(frozen=True)
class ScenesConfig:
    """tasks: of the arena, empty: all 26; of each, `episodes` seeds from `first_seed` on. frames: pictures of each
    seed's scene by both cameras. motion_share: of draws that are moments of a skill's motion (up to three frames
    each); scramble_share: of those in which things are in any place of the task and anything may be open. The
    rest is as subtasks leave it, the hand anywhere.
    """

    suite: Literal["scenes"] = "scenes"
    out: str = "runs/data/scenes"
    tasks: tuple[str, ...] = ()
    episodes: int = 60
    first_seed: int = FIRST_SEED
    frames: int = 8
    image_px: int = 128
    motion_share: float = 0.4
    scramble_share: float = 0.35

    def __post_init__(self) -> None:
        for name in ("episodes", "frames", "image_px"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")
        if not (self.motion_share >= 0 and self.scramble_share >= 0 and self.motion_share + self.scramble_share <= 1):
            raise ConfigError(
                "motion_share and scramble_share are shares of all draws: expected both >= 0 and their sum <= 1, got "
                f"{self.motion_share} and {self.scramble_share}"
            )
        for seed in (self.first_seed, self.first_seed + self.episodes - 1):
            check_training_seed(seed, "first_seed, episodes")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)
