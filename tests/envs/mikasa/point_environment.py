"""A simulator of nothing but a point that covers 0.04 m of every 0.1 m commanded: for the expert."""

from __future__ import annotations

from typing import Any

import numpy as np

from predimem.core.types import Observation, StepResult
from predimem.envs.mikasa.families.touch_one import WAIT, WATCH, TouchOne, touch

# Looks down along -z from 1 m above the origin: u = x / depth, v = -y / depth, 100 pixels at 1 m.
CAMERA = np.array([[100.0, 0, -50, 50], [0, -100, -50, 50], [0, 0, -1, 1]])
CUE_END, APPEAR = 2, 4
LABELS = ("red cube", "lime cube", "blue cube")


class PointFamily(TouchOne):
    """A touch family whose objects are those of this simulator."""

    def subtasks(self, task: str) -> tuple[str, ...]:
        return (WATCH, WAIT, *map(touch, LABELS))


POINT = PointFamily("Point", ("",), lambda base: base.target)


class PointEnvironment:
    """Three objects in a row; the target is seed % 3. Task "deaf" ignores every action."""

    family = POINT
    look_steps: frozenset[int] | None = None
    instruction = "touch the same"
    action_dim = 7
    horizon = 16
    control_hz = 20.0

    def __init__(self, task: str):
        self._task = task
        self._objects = np.array([[-0.2, 0, 0.02], [0, 0, 0.02], [0.2, 0, 0.02]])

    def reset(self, seed: int) -> Observation:
        self._target = seed % 3
        self._tcp = np.array([0.0, 0.1, 0.3])
        self._step = 0
        return self._observe()

    def step(self, action: np.ndarray) -> StepResult:
        if self._task != "deaf" and self._step >= APPEAR:
            self._tcp = self._tcp + 0.04 * action[:3]
        self._step += 1
        near = bool(np.linalg.norm(self._objects[self._target] - self._tcp) < 0.05)
        return StepResult(self._observe(), False, self._step >= self.horizon, near)

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return np.zeros(7, np.float32)

    def true_state(self) -> dict[str, Any]:
        return self.privileged()

    def privileged(self) -> dict[str, Any]:
        shown = self._objects if self._step >= APPEAR else np.full((3, 3), np.nan)
        return {
            "step": self._step,
            "cue_end_step": CUE_END,
            "appear_step": APPEAR,
            "tcp_m": self._tcp.copy(),
            "base_m": np.array([-0.6, 0.0, 0.0]),
            "gripper_m": 0.08,
            "labels": LABELS,
            "objects_m": shown.copy(),
            "target_index": self._target,
            "target_label": LABELS[self._target],
            "cameras": {"base_camera": CAMERA},
            "image_size": {"base_camera": (100, 100)},
        }

    def close(self) -> None:
        pass

    def _observe(self) -> Observation:
        if self.look_steps is None or self._step in self.look_steps or self._step == 0:
            self._seen_at = self._step
        image = np.full((8, 8, 3), self._seen_at, np.uint8)
        state = np.concatenate([self._tcp, np.zeros(3), [0.08]]).astype(np.float32)
        return Observation(self._step, {"base_camera": image}, state, self._step / self.control_hz)
