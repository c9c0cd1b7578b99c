"""Opening and closing the drawers of the cabinet."""

from __future__ import annotations

import numpy as np

from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import CABINET
from predimem.envs.arena.robot.arm import CLOSED, OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import FLIP, forward, nearest

PITCH_RAD = 1.0  # below the horizon: flatter, the wrist does not reach the bottom drawer
PULLED_M = 0.18  # how far open a drawer is pulled: far enough for things to be set down behind its front
PULL_M_S, REACH_M_S, PUSH_M_S = 0.15, 0.15, 0.20
BEFORE_M = 0.12  # the approach to the handle begins this far from it, along the gripper's axis
TRANSIT_M = 0.36  # the TCP passes over objects and open drawers at this height
PUSH_FROM_M = 0.05  # the closed fingers touch down this far in front of the handle
PUSH_END_M = 0.010  # and stop this far before its shut place, 7 mm into it: pushed harder they slip off sideways
RETREAT_M = 0.06
# From here the hand camera looks into the open drawer, and the arm does not hide it from agentview.
LOOK_FROM_HANDLE_M, LOOK_PITCH_RAD = np.array([-0.05, 0.0, 0.25]), 1.2


def open_drawer(arm: Arm, scene: Scene, drawer: str) -> Motion:
    """Pull a drawer by its handle until it is `PULLED_M` open, from however far it is open; ends looking into it."""
    missing = PULLED_M - scene.opening(drawer)
    if missing > 0:
        handle, rotation = _handle_m(scene, drawer), nearest_forward(arm, PITCH_RAD)
        approach = rotation[:, 2]
        yield from arm.grip(OPEN, steps=2)
        yield from go_over(arm, handle - BEFORE_M * approach, rotation)
        yield from arm.move(handle, rotation, speed_m_s=REACH_M_S)
        yield from arm.grip(CLOSED)
        yield from arm.move(handle - [missing, 0.0, 0.0], rotation, speed_m_s=PULL_M_S, settle=4)
        yield from arm.grip(OPEN, steps=6)
        yield from arm.move(arm.position - BEFORE_M * approach, rotation, settle=0)
    x, y, z = _handle_m(scene, drawer) + LOOK_FROM_HANDLE_M
    yield from arm.rise(z)
    yield from arm.move(np.array([x, y, arm.position[2]]), nearest_forward(arm, LOOK_PITCH_RAD))


def close_drawer(arm: Arm, scene: Scene, drawer: str) -> Motion:
    """Push a drawer shut with closed fingers against its handle; then home."""
    handle, rotation = _handle_m(scene, drawer), nearest_forward(arm, PITCH_RAD)
    start = handle - [PUSH_FROM_M, 0.0, 0.0]
    end = handle + np.array([scene.opening(drawer) - PUSH_END_M, 0.0, 0.0])
    yield from arm.grip(CLOSED, steps=4)
    yield from go_over(arm, start, rotation)
    yield from arm.move(end, rotation, speed_m_s=PUSH_M_S, settle=4)
    yield from arm.move(end - [RETREAT_M, 0.0, 0.0], rotation, settle=0)
    yield from arm.go_home()


def _handle_m(scene: Scene, drawer: str) -> np.ndarray:
    """[3]: the middle of the handle's bar."""
    return scene.position_m(drawer) + scene.rotation(drawer) @ np.array(CABINET.handle_in_drawer_m)


def nearest_forward(arm: Arm, pitch_rad: float) -> np.ndarray:
    """[3, 3]: pointing ahead, `pitch_rad` below the horizon, closing sideways."""
    ahead = forward(pitch_rad)
    return nearest([ahead, ahead @ FLIP], arm.rest_rotation)


def go_over(arm: Arm, position: np.ndarray, rotation: np.ndarray) -> Motion:
    """Up to `TRANSIT_M`, over, and down to a position."""
    height = max(TRANSIT_M, position[2])
    yield from arm.rise(height)
    yield from arm.move(np.array([*position[:2], height]), rotation, settle=0)
    yield from arm.move(position, rotation)
