"""What to generate, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from datagen.decompose.vlm import VlmConfig
from datagen.execution.config import ExecutionConfig
from datagen.grasp.make import GraspConfig
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError
from predimem.core.seeds import TRAINING_SEEDS, check_training_seed


@dataclass(frozen=True)
class DecompositionConfig:
    """by: "rules" (offline) or "vlm", the model of an OpenAI-compatible endpoint."""

    by: Literal["rules", "vlm"] = "rules"
    vlm: VlmConfig | None = None

    def __post_init__(self) -> None:
        if (self.by == "vlm") != (self.vlm is not None):
            raise ConfigError("decomposition: `by: vlm` needs `vlm: {model: ..., base_url: ...}`, and `by: rules` none")


@dataclass(frozen=True)
class GenerationConfig:
    """tasks: ids, names or task files of the arena; empty: all 26. Of each, `episodes` seeds from `first_seed` on.

    image_px: of the pictures that are stored, each `picture_every` control steps (20 Hz). depth_px: of those
    that the executor looks at. control_mode: of the actions.
    """

    suite: Literal["arena"] = "arena"
    out: str = "runs/data/arena"
    tasks: tuple[str, ...] = ()
    episodes: int = 8
    first_seed: int = TRAINING_SEEDS.start
    image_px: int = 128
    picture_every: int = 2
    depth_px: int = 256
    control_mode: Literal["pd_ee_delta_pose", "pd_joint_pos"] = "pd_ee_delta_pose"
    decomposition: DecompositionConfig = field(default_factory=DecompositionConfig)
    grasp: GraspConfig = field(default_factory=GraspConfig)
    execution: ExecutionConfig = field(default_factory=ExecutionConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def __post_init__(self) -> None:
        for name in ("episodes", "image_px", "picture_every", "depth_px"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")
        for seed in (self.first_seed, self.first_seed + self.episodes - 1):
            check_training_seed(seed, "first_seed, episodes")
        if len(set(self.tasks)) != len(self.tasks):
            raise ConfigError(f"each task may be listed once, got {', '.join(self.tasks)}")

    @property
    def seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.episodes)
