"""Which demonstrations of the arena are made, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from datagen.decompose.config import VlmConfig
from datagen.execution.config import ExecutionConfig
from datagen.generation import ArenaDataConfig, check_at_least
from datagen.grasp.make import GraspConfig
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError


@dataclass(frozen=True)
class DecompositionConfig:
    """How instructions are decomposed.

    by: "rules" (offline) or "vlm", the model of an OpenAI-compatible endpoint.
    vlm: which endpoint and model; needed with "vlm" alone.
    """

    by: Literal["rules", "vlm"] = "rules"
    vlm: VlmConfig | None = None

    def __post_init__(self) -> None:
        if (self.by == "vlm") != (self.vlm is not None):
            raise ConfigError("decomposition: `by: vlm` needs `vlm: {model: ..., base_url: ...}`, and `by: rules` none")


@dataclass(frozen=True)
class GenerationConfig(ArenaDataConfig):
    """How demonstrations are made from perception.

    image_every: control steps (20 Hz) from one stored image to the next.
    depth_px: width and height of the RGB-D images that the executor looks at.
    control_mode: of the actions.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"picture_every": "image_every"}
    may_differ: ClassVar[tuple[str, ...]] = (
        *ArenaDataConfig.may_differ,
        *(f"decomposition.vlm.{name}" for name in ("base_url", "api_key", "timeout_s", "max_tokens", "exchanges")),
    )

    kind: Literal["arena"] = "arena"
    out: str = "runs/data/arena"
    image_every: int = 2
    depth_px: int = 256
    control_mode: Literal["pd_ee_delta_pose", "pd_joint_pos"] = "pd_ee_delta_pose"
    decomposition: DecompositionConfig = field(default_factory=DecompositionConfig)
    grasp: GraspConfig = field(default_factory=GraspConfig)
    execution: ExecutionConfig = field(default_factory=ExecutionConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "image_every", "depth_px")
