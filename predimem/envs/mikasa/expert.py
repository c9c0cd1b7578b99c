"""A scripted expert for MIKASA's Remember* tasks, and the subtask labels that images can justify.

It reads the simulator's state (`MikasaEnvironment.privileged()`), has no memory of its own, and can
therefore label any state that any policy visits, for any of the objects on the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from predimem.core.episodes import Alternatives

State = Mapping[str, Any]

ACTION_DIM = 7
CHUNK_STEPS = 8
METRES_PER_UNIT = 0.1  # pd_ee_delta_pose: an action of 1 commands 0.1 m
GRIPPER_CLOSED = -1.0

HOVER_M = 0.03  # above the object's centre; a touch counts within 0.05 m
GAIN = 1.5
MAX_STEP_M = 0.1
REACHED_SHARE = 0.4  # of a commanded step, about what the controller covers within it
ARRIVED_M = 0.012

WATCH, WAIT = "watch", "wait"


class RememberExpert:
    """The expert as a `predimem.core.interfaces.Expert` in a `MikasaEnvironment`."""

    subtask = ""

    def __init__(self, environment: Any):
        self._environment = environment

    def reset(self) -> None:
        """It has no state."""

    def action(self) -> np.ndarray:
        return expert_action(self._environment.privileged())


def remember_expert(environment: Any) -> RememberExpert:
    return RememberExpert(environment)


def true_subtask(environment: Any) -> Callable[[], str]:
    return lambda: expert_subtask(environment.privileged())


def touch(label: str) -> str:
    return f"touch the {label}"


def expert_subtask(state: State) -> str:
    """`watch` while the cue shows, `wait` while the table is empty, then `touch the <label>`."""
    if state["step"] < state["cue_end_step"]:
        return WATCH
    if state["step"] < state["appear_step"]:
        return WAIT
    return touch(state["target_label"])


def expert_action(state: State, target: int | None = None) -> np.ndarray:
    """float32 [7] for this step: towards object `target` (the true one by default), else hold."""
    if state["step"] < state["appear_step"]:
        return hold()
    index = state["target_index"] if target is None else target
    return _move(state["tcp_m"], _goal(state["objects_m"][index]))


def expert_chunk(state: State, target: int) -> np.ndarray:
    """float32 [8, 7]: the next actions towards object `target`, rolled out with `REACHED_SHARE`."""
    goal, position = _goal(state["objects_m"][target]), np.array(state["tcp_m"], np.float64)
    actions = []
    for _ in range(CHUNK_STEPS):
        action = _move(position, goal)
        actions.append(action)
        position = position + REACHED_SHARE * METRES_PER_UNIT * action[:3]
    return np.stack(actions)


def hold() -> np.ndarray:
    """float32 [7]: no motion, gripper closed as in every other action of this expert."""
    action = np.zeros(ACTION_DIM, np.float32)
    action[-1] = GRIPPER_CLOSED
    return action


def goal_distance_m(state: State) -> float:
    """From the TCP to where it hovers over the true target; NaN while that is hidden."""
    return float(np.linalg.norm(_goal(state["objects_m"][state["target_index"]]) - state["tcp_m"]))


def alternatives(states: Sequence[State]) -> Alternatives:
    """What the expert would do at each of T states for each of K = N + 2 subtasks.

    Subtasks: watch, wait, then a touch of each object in key order. Before the objects appear, watch
    and wait are valid (both hold); after that, wait (hold) and every touch.
    """
    labels = states[0]["labels"]
    subtasks = (WATCH, WAIT, *map(touch, labels))
    cameras = tuple(states[0]["cameras"])
    shape = (len(states), len(subtasks))
    chunks = np.tile(hold(), (*shape, CHUNK_STEPS, 1))
    valid = np.zeros(shape, bool)
    targets_m = np.full((*shape, 3), np.nan, np.float32)
    pixels = np.full((*shape, len(cameras), 2), np.nan, np.float32)
    for t, state in enumerate(states):
        appeared = state["step"] >= state["appear_step"]
        valid[t] = [not appeared, True, *[appeared] * len(labels)]
        if not appeared:
            continue
        for i, position in enumerate(state["objects_m"]):
            chunks[t, 2 + i] = expert_chunk(state, i)
            targets_m[t, 2 + i] = position - state["base_m"]
            for c, name in enumerate(cameras):
                pixels[t, 2 + i, c] = project(position, state["cameras"][name], state["image_size"][name])
    return Alternatives(subtasks, chunks.astype(np.float32), valid, targets_m, pixels)


def project(point_m: np.ndarray, matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(u, v) of a world point as fractions of width and height, NaN where it is not in the image.

    matrix: [3, 4] from world metres to pixels. What hides the point is not looked at.
    """
    u, v, depth = matrix @ np.append(point_m, 1.0)
    if not depth > 0:
        return np.full(2, np.nan)
    fraction = np.array([u, v]) / depth / np.asarray(size)
    return fraction if bool(((fraction >= 0) & (fraction < 1)).all()) else np.full(2, np.nan)


def _goal(object_m: np.ndarray) -> np.ndarray:
    return np.asarray(object_m, np.float64) + np.array([0.0, 0.0, HOVER_M])


def _move(tcp_m: np.ndarray, goal_m: np.ndarray) -> np.ndarray:
    action = hold()
    error = goal_m - tcp_m
    if np.linalg.norm(error) >= ARRIVED_M:
        step = GAIN * error
        length = np.linalg.norm(step)
        action[:3] = step * min(1.0, MAX_STEP_M / length) / METRES_PER_UNIT
    return action
