"""The protocol of RoboMME's challenge: its client evaluates a policy behind a websocket, in messages of its own.

Like openpi's it opens with metadata, and its messages are msgpack with NumPy arrays. They differ in three ways.
- `{"reset": true}` stands alone, and is answered by `{"reset_finished": true}`. It comes before each episode.
- An observation has lists: all that was seen since the last one, the newest last. In the first message of an episode
  (`is_first_step`) all but the last are the conditioning video, whose steps are counted below 0.
- The client carries out all rows of `actions`, and its simulation stands still until they have come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from predimem.core.types import Observation
from predimem.envs.robomme.robot import ACTION_DIM, STATE_DIM, resized, state_of
from predimem.serving import request as openpi
from predimem.serving.config import ServeConfig
from predimem.serving.refusal import Refusal
from predimem.serving.request import Request
from predimem.serving.robot import RobotSpec
from predimem.serving.sessions import Client

RESET_FINISHED = {"reset_finished": True}
IMAGES = ("front_rgb_list", "wrist_rgb_list")  # in the order of the models' cameras
STATES = ("joint_state_list", "gripper_state_list", "eef_state_list")
SIZES = {"joint_state_list": 7, "gripper_state_list": 2, "eef_state_list": 6}
END_EFFECTOR_DIM = 7
FRAMES = 4000  # of one message: three minutes of video
DEFAULTS: dict[str, Any] = {
    "port": 8001,
    "robot": {"joints": [*range(7), None], "hold": [0.0] * 7 + [1.0], "hold_keeps": [7]},
    "agent": {"execute_steps": 10, "plan_every_steps": 10},
    "limits": {"message_bytes": 1 << 30, "deadline_s": 900.0},
}


def check_models(robot: RobotSpec) -> None:
    """Raises ValueError for models of another robot than RoboMME's."""
    if len(robot.cameras) > len(IMAGES):
        raise ValueError(f"RoboMME has a front and a wrist camera, the actor wants {list(robot.cameras)}")
    if robot.state_dim != STATE_DIM or robot.action_dim not in (ACTION_DIM, END_EFFECTOR_DIM):
        raise ValueError(
            f"RoboMME: expected an actor with states of {STATE_DIM} numbers and actions of {ACTION_DIM} (joint angles) "
            f"or {END_EFFECTOR_DIM} (pose of the end effector), got {robot.state_dim} and {robot.action_dim}: serve "
            "one that was trained on its episodes"
        )


def is_reset(message: Any) -> bool:
    """Whether a message ends the episode. Raises Refusal (`malformed`) for one that is no map."""
    if not isinstance(message, dict):
        raise Refusal("malformed", f"expected a map of observations, got {type(message).__name__}")
    return bool(message.get("reset", False))


def read_request(message: dict[str, Any], client: Client, robot: RobotSpec, config: ServeConfig) -> Request:
    """Raises Refusal: `malformed`, or `order` for an episode that has no beginning."""
    first, last = _is_first(message), _last_step(client)
    if not first and last is None:
        raise Refusal("order", "no episode has begun: its first message has is_first_step: true")
    lists = _lists(message, robot)
    count = len(lists[IMAGES[0]])
    start = 1 - count if first or last is None else last + 1
    watched = tuple(_observation(lists, place, start + place, robot, config) for place in range(count))
    newest = watched[-1]
    told = {"state": newest.state, "prompt": _goal(message), "step": newest.step, "reset": first, **newest.images}
    return replace(openpi.read_request(told, robot, config.limits), watched=watched)


def _is_first(message: dict[str, Any]) -> bool:
    found = message.get("is_first_step")
    if not isinstance(found, bool | np.bool_):
        kind = "nothing" if found is None else type(found).__name__
        raise Refusal("malformed", f"is_first_step: expected true or false, got {kind}")
    return bool(found)


def _last_step(client: Client) -> int | None:
    session = client.session
    return None if session is None or session.closed or not session.begun else session.last_step


def _goal(message: dict[str, Any]) -> Any:
    """RoboMME gives several wordings of a task; the models are trained on the first."""
    found = message.get("task_goal")
    if not isinstance(found, list | tuple) or not found:
        kind = "nothing" if found is None else f"{type(found).__name__} {found!r:.40}"
        raise Refusal("malformed", f"task_goal: expected a list of wordings of the task, at least one, got {kind}")
    return found[0]


def _lists(message: dict[str, Any], robot: RobotSpec) -> dict[str, list[Any]]:
    """The lists that are read, all of one length."""
    wanted = (*IMAGES[: len(robot.cameras)], *STATES)
    lists: dict[str, list[Any]] = {}
    for name in wanted:
        found = message.get(name)
        if not isinstance(found, list | tuple) or not 1 <= len(found) <= FRAMES:
            kind = "nothing" if found is None else type(found).__name__
            kind = f"{len(found)} of them" if isinstance(found, list | tuple) else kind
            raise Refusal("malformed", f"{name}: expected a list of 1 to {FRAMES} frames, the newest last, got {kind}")
        lists[name] = list(found)
    lengths = {name: len(found) for name, found in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise Refusal("malformed", f"expected lists of one length, with an entry for each control step, got {told}")
    return lists


def _observation(
    lists: dict[str, list[Any]], place: int, step: int, robot: RobotSpec, config: ServeConfig
) -> Observation:
    images = {
        camera: resized(_image(name, place, lists[name][place]), robot.image_size)
        for camera, name in zip(robot.cameras, IMAGES, strict=False)
    }
    state = state_of(*(_numbers(name, place, lists[name][place]) for name in STATES))
    return Observation(step, images, state, step / config.robot.control_hz)


def _image(name: str, place: int, found: Any) -> np.ndarray:
    if not isinstance(found, np.ndarray) or found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
        came = f"{found.dtype} {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise Refusal("malformed", f"{name}[{place}]: expected uint8 [height, width, 3], RGB, got {came}")
    if not found.size:
        raise Refusal("malformed", f"{name}[{place}]: expected an image, got one without pixels: {list(found.shape)}")
    return found


def _numbers(name: str, place: int, found: Any) -> np.ndarray:
    try:
        numbers = np.asarray(found, np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if len(numbers) < SIZES[name] or not np.isfinite(numbers).all():
        came = f"{list(numbers.shape)}" if len(numbers) else type(found).__name__
        raise Refusal("malformed", f"{name}[{place}]: expected {SIZES[name]} finite numbers, got {came}")
    return numbers
