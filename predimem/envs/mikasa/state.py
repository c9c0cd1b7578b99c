"""What MIKASA's Remember* environments know and a learned agent must not: for experts and oracles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

TOUCH_DISTANCE_M = 0.05  # the suite's own GOAL_THRESH
HIDDEN_ABOVE_M = 100.0  # the suite parks hidden objects at a height of 1000 m

_COLOUR_NAMES = {(1, 0, 0): "red", (0, 1, 0): "lime", (0, 0, 1): "blue"}
_SHAPE_NAMES = {"pyramide": "pyramid", "t_shape": "t-shape"}


def has_objects(task_id: str) -> bool:
    """Whether `privileged` knows this task: RememberColor, RememberShape and RememberShapeAndColor."""
    return task_id.startswith("Remember")


def privileged(base: Any, task_id: str, step: int) -> dict[str, Any]:
    """The true state at control step `step`, as plain values.

    step, cue_end_step, appear_step: int; the cue shows at steps < cue_end_step, the objects to choose
    from at steps >= appear_step. tcp_m: float64 [3], world frame, as objects_m; base_m: float64 [3],
    the robot's base (its axes are the world's). labels: tuple of N str such as "teal cube".
    objects_m: float64 [N, 3], NaN for an object that is hidden at this step. target_index: int,
    target_label: str. cameras: name -> float64 [3, 4], from world metres to pixels (u right, v down).
    image_size: name -> (width, height). Raises ValueError for tasks that have no such objects.
    """
    if not has_objects(task_id):
        raise ValueError(f"privileged state is known for Remember* tasks only, not for {task_id}")
    actors, labels, target = _objects(base)
    positions = np.stack([np.asarray(actor.pose.p[0].cpu(), np.float64) for actor in actors])
    positions[positions[:, 2] > HIDDEN_ABOVE_M] = np.nan
    cue_end = int(base.cue_steps_per_env[0])
    cameras, sizes = _cameras(base)
    return {
        "step": step,
        "cue_end_step": cue_end,
        "appear_step": cue_end + int(base.empty_steps_per_env[0]),
        "tcp_m": np.asarray(base.agent.tcp.pose.p[0].cpu(), np.float64),
        "base_m": np.asarray(base.agent.robot.pose.p[0].cpu(), np.float64),
        "labels": labels,
        "objects_m": positions,
        "target_index": target,
        "target_label": labels[target],
        "cameras": cameras,
        "image_size": sizes,
    }


def _objects(base: Any) -> tuple[list[Any], tuple[str, ...], int]:
    """The objects by key, their labels and the target's index, for each of the three families."""
    if hasattr(base, "shape_color_dict"):
        keys = sorted(base.shape_color_dict)
        kinds = [base.shape_color_dict[k] for k in keys]
        labels = tuple(f"{_colour_name(k['color'])} {_shape_name(k['shape'])}" for k in kinds)
        return [base.shape_actors[k] for k in keys], labels, int(base.true_shape_indices[0])
    if hasattr(base, "shape_dict"):
        keys = sorted(base.shape_dict)
        labels = tuple(_shape_name(base.shape_dict[k]) for k in keys)
        return [base.shape_actors[k] for k in keys], labels, int(base.true_shape_indices[0])
    keys = sorted(base.color_dict)
    labels = tuple(f"{base.COLOR_MAPPING[k][0].lower()} cube" for k in keys)
    return [base.cubes[k] for k in keys], labels, int(base.true_color_indices[0])


def _colour_name(rgba: np.ndarray) -> str:
    return _COLOUR_NAMES[tuple(int(c) for c in rgba[:3])]  # type: ignore[index]


def _shape_name(name: str) -> str:
    return _SHAPE_NAMES.get(name, name)


def _cameras(base: Any) -> tuple[dict[str, np.ndarray], dict[str, tuple[int, int]]]:
    matrices, sizes = {}, {}
    for name, params in base.get_sensor_params().items():
        intrinsic = np.asarray(params["intrinsic_cv"][0].cpu(), np.float64)
        extrinsic = np.asarray(params["extrinsic_cv"][0].cpu(), np.float64)
        matrices[name] = intrinsic @ extrinsic
        camera = base.scene.sensors[name].camera
        sizes[name] = (int(camera.width), int(camera.height))
    return matrices, sizes


class FirstTouch:
    """Which object the TCP came near first in an episode. A wrong touch costs nothing in the suite."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._wrong = 0.0

    def update(self, state: Mapping[str, Any]) -> dict[str, float | str]:
        """`wrong_first_touch` and, unless the target is hidden, `target_distance_m` at `state`.

        At the step of a wrong first touch `mistake` says what was touched and what was right.
        """
        distances = np.linalg.norm(state["objects_m"] - state["tcp_m"], axis=1)
        mistake = ""
        if self._first is None and state["step"] >= state["appear_step"]:
            nearest = int(np.nanargmin(distances))
            if distances[nearest] < TOUCH_DISTANCE_M:
                self._first = nearest
                self._wrong = float(nearest != state["target_index"])
                if self._wrong:
                    mistake = f"touched the {state['labels'][nearest]}; the {state['target_label']} was right"
        report: dict[str, float | str] = {"wrong_first_touch": self._wrong}
        if mistake:
            report["mistake"] = mistake
        target_m = float(distances[state["target_index"]])
        return report if np.isnan(target_m) else report | {"target_distance_m": target_m}
