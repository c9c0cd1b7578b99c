"""From a client's message to what the session needs: typed, checked, and with nothing of the message left over.

Cameras may come under their names, as `observation/<name>`, or in a map `images`; the state as `state` or
`observation/state`. An image is uint8 [H, W, 3], or the bytes of a PNG or JPEG file.
"""

from __future__ import annotations

import io
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from predimem.serving.config import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.robot import RobotSpec

EPISODE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,127}")
MAX_STEP = 2**53
MAX_EXECUTED = 10_000
FLOAT32_MAX = 3.4e38
_MARKUP = re.compile(r"[<>\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, eq=False)
class Request:
    """One observation.

    step: the control step that it was made at.
    executed: how many actions of the last reply were carried out since the last observation; None where the client does
    not say.
    deadline_s: the time from its arrival in which an answer is of use.
    """

    images: Mapping[str, np.ndarray]
    state: np.ndarray
    prompt: str | None
    episode_id: str | None
    reset: bool
    step: int | None
    executed: int | None
    deadline_s: float


def read_request(message: Any, robot: RobotSpec, limits: LimitsConfig) -> Request:
    """Raises Refusal (`malformed`) that says what was expected. Unknown fields are left alone, as openpi does."""
    if not isinstance(message, dict):
        raise Refusal("malformed", f"expected a map of observations, got {type(message).__name__}")
    nested = message.get("images", {})
    if not isinstance(nested, dict):
        raise Refusal("malformed", "`images` has to be a map of camera names to images")
    images = {}
    for name in robot.cameras:
        found = _first(message, name, f"observation/{name}")
        found = nested.get(name) if found is None else found
        if found is None:
            raise Refusal("malformed", f"no image of the camera {name!r}; expected {', '.join(robot.cameras)}")
        images[name] = _image(name, found, robot, limits)
    return Request(
        images=images,
        state=_state(_first(message, "state", "observation/state"), robot),
        prompt=_prompt(message.get("prompt"), limits),
        episode_id=read_episode_id(message.get("episode_id")),
        reset=_flag(message.get("reset")),
        step=_integer("step", message.get("step"), MAX_STEP),
        executed=_integer("executed", message.get("executed"), MAX_EXECUTED),
        deadline_s=_deadline(message.get("deadline_ms"), limits),
    )


def _first(message: Mapping[Any, Any], *names: str) -> Any:
    return next((message[name] for name in names if message.get(name) is not None), None)


def _image(name: str, found: Any, robot: RobotSpec, limits: LimitsConfig) -> np.ndarray:
    if isinstance(found, bytes):
        found = _decode(name, found, limits)
    if not isinstance(found, np.ndarray):
        raise Refusal("malformed", f"{name}: expected a uint8 array or a PNG or JPEG file, got {type(found).__name__}")
    expected = (*robot.image_size, 3)
    if found.dtype != np.uint8 or found.shape != expected:
        raise Refusal(
            "malformed",
            f"{name}: expected uint8 {list(expected)} (height, width, RGB), got {found.dtype} {list(found.shape)}; "
            "resize on the robot: it saves bandwidth, too",
        )
    return found


def _decode(name: str, data: bytes, limits: LimitsConfig) -> np.ndarray:
    """The size is known from the head of the file, before any memory is spent on the image."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
            width, height = image.size
            if width * height * 3 > limits.array_bytes:
                raise Refusal("malformed", f"{name}: {width} x {height} pixels are more than is allowed")
            return np.asarray(image.convert("RGB"))
    except Refusal:
        raise
    except Exception:  # Pillow raises many types on damaged files
        raise Refusal("malformed", f"{name}: not a PNG or JPEG file that can be read") from None


def _state(found: Any, robot: RobotSpec) -> np.ndarray:
    if isinstance(found, list) and len(found) <= robot.state_dim and all(type(x) in (int, float) for x in found):
        found = np.array([x if abs(x) < FLOAT32_MAX else np.inf for x in found], np.float64)
    if not isinstance(found, np.ndarray) or found.shape != (robot.state_dim,) or found.dtype.kind not in "fiu":
        shape = f"{found.dtype} {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise Refusal("malformed", f"state: expected {robot.state_dim} numbers, got {shape}")
    with np.errstate(over="ignore"):
        state = found.astype(np.float32)
    if not np.isfinite(state).all():
        raise Refusal("malformed", "state: expected finite numbers")
    return state


def _prompt(found: Any, limits: LimitsConfig) -> str | None:
    """No markup: a planner's prompt has control words in angle brackets."""
    if found is None:
        return None
    if not isinstance(found, str):
        raise Refusal("malformed", f"prompt: expected a string, got {type(found).__name__}")
    if len(found) > limits.prompt_characters or not found.strip():
        raise Refusal("malformed", f"prompt: expected 1 to {limits.prompt_characters} characters, got {len(found)}")
    if _MARKUP.search(found):
        raise Refusal("malformed", "prompt: angle brackets and control characters are not allowed")
    return found


def read_episode_id(found: Any) -> str | None:
    """Raises Refusal (`malformed`)."""
    if found is None:
        return None
    text = str(found) if type(found) is int else found
    if not isinstance(text, str) or not EPISODE_ID.fullmatch(text):
        raise Refusal("malformed", "episode_id: expected 1 to 128 letters, digits and . _ : / + -")
    return text


def _flag(found: Any) -> bool:
    if found is None:
        return False
    if not isinstance(found, bool | np.bool_):
        raise Refusal("malformed", f"reset: expected true or false, got {type(found).__name__}")
    return bool(found)


def _integer(name: str, found: Any, below: int) -> int | None:
    if found is None:
        return None
    try:
        value = operator.index(found)
    except TypeError:
        value = -1
    if isinstance(found, bool) or not 0 <= value < below:
        raise Refusal("malformed", f"{name}: expected an integer from 0 to {below - 1}")
    return value


def _deadline(found: Any, limits: LimitsConfig) -> float:
    if found is None:
        return limits.deadline_s
    if isinstance(found, bool) or not isinstance(found, int | float | np.integer | np.floating) or not found > 0:
        raise Refusal("malformed", "deadline_ms: expected a positive number")
    return min(float(found) / 1000, limits.deadline_s)
