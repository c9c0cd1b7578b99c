"""From a config to a grasp detector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from datagen.grasp.antipodal import AntipodalConfig, AntipodalDetector
from datagen.grasp.anygrasp import AnyGraspConfig, AnyGraspDetector
from datagen.grasp.types import GraspDetector


@dataclass(frozen=True)
class GraspConfig:
    """detector: "antipodal" (geometry, on the CPU, always there) or "anygrasp" (learned, with a licence)."""

    detector: Literal["antipodal", "anygrasp"] = "antipodal"
    antipodal: AntipodalConfig = field(default_factory=AntipodalConfig)
    anygrasp: AnyGraspConfig = field(default_factory=AnyGraspConfig)


def make_detector(config: GraspConfig) -> GraspDetector:
    """Raises `datagen.grasp.anygrasp.AnyGraspUnavailable` where that one was chosen and is not to be had."""
    if config.detector == "anygrasp":
        return AnyGraspDetector(config.anygrasp)
    if config.detector == "antipodal":
        return AntipodalDetector(config.antipodal)
    raise ValueError(f"detector is 'antipodal' or 'anygrasp', not {config.detector!r}")
