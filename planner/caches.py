"""Says how much memory a planner may spend to save time."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True)
class CacheConfig:
    """How much a planner remembers between its answers. It costs memory and saves time; no answer depends on it, but
    for `half_features`. Sizes are in MiB, for all robots together, each of which has a fair share.

    prefix_mb: keys and values of the part of the prompt that stays the same, on the model's device. A keyframe of two
        images of 256 px takes 20 MB with the 8B model, and an arena's keyframe 30 kB with the tiny one. 0 keeps none,
        so that every prompt is read from its beginning.
    features_mb: features of images, on the model's device: 4 MB for a timestep of two such images with the 8B model.
    spill_mb: further features of images in the host's memory, from where they are fetched when they are needed again.
    episodes: of so many episodes something is remembered; beyond that, the one that was not asked about for longest is
        forgotten.
    half_features: features are rounded to half precision. This matters for a planner in float32; one on a GPU computes
        in half precision anyway.
    """

    prefix_mb: int = 4096
    features_mb: int = 512
    spill_mb: int = 0
    episodes: int = 64
    half_features: bool = False

    def __post_init__(self) -> None:
        for name in ("prefix_mb", "features_mb", "spill_mb"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1, got {self.episodes}")
