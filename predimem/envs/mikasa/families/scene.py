"""The parts of a family's state that all tasks share: the robot and the cameras."""

from __future__ import annotations

from typing import Any

import numpy as np

BULB_M = np.array([0.0, 0.0, 0.08])  # from the foot of one of the suite's lamps to the middle of its bulb


def robot_state(base: Any, step: int) -> dict[str, Any]:
    """step; tcp_m: float64 [3], world frame; base_m: float64 [3], the robot's base, whose axes are the world's;
    gripper_m: the opening of the gripper."""
    return {
        "step": step,
        "tcp_m": position_m(base.agent.tcp),
        "base_m": position_m(base.agent.robot),
        "gripper_m": float(base.agent.robot.get_qpos()[0, -2:].sum()),
    }


def position_m(thing: Any) -> np.ndarray:
    """float64 [3], world frame: where an actor or a link is."""
    return np.asarray(thing.pose.p[0].cpu(), np.float64)


def pointing(base: Any) -> np.ndarray:
    """float64 [3], world frame: where the fingers point, a unit vector."""
    return axes(base.agent.tcp)[:, 2]


def axes(thing: Any) -> np.ndarray:
    """float64 [3, 3], world frame: the axes of an actor or a link, one a column."""
    return np.asarray(thing.pose.to_transformation_matrix()[0, :3, :3].cpu(), np.float64)


def camera_state(base: Any) -> dict[str, Any]:
    """cameras: name -> float64 [3, 4], from world metres to pixels (u right, v down). image_size: name -> (width,
    height)."""
    matrices, sizes = {}, {}
    for name, params in base.get_sensor_params().items():
        intrinsic = np.asarray(params["intrinsic_cv"][0].cpu(), np.float64)
        extrinsic = np.asarray(params["extrinsic_cv"][0].cpu(), np.float64)
        matrices[name] = intrinsic @ extrinsic
        camera = base.scene.sensors[name].camera
        sizes[name] = (int(camera.width), int(camera.height))
    return {"cameras": matrices, "image_size": sizes}
