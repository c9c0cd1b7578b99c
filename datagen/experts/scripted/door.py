"""Opening and closing the microwave's door."""

from __future__ import annotations

import numpy as np

from datagen.experts.scripted.drawer import go_over
from datagen.experts.scripted.scene import Scene
from predimem.envs.arena.fixtures import DOOR, MICROWAVE
from predimem.envs.arena.robot.arm import CLOSED, CONTROL_HZ, OPEN, Arm, Motion
from predimem.envs.arena.robot.rotations import FLIP, forward, nearest

PITCH_RAD = 1.0  # below the horizon
OPENED_RAD = 1.65  # beyond a right angle: the gripper then passes the door on its way in
SWING_RAD_S = 0.5
FOLLOW = 0.35  # the gripper turns by this share of the door's angle: the bar turns a little between its fingers
REACH_M_S = 0.15
BEFORE_M = 0.10  # the approach to the handle begins this far from it, along the gripper's axis
PUSH_INSET_M = 0.07  # the door is pushed this far from its free edge,
PUSH_BELOW_M = 0.025  # so little below its top that the gripper stays above the door,
PUSH_FROM_M = 0.06  # from this far outside of its hinge's plane
PUSH_END_M = 0.02  # to this far: 1 cm into its shut outer face
TOUCH_SHARE = 0.25  # the part of the push in which the fingers come close to the door
RETREAT_M = 0.08


def open_door(arm: Arm, scene: Scene) -> Motion:
    """Swing the door open by its handle to `OPENED_RAD`, from however far it is open; then home."""
    start, hinge = scene.opening(DOOR), scene.position_m("door")
    if start < OPENED_RAD:
        rotation = door_rotation(arm, start)
        handle = in_door_m(hinge, start, MICROWAVE.handle_in_door_m)
        approach = rotation[:, 2]
        yield from arm.grip(OPEN, steps=2)
        yield from go_over(arm, handle - BEFORE_M * approach, rotation)
        yield from arm.move(handle, rotation, speed_m_s=REACH_M_S)
        yield from arm.grip(CLOSED)

        def swing(share: float) -> tuple[np.ndarray, np.ndarray]:
            angle = start + share * (OPENED_RAD - start)
            return in_door_m(hinge, angle, MICROWAVE.handle_in_door_m), door_rotation(arm, angle)

        yield from arm.follow(swing, _steps(OPENED_RAD - start), settle=3)
        yield from arm.grip(OPEN, steps=6)
        yield from arm.move(arm.position - BEFORE_M * arm.rotation[:, 2], settle=0)
    yield from arm.go_home()


def close_door(arm: Arm, scene: Scene) -> Motion:
    """Push the door shut with closed fingers against its outside; then home."""
    start, hinge = scene.opening(DOOR), scene.position_m("door")
    along, up = MICROWAVE.width_m - PUSH_INSET_M, MICROWAVE.height_m - PUSH_BELOW_M

    def push(share: float) -> tuple[np.ndarray, np.ndarray]:
        near = min(1.0, share / TOUCH_SHARE)
        outside = PUSH_FROM_M + near * (PUSH_END_M - PUSH_FROM_M)
        angle = start * (1 - share)
        return in_door_m(hinge, angle, (-outside, along, up)), door_rotation(arm, angle)

    yield from arm.grip(CLOSED, steps=4)
    yield from go_over(arm, *push(0.0))
    yield from arm.follow(push, _steps(start) + CONTROL_HZ // 2, settle=4)
    yield from arm.move(arm.position - [RETREAT_M, 0.0, 0.0], settle=0)
    yield from arm.go_home()


def in_door_m(hinge: np.ndarray, angle_rad: float, point_m: tuple[float, float, float]) -> np.ndarray:
    """[3]: a point of the door's frame in the world when the door is open by an angle."""
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    x, y, z = point_m
    return hinge + np.array([cos * x - sin * y, sin * x + cos * y, z])


def door_rotation(arm: Arm, angle_rad: float) -> np.ndarray:
    """[3, 3]: pointing from above at the door that is open by an angle, closing sideways."""
    ahead = forward(PITCH_RAD)
    side = nearest([np.eye(3), FLIP], ahead.T @ arm.rest_rotation)
    return forward(PITCH_RAD, FOLLOW * angle_rad) @ side


def _steps(angle_rad: float) -> int:
    return max(1, int(np.ceil(abs(angle_rad) / SWING_RAD_S * CONTROL_HZ)))
