"""What a client is told that sends something else than it should: the cause, and how to mend it."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.request import read_request
from tests.serving.support import CAMERAS, ROBOT, SIDE, observe

CAMERA = CAMERAS[0]
IMAGE = np.arange(SIDE * SIDE * 3, dtype=np.uint8).reshape(SIDE, SIDE, 3)


def refused(message: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        read_request(message, ROBOT, LimitsConfig())
    assert refusal.value.code == "malformed" and "\n" not in refusal.value.why
    return refusal.value.why


def resize_with_pad(image: np.ndarray, height: int, width: int) -> np.ndarray:
    from openpi_client import image_tools

    return image_tools.resize_with_pad(image, height, width)


@pytest.mark.parametrize(
    ("sent", "mends"),
    [
        (IMAGE.transpose(2, 0, 1), ["image.transpose(1, 2, 0)"]),
        (IMAGE / 255, ["(255 * image).round().astype(np.uint8)"]),
        (IMAGE.astype(np.float32) / 127.5 - 1, ["(127.5 * (image + 1)).round().astype(np.uint8)"]),
        (IMAGE.astype(np.float64), ["image.round().clip(0, 255).astype(np.uint8)"]),
        (IMAGE.astype(np.int64), ["image.clip(0, 255).astype(np.uint8)"]),
        (IMAGE[None], ["image[-1]"]),
        (np.stack([IMAGE * 0, IMAGE]), ["image[-1]"]),
        (np.concatenate([IMAGE, IMAGE[..., :1]], -1), ["image[..., :3]"]),
        (
            IMAGE[None].transpose(0, 3, 1, 2) / 255,
            ["image[-1]", "image.transpose(1, 2, 0)", "(255 * image).round().astype(np.uint8)"],
        ),
    ],
)
def test_an_image_that_is_mended_as_the_error_says_is_taken(sent: np.ndarray, mends: list[str]) -> None:
    """The expressions are carried out, one after the other, and give the image that was meant."""
    why = refused(observe() | {CAMERA: sent})
    assert f"got {sent.dtype} {list(sent.shape)}" in why
    image = sent
    for mend in mends:
        assert mend in why
        image = eval(mend, {"np": np, "image": image})
    assert why.count("; ") == len(mends)
    request = read_request(observe() | {CAMERA: np.ascontiguousarray(image)}, ROBOT, LimitsConfig())
    np.testing.assert_array_equal(request.images[CAMERA], IMAGE)


def test_an_image_of_another_size_and_a_grey_one() -> None:
    why = refused(observe() | {CAMERA: np.zeros((20, 30, 3), np.uint8)})
    assert why.endswith("openpi_client.image_tools.resize_with_pad(image, 8, 8)")
    assert resize_with_pad(np.zeros((20, 30, 3), np.uint8), 8, 8).shape == (8, 8, 3)
    grey, mend = IMAGE[..., 0], "np.stack([image.reshape(image.shape[:2])] * 3, -1)"
    assert mend in refused(observe() | {CAMERA: grey})
    assert eval(mend, {"np": np, "image": grey}).shape == (SIDE, SIDE, 3)


def test_what_is_no_image() -> None:
    assert "got list; send a NumPy array" in refused(observe() | {CAMERA: [[1, 2, 3]]})
    assert "got str; send the bytes of the file as they are, without base64" in refused(observe() | {CAMERA: "aGk="})
    depth = io.BytesIO()
    Image.new("I;16", (SIDE, SIDE)).save(depth, "PNG")
    assert "8 bits a channel" in refused(observe() | {CAMERA: depth.getvalue()})


@pytest.mark.parametrize(("side", "said"), [(3000, "3000 x 3000 pixels"), (12_000, "pixels"), (60_000, "pixels")])
def test_decompression_bombs(side: int, said: str) -> None:
    """Files of some hundred bytes that claim up to 10 GB: from where Pillow warns and from where it refuses, too."""
    header = b"IHDR" + side.to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    bomb = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + header + zlib.crc32(header).to_bytes(4, "big")
    data = zlib.compress(b"\0" * 1000)
    bomb += len(data).to_bytes(4, "big") + b"IDAT" + data + zlib.crc32(b"IDAT" + data).to_bytes(4, "big")
    why = refused(observe() | {CAMERA: bomb})
    assert said in why and why.endswith("are more than is allowed; send 8 x 8 (width x height)")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ([0, 1, "2"], "expected 3 numbers, got str at index 2"),
        ([0, True, 2], "expected 3 numbers, got bool at index 1"),
        ([0, None, 2], "expected 3 numbers, got NoneType at index 1"),
        ([0, 1], "expected 3 numbers, got a list of 2"),
        ([[0, 1, 2]], "got a list of 1; send state[0]"),
        (np.zeros((1, 3)), "got float64 [1, 3]; send state.reshape(-1)"),
        (np.zeros(4), "got float64 [4]"),
        (np.array([True] * 3), "got bool"),
        (np.array([0, np.nan, 1]), "expected finite numbers, got nan at index 1"),
        (None, "there is no `state`; the message has 'cam_a', 'cam_b', 'state', 'prompt'"),
    ],
)
def test_states(state: Any, why: str) -> None:
    assert refused(observe(state=state)).endswith(why)


def test_wrong_keys() -> None:
    """A client that was written for another server: it is told what it sent, and what would be right."""
    message = observe()
    libero = {"observation/image": message.pop("cam_a"), "observation/wrist_image": message.pop("cam_b")} | message
    why = refused(libero)
    assert "no image of the camera 'cam_a'; expected cam_a, cam_b" in why
    assert "'observation/image', 'observation/wrist_image': name them" in why and "'observation/cam_a'" in why
    assert "'images: top'" in refused({"images": {"top": IMAGE}, "state": [0, 0, 0]})
    assert "the message has 'state', 'prompt'" in refused(message)
    assert "the message has no fields" in refused({})
    assert "expected a map of observations, got list" in refused([1])
    hostile = {f"key {i} \x1b[31m" + "x" * 500: 1 for i in range(50)}
    why = refused(hostile)
    assert "and 38 more" in why and "\x1b" not in why and len(why) < 1000


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"prompt": ["do it"]}, "prompt: expected a string, got list; send prompt[0]"),
        ({"prompt": b"do it"}, "prompt: expected a string, got bytes"),
        ({"step": 3.0}, "step: expected an integer from 0 to 9007199254740991, got float 3.0"),
        ({"executed": "3"}, "executed: expected an integer from 0 to 9999, got str"),
        ({"step": True}, "got bool True"),
        ({"reset": 1}, "reset: expected true or false, got int"),
        ({"deadline_ms": 0}, "deadline_ms: expected a positive number, got int 0"),
        ({"success": True}, "success: says how an episode ended, and goes with done: true"),
        ({"done": True, "success": "yes"}, "success: expected true or false, got str"),
        ({"done": True, "reset": True}, "done and reset: one ends an episode and the other begins it; send them apart"),
    ],
)
def test_other_fields(fields: dict[str, Any], why: str) -> None:
    assert refused(observe(**fields)).endswith(why)


def test_a_prompt_under_another_name() -> None:
    for name in ("task", "task_description", "language_instruction"):
        request = read_request(observe(prompt=None) | {name: "do it"}, ROBOT, LimitsConfig())
        assert request.instead_of_prompt == repr(name)
    assert read_request(observe(task="do it"), ROBOT, LimitsConfig()).instead_of_prompt is None
