"""ALOHA's joints and grippers in the units that π0.5's base weights were trained with, and back.

ALOHA's 14 numbers are six joints and a gripper for the left arm, then the same for the right one. The base weights saw
arms whose second and third joint turn the other way, and grippers as an angle. The numbers are those of the Trossen
arms: the gripper's travel in m, the lengths of its crank in m, and the angles in rad between which each side of the
conversion scales its gripper to 0 ... 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ALOHA_DIM = 14
GRIPPERS = (6, 13)
SIGNS = np.array([1, -1, -1, 1, 1, 1, 1] * 2, np.float64)
OPENING_M = (0.01844, 0.05800)
CRANK_M, ROD_M = 0.022, 0.036
MODEL_ANGLE_RAD = (0.5476, 1.6296)
COMMAND_ANGLE_RAD = (-0.6213, 1.4910)


@dataclass(frozen=True)
class AlohaState:
    """A measured state, float [..., 14], to the model's. Grippers come as 0 (closed) to 1 (open) of their travel."""

    def __call__(self, state: np.ndarray) -> np.ndarray:
        state = SIGNS * state
        opening_m = _from_unit(state[..., GRIPPERS], OPENING_M)
        sine = (CRANK_M**2 + opening_m**2 - ROD_M**2) / (2 * CRANK_M * opening_m)
        state[..., GRIPPERS] = _to_unit(np.arcsin(np.clip(sine, -1, 1)), MODEL_ANGLE_RAD)
        return state


@dataclass(frozen=True)
class AlohaActions:
    """The model's actions, float [..., 14], to commands for the robot."""

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        actions = SIGNS * actions
        angle_rad = actions[..., GRIPPERS] + MODEL_ANGLE_RAD[0]
        actions[..., GRIPPERS] = _to_unit(angle_rad, COMMAND_ANGLE_RAD)
        return actions


@dataclass(frozen=True)
class FromAlohaActions:
    """The inverse of `AlohaActions`: recorded commands to what the model learns."""

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        actions = SIGNS * actions
        angle_rad = _from_unit(actions[..., GRIPPERS], COMMAND_ANGLE_RAD)
        actions[..., GRIPPERS] = angle_rad - MODEL_ANGLE_RAD[0]
        return actions


def _to_unit(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    return (values - bounds[0]) / (bounds[1] - bounds[0])


def _from_unit(values: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    return values * (bounds[1] - bounds[0]) + bounds[0]
