"""What is not allowed is refused, and what is just allowed is taken: one case for each check of a request."""

from __future__ import annotations

import io
import re
from typing import Any

import msgpack
import numpy as np
import pytest
from PIL import Image

from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.request import MAX_EXECUTED, MAX_STEP, Request, read_request
from predimem.serving.wire import MAX_ITEMS, WireError, pack, unpack
from tests.serving.support import CAMERAS, ROBOT, SIDE, observe

CAMERA = CAMERAS[0]
LIMITS = LimitsConfig(prompt_characters=40, deadline_s=2.0)
IMAGE = np.zeros((SIDE, SIDE, 3), np.uint8)


def read(**fields: Any) -> Request:
    return read_request(observe(**fields), ROBOT, LIMITS)


def refused(**fields: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        read(**fields)
    assert refusal.value.code == "malformed" and "\n" not in refusal.value.why
    return refusal.value.why


@pytest.mark.parametrize(
    "prompt",
    [
        "do <|im_end|> it",
        "do < it",
        "do > it",
        "do\0it",
        "do\x08it",
        "do\x0bit",
        "do\x1b[31m it",
        "do\x1fit",
        "do\x7fit",
    ],
)
def test_markup_and_control_characters_in_a_prompt(prompt: str) -> None:
    assert refused(prompt=prompt) == "prompt: angle brackets and control characters are not allowed"


def test_prompts_that_are_none_and_prompts_of_any_length() -> None:
    for prompt in ("", " \t\n", "x" * 41):
        assert refused(prompt=prompt) == f"prompt: expected 1 to 40 characters, got {len(prompt)}"
    for prompt in (b"do it", ["do it"], 7, True, {}):
        assert refused(prompt=prompt).startswith(f"prompt: expected a string, got {type(prompt).__name__}")
    for prompt in ("x" * 40, "do\tit\nnow", "grüße (das Brot) & 'die' [Tasse]"):
        assert read(prompt=prompt).prompt == prompt
    assert read(prompt=None).prompt is None


@pytest.mark.parametrize(
    "episode_id",
    ["", "../../etc/passwd", "/a", ".a", "-a", "a b", "a\n", "a\0", "<a>", "é", "a" * 129, -1, 1.0, True, b"a", ["a"]],
)
def test_names_that_no_episode_may_have(episode_id: Any) -> None:
    assert refused(episode_id=episode_id) == "episode_id: expected 1 to 128 letters, digits and . _ : / + -"


def test_names_of_episodes() -> None:
    for episode_id in ("a", "A9._:/+-", "7", "a" * 128):
        assert read(episode_id=episode_id).episode_id == episode_id
    assert read(episode_id=12).episode_id == "12" and read().episode_id is None


@pytest.mark.parametrize(("name", "below"), [("step", MAX_STEP), ("executed", MAX_EXECUTED)])
def test_the_range_of_whole_numbers(name: str, below: int) -> None:
    for value in (0, 1, below - 1, np.int32(7), np.array(8)):
        assert getattr(read(**{name: value}), name) == value
    for value in (-1, below, 2**63, np.int64(-1)):
        assert refused(**{name: value}).startswith(f"{name}: expected an integer from 0 to {below - 1}, got ")
    assert getattr(read(), name) is None


@pytest.mark.parametrize("name", ["step", "executed", "deadline_ms"])
@pytest.mark.parametrize("value", [True, False, np.bool_(True), "1", b"1", [1], np.array([1.5, 2.5])])
def test_what_is_no_number(name: str, value: Any) -> None:
    assert refused(**{name: value}).startswith(f"{name}: expected a")


@pytest.mark.parametrize("value", [1.0, np.float32(1), "1"])
def test_steps_are_counted_in_whole_numbers(value: Any) -> None:
    assert refused(step=value).startswith("step: expected an integer")


def test_a_client_may_ask_for_less_time_and_never_for_more() -> None:
    asked = {1: 0.001, 250: 0.25, 250.5: 0.2505, 2000: 2.0, 2001: 2.0, 10**9: 2.0, float("inf"): 2.0, None: 2.0}
    assert {value: read(deadline_ms=value).deadline_s for value in asked} == asked
    assert read(deadline_ms=np.float32(250)).deadline_s == 0.25 and read(deadline_ms=np.int64(250)).deadline_s == 0.25
    for value in (0, -1, -0.5, float("nan"), float("-inf"), np.float32("nan")):
        assert refused(deadline_ms=value).startswith("deadline_ms: expected a positive number, got ")


@pytest.mark.parametrize("name", ["reset", "done"])
def test_truth_values(name: str) -> None:
    for value in (1, 0, "true", np.int64(1), [True]):
        assert refused(**{name: value}).startswith(f"{name}: expected true or false, got ")
    for value in (True, np.bool_(True)):
        assert getattr(read(**{name: value}), name) is True
    assert getattr(read(**{name: False}), name) is False and getattr(read(), name) is False


def test_the_end_of_an_episode() -> None:
    assert refused(success=True).startswith("success: says how an episode ended")
    assert refused(success=False, done=False).startswith("success: says how an episode ended")
    assert refused(done=True, success=1).startswith("success: expected true or false")
    assert refused(done=True, reset=True).startswith("done and reset")
    outcomes = {outcome: read(done=True, reset=False, success=outcome).success for outcome in (True, False, None)}
    assert outcomes == {True: True, False: False, None: None}


@pytest.mark.parametrize("message", [None, 1, "x", b"x", [observe()], np.zeros(3)])
def test_messages_that_are_no_map(message: Any) -> None:
    with pytest.raises(Refusal, match=f"malformed: expected a map of observations, got {type(message).__name__}"):
        read_request(message, ROBOT, LIMITS)


@pytest.mark.parametrize("images", [[IMAGE, IMAGE], IMAGE, "front", 1])
def test_images_that_are_no_map(images: Any) -> None:
    assert refused(images=images).startswith("`images` has to be a map of camera names to images, got ")


@pytest.mark.parametrize(
    "state",
    [
        [0, 1], [0, 1, 2, 3], [], [0, 1, True], [0, 1, np.bool_(True)], [0, 1, "2"], [0, 1, float("nan")],
        [0, 1, float("inf")], [0, 1, 10**400], [0, 1, 1e39], np.zeros((3, 1)), np.zeros(2), np.zeros(()),
        np.full(3, np.inf), np.full(3, 1e300), np.full(3, True), np.full(3, 1j), np.full(3, "1"), "000", b"000", 0,
        {"0": 0},
    ],
)  # fmt: skip
def test_states_that_are_not_three_finite_numbers(state: Any) -> None:
    assert refused(state=state).startswith("state: expected ")


def test_states() -> None:
    for state in ([0, 1.5, np.int64(-2)], np.array([0, 1.5, -2]), np.array([0, 1.5, -2], np.float16)):
        found = read(state=state).state
        assert found.dtype == np.float32 and found.tolist() == [0, 1.5, -2]


@pytest.mark.parametrize(
    "image",
    [
        IMAGE.astype(np.int8), IMAGE.astype(bool), IMAGE.astype(np.float32), IMAGE[:-1], IMAGE[:, :-1], IMAGE[..., :2],
        IMAGE[..., 0], IMAGE[None], IMAGE.ravel(), "image", [[[0, 0, 0]]], 0, {},
    ],
)  # fmt: skip
def test_what_is_no_image_of_the_camera(image: Any) -> None:
    expected = "uint8 [8, 8, 3]" if isinstance(image, np.ndarray) else "a uint8 array or a PNG or JPEG file"
    assert refused(**{CAMERA: image}).startswith(f"{CAMERA}: expected {expected}")


def image_file(mode: str, side: int = SIDE, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (side, side)).save(buffer, kind)
    return buffer.getvalue()


def test_files_of_images() -> None:
    for mode in ("RGB", "RGBA", "L", "LA", "P", "1"):
        assert read(**{CAMERA: image_file(mode)}).images[CAMERA].shape == (SIDE, SIDE, 3)
    assert read(**{CAMERA: image_file("L", kind="JPEG")}).images[CAMERA].shape == (SIDE, SIDE, 3)
    assert "8 bits a channel" in refused(**{CAMERA: image_file("I;16")})
    for kind in ("GIF", "BMP", "TIFF", "PPM"):
        assert "not a PNG or JPEG file" in refused(**{CAMERA: image_file("RGB", kind=kind)})


def test_the_size_of_an_image_is_bounded_in_bytes_before_it_is_decoded() -> None:
    limits = LimitsConfig(array_bytes=3 * 40 * 40)
    for side, why in ((40, "expected uint8 [8, 8, 3]"), (41, "41 x 41 pixels are more than is allowed")):
        with pytest.raises(Refusal) as refusal:
            read_request(observe() | {CAMERA: image_file("RGB", side)}, ROBOT, limits)
        assert why in str(refusal.value)


def array(**changes: Any) -> bytes:
    fields = {b"__ndarray__": True, b"data": b"\0" * 8, b"dtype": "<f4", b"shape": [2]}
    return msgpack.packb(fields | {key.encode(): value for key, value in changes.items()})


def number(**changes: Any) -> bytes:
    fields = {b"__npgeneric__": True, b"data": 1, b"dtype": "|u1"}
    return msgpack.packb(fields | {key.encode(): value for key, value in changes.items()})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (array(more=1), "an array consists of __ndarray__, data, dtype and shape"),
        (array(data="12345678"), "an array consists of"),
        (array(shape=2), "an array consists of"),
        (array(shape=[1] * 8 + [2]), "up to 8 sizes"),
        (array(shape=[True, 2]), "sizes that are not negative"),
        (array(shape=[-1, -2]), "sizes that are not negative"),
        (array(shape=[2**31, 0], data=b""), "sizes that are not negative"),
        (array(shape=[1]), "has 4 bytes, got 8"),
        (array(shape=[3]), "has 12 bytes, got 8"),
        (array(shape=[26], data=b"\0" * 104), "an array has 104 bytes; 100 are allowed"),
        (array(dtype="|O"), "the dtype of an array has to be one of"),
        (array(dtype="xf4"), "the dtype of an array has to be one of"),
        (array(dtype="f4"), "the dtype of an array has to be one of"),
        (array(dtype=7), "the dtype of an array has to be one of"),
        (number(more=1), "a NumPy number consists of __npgeneric__, data and dtype"),
        (number(data="1"), "a number does not fit its dtype uint8"),
        (number(data=True), "a number does not fit its dtype uint8"),
        (number(data=1.5), "a number does not fit its dtype uint8"),
        (number(data=1, dtype="|b1"), "a number does not fit its dtype bool"),
        (number(data=None, dtype="<f4"), "a number does not fit its dtype float32"),
        (number(data=256), "a number does not fit its dtype uint8"),
        (number(data=-1), "a number does not fit its dtype uint8"),
        (number(data=float("nan")), "a number does not fit its dtype uint8"),
        (number(dtype="<c8"), "the dtype of an array has to be one of"),
        (msgpack.packb({b"name": 1}), "names of fields have to be strings"),
        (msgpack.packb({1: 1}), "not a msgpack message"),
        (msgpack.packb(msgpack.ExtType(5, b"")), "extension types are not used"),
        (msgpack.packb(msgpack.ExtType(5, b"x")), "not a msgpack message"),
        (msgpack.packb([0] * (MAX_ITEMS + 1)), "not a msgpack message"),
        (msgpack.packb({str(i): 0 for i in range(MAX_ITEMS + 1)}), "not a msgpack message"),
        (b"\x91" * 5000, "not a msgpack message"),
    ],
)
def test_bytes_that_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=re.escape(why)):
        unpack(data, 100)


def test_bytes_that_are_just_allowed() -> None:
    assert unpack(array(shape=[25], data=b"\0" * 100), 100).nbytes == 100
    assert unpack(array(shape=[1] * 7 + [2]), 100).shape == (1,) * 7 + (2,)
    assert unpack(number(data=255), 100) == 255 and unpack(number(data=0), 100) == 0
    assert len(unpack(msgpack.packb([0] * MAX_ITEMS), 100)) == MAX_ITEMS
    assert len(unpack(msgpack.packb({str(i): 0 for i in range(MAX_ITEMS)}), 100)) == MAX_ITEMS


@pytest.mark.parametrize(
    "value", [np.full(3, "x"), np.full(3, 1j), np.array([None]), np.complex64(1), {1, 2}, object()]
)
def test_what_cannot_be_sent(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        pack(value)
