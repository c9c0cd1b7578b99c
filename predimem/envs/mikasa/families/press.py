"""Pressing the suite's buttons: what counts as a press in its code, and the motions for it.

A button's cap goes down, without being touched, while the TCP is within 3 cm above it: it counts as pressed below
`PRESSED_M` above the unpressed cap's top.
"""

from __future__ import annotations

import numpy as np

from predimem.envs.mikasa.families.motion import GRIPPER_CLOSED, funnel_m, towards

PRESSED_M = 0.025
DOWN_M = 0.012  # aim so far above the unpressed cap's top
CLEAR_M = 0.10  # move over to a button at least so far above its top


def press_goal_m(tcp_m: np.ndarray, top_m: np.ndarray) -> np.ndarray:
    """float64 [3]: where the TCP moves next to press the button with the top `top_m`: up, over it, then down."""
    return funnel_m(tcp_m, top_m + np.array([0.0, 0.0, DOWN_M]), float(top_m[2]) + CLEAR_M)


def press(tcp_m: np.ndarray, top_m: np.ndarray, gripper: float = GRIPPER_CLOSED) -> np.ndarray:
    """float32 [7]: towards pressing the button; at rest, with the button held down, once it is pressed."""
    return towards(tcp_m, press_goal_m(tcp_m, top_m), gripper, arrived_m=0.006)
