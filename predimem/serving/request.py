"""From a client's message to what the session needs: typed, checked, and with nothing of the message left over.

Cameras may come under their names, as `observation/<name>`, or in a map `images`; the state as `state` or
`observation/state`. An image is uint8 [H, W, 3], or the bytes of a PNG or JPEG file. The message that ends an episode
(`done`) needs neither.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from predimem.core.types import Observation
from predimem.serving.images import read_image
from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.robot import RobotSpec

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}")
MAX_STEP = 2**53
MAX_EXECUTED = 10_000
FLOAT32_MAX = 3.4e38
FIELDS = (
    "prompt",
    "episode_id",
    "robot_id",
    "session_id",
    "reset",
    "step",
    "executed",
    "deadline_ms",
    "done",
    "success",
)
SHOWN_KEYS = 12  # of a client's own, in an error
_MARKUP = re.compile(r"[<>\x00-\x08\x0b-\x1f\x7f]")
_TASK_WORDS = ("task", "instruction", "description", "language", "text")  # in what others call the prompt


@dataclass(frozen=True, eq=False)
class Request:
    """One observation, or the end of an episode.

    images, state: of the observation; empty where the episode is ended.
    step: the control step that it was made at.
    executed: how many actions of the last reply were carried out since the last observation; None where the client does
    not say.
    deadline_s: the time from its arrival in which an answer is of use.
    done: the episode is over, and there is nothing to answer. success: how it ended; None where nobody says.
    robot_id, session_id: who plays the episode, and what it belongs to, for the memory store; None where nobody says.
    instead_of_prompt: where no prompt came, the name of a field that may be meant to be it.
    watched: what was seen since the last request, oldest first and this observation last, by a client whose time stands
    still while it waits: the planner is waited for. None for all others.
    """

    images: Mapping[str, np.ndarray]
    state: np.ndarray
    prompt: str | None
    episode_id: str | None
    reset: bool
    step: int | None
    executed: int | None
    deadline_s: float
    done: bool = False
    success: bool | None = None
    instead_of_prompt: str | None = None
    watched: tuple[Observation, ...] | None = None
    robot_id: str | None = None
    session_id: str | None = None


def read_request(message: Any, robot: RobotSpec, limits: LimitsConfig) -> Request:
    """Raises Refusal (`malformed`) that says what was expected. Unknown fields are left alone, as openpi does."""
    if not isinstance(message, dict):
        raise Refusal("malformed", f"expected a map of observations, got {type(message).__name__}")
    done, success = _flag("done", message.get("done")), message.get("success")
    if success is not None and not done:
        raise Refusal("malformed", "success: says how an episode ended, and goes with done: true")
    if done and _flag("reset", message.get("reset")):
        raise Refusal("malformed", "done and reset: one ends an episode and the other begins it; send them apart")
    return Request(
        images={} if done else _images(message, robot, limits),
        state=np.empty(0, np.float32) if done else _state(message, robot),
        prompt=_prompt(message.get("prompt"), limits),
        episode_id=read_id("episode_id", message.get("episode_id")),
        reset=_flag("reset", message.get("reset")),
        step=_integer("step", message.get("step"), MAX_STEP),
        executed=_integer("executed", message.get("executed"), MAX_EXECUTED),
        deadline_s=_deadline(message.get("deadline_ms"), limits),
        done=done,
        success=None if success is None else _flag("success", success),
        instead_of_prompt=_instead_of_prompt(message),
        robot_id=read_id("robot_id", message.get("robot_id")),
        session_id=read_id("session_id", message.get("session_id")),
    )


def _images(message: dict[str, Any], robot: RobotSpec, limits: LimitsConfig) -> dict[str, np.ndarray]:
    nested = message.get("images", {})
    if not isinstance(nested, dict):
        raise Refusal("malformed", f"`images` has to be a map of camera names to images, got {type(nested).__name__}")
    images = {}
    for name in robot.cameras:
        found = _first(message, name, f"observation/{name}")
        found = nested.get(name) if found is None else found
        if found is None and name in robot.optional_cameras:
            continue
        if found is None:
            raise Refusal("malformed", f"no image of the camera {name!r}; {_wanted(message, nested, robot)}")
        images[name] = read_image(name, found, robot.image_size, limits)
    if not images:
        raise Refusal("malformed", f"no image of any camera; {_wanted(message, nested, robot)}")
    return images


def _wanted(message: dict[str, Any], nested: dict[str, Any], robot: RobotSpec) -> str:
    """Which cameras are expected, and under which names images came instead."""
    expected = f"expected {', '.join(robot.cameras)}"
    if robot.optional_cameras:
        expected += f", of which {', '.join(robot.optional_cameras)} may be missing"
    came = [key for key, value in message.items() if isinstance(value, np.ndarray | bytes) and np.ndim(value) != 1]
    known = {*robot.cameras, *(f"observation/{name}" for name in robot.cameras)}
    came = [key for key in came if not key.endswith("state")] + [f"images: {key}" for key in nested]
    came = [key for key in came if key.removeprefix("images: ") not in known]
    if not came:
        return f"{expected}; the message has {_keys(message)}"
    return (
        f"{expected}; there are images called {', '.join(map(_shown, came[:SHOWN_KEYS]))}: name them as the server's "
        f"metadata does, such as {robot.cameras[0]!r} or {'observation/' + robot.cameras[0]!r}"
    )


def _first(message: Mapping[Any, Any], *names: str) -> Any:
    return next((message[name] for name in names if message.get(name) is not None), None)


def _state(message: dict[str, Any], robot: RobotSpec) -> np.ndarray:
    found, size = _first(message, "state", "observation/state"), robot.state_dim
    expected = f"state: expected {size} numbers"
    if found is None:
        raise Refusal("malformed", f"{expected}, and there is no `state`; the message has {_keys(message)}")
    if isinstance(found, list):
        found = _numbers(found, expected, size)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        kind = found.dtype if isinstance(found, np.ndarray) else type(found).__name__
        raise Refusal("malformed", f"{expected}, got {kind}")
    if found.shape != (size,):
        mend = "; send state.reshape(-1)" if found.size == size else ""
        raise Refusal("malformed", f"{expected}, got {found.dtype} {list(found.shape)}{mend}")
    with np.errstate(over="ignore"):
        state = found.astype(np.float32)
    if not np.isfinite(state).all():
        place = int(np.flatnonzero(~np.isfinite(state))[0])
        raise Refusal("malformed", f"state: expected finite numbers, got {found[place]} at index {place}")
    return state


def _numbers(found: list[Any], expected: str, size: int) -> np.ndarray:
    if len(found) != size:
        mend = "; send state[0]" if len(found) == 1 and isinstance(found[0], list) else ""
        raise Refusal("malformed", f"{expected}, got a list of {len(found)}{mend}")
    for place, value in enumerate(found):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise Refusal("malformed", f"{expected}, got {type(value).__name__} at index {place}")
    return np.array([x if abs(x) < FLOAT32_MAX else np.inf for x in found], np.float64)


def _prompt(found: Any, limits: LimitsConfig) -> str | None:
    """No markup: a planner's prompt has control words in angle brackets."""
    if found is None:
        return None
    if not isinstance(found, str):
        mend = "; send prompt[0]" if isinstance(found, list) and len(found) == 1 else ""
        raise Refusal("malformed", f"prompt: expected a string, got {type(found).__name__}{mend}")
    if len(found) > limits.prompt_characters or not found.strip():
        raise Refusal("malformed", f"prompt: expected 1 to {limits.prompt_characters} characters, got {len(found)}")
    if _MARKUP.search(found):
        raise Refusal("malformed", "prompt: angle brackets and control characters are not allowed")
    return found


