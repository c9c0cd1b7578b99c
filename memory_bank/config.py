"""Says which memory the planner has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from predimem.core.own_code import full_place


@dataclass(frozen=True)
class MemoryConfig:
    """Which memory the planner has. The memory interfaces that are compared differ in this config alone.

    recent_window: how many timesteps the recent window has (RoboMemArena: W = 5).
    keyframe_capacity: how many keyframes are kept; when the bank is full, the oldest one goes. None sets no limit.
    cluster_gap_steps: nominations that are no further apart are one event (RoboMemArena's reference runtime: 6).
    history_steps: a frame can be nominated as long as it is among so many last observations; a cluster of nominations
        is settled when its first step is so many control steps old.
    keyframes: False is the ablation without a keyframe bank.
    recent_stride_steps: the control steps from one timestep of the window to the next. At 20 Hz five consecutive frames
        span a quarter of a second, in which nothing ends. A long window of sparse frames without keyframes is the
        native-video interface.
    past_subtasks: True is the text memory, which lists the planner's own answers so far.
    implementation: the class of a memory of one's own (`predimem.core.interfaces.Memory`), as "package.module:Class" or
        "path/to/file.py:Class"; None is the memory bank. In YAML `memory: file.py:Class` states this field alone.
    options: keyword arguments for that class, which gets this config as its first argument.
    """

    recent_window: int = 5
    keyframe_capacity: int | None = None
    cluster_gap_steps: int = 6
    history_steps: int = 256
    keyframes: bool = True
    recent_stride_steps: int = 1
    past_subtasks: bool = False
    implementation: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.recent_window < 1:
            raise ValueError(f"recent_window must be at least 1, got {self.recent_window}")
        if self.recent_stride_steps < 1:
            raise ValueError(f"recent_stride_steps must be at least 1, got {self.recent_stride_steps}")
        if self.keyframe_capacity is not None and self.keyframe_capacity < 1:
            raise ValueError(
                f"keyframe_capacity must be at least 1 or null (uncapped), got {self.keyframe_capacity}; "
                "for no keyframes at all set keyframes: false"
            )
        if self.cluster_gap_steps < 0:
            raise ValueError(f"cluster_gap_steps must not be negative, got {self.cluster_gap_steps}")
        if self.history_steps < self.window_steps:
            raise ValueError(
                f"history_steps ({self.history_steps}) must cover the {self.window_steps} control steps of the "
                f"recent window (recent_window {self.recent_window}, recent_stride_steps {self.recent_stride_steps})"
            )
        if self.implementation is not None:
            object.__setattr__(self, "implementation", full_place(self.implementation, "memory: implementation"))
        elif self.options:
            raise ValueError("memory: options are for a class of your own; name it in memory: implementation")

    @property
    def window_steps(self) -> int:
        """Control steps that a full recent window spans, both ends included."""
        return (self.recent_window - 1) * self.recent_stride_steps + 1