def _instead_of_prompt(message: dict[str, Any]) -> str | None:
    if message.get("prompt") is not None:
        return None
    words = (key for key, value in message.items() if isinstance(value, str | list) and key not in FIELDS)
    return next((_shown(key) for key in words if any(word in key.lower() for word in _TASK_WORDS)), None)


def read_id(name: str, found: Any) -> str | None:
    """Raises Refusal (`malformed`)."""
    if found is None:
        return None
    text = str(found) if type(found) is int else found
    if not isinstance(text, str) or not ID.fullmatch(text):
        raise Refusal("malformed", f"{name}: expected 1 to 128 letters, digits and . _ : / + -")
    return text


def _flag(name: str, found: Any) -> bool:
    if found is None:
        return False
    if not isinstance(found, bool | np.bool_):
        raise Refusal("malformed", f"{name}: expected true or false, got {type(found).__name__}")
    return bool(found)


def _integer(name: str, found: Any, below: int) -> int | None:
    if found is None:
        return None
    try:
        value = operator.index(found)
    except TypeError:
        value = -1
    if isinstance(found, bool | np.bool_) or not 0 <= value < below:
        raise Refusal("malformed", f"{name}: expected an integer from 0 to {below - 1}, got {_value(found)}")
    return value


def _deadline(found: Any, limits: LimitsConfig) -> float:
    if found is None:
        return limits.deadline_s
    if isinstance(found, bool) or not isinstance(found, int | float | np.integer | np.floating) or not found > 0:
        raise Refusal("malformed", f"deadline_ms: expected a positive number, got {_value(found)}")
    return min(float(found) / 1000, limits.deadline_s)


def _keys(message: Mapping[str, Any]) -> str:
    """The names of a message's fields, for its sender."""
    if not message:
        return "no fields"
    more = f" and {len(message) - SHOWN_KEYS} more" if len(message) > SHOWN_KEYS else ""
    return ", ".join(map(_shown, list(message)[:SHOWN_KEYS])) + more


def _shown(key: str) -> str:
    """A client's own word, shortened and without control characters."""
    return ascii(key if len(key) <= 40 else key[:39] + "…")


def _value(found: Any) -> str:
    number = isinstance(found, int | float | np.integer | np.floating) and abs(found) < 1e20
    return f"{type(found).__name__} {found}" if number else type(found).__name__
