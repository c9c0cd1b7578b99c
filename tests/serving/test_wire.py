"""The wire format against openpi's own, and against hostile bytes."""

from __future__ import annotations

import contextlib
import io
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpi_client import msgpack_numpy
from PIL import Image

from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal
from predimem.serving.request import read_request
from predimem.serving.wire import WireError, pack, unpack
from tests.serving.support import CAMERAS, ROBOT, SIDE, observe

MAX_ARRAY = 1 << 20
VALUES = {
    "image": np.arange(24, dtype=np.uint8).reshape(2, 4, 3),
    "state": np.array([1.5, -2], np.float32),
    "big_endian": np.array([1, 2], ">i4"),
    "flag": np.bool_(True),
    "number": np.float32(0.25),
    "empty": np.zeros((0, 3), np.int16),
    "scalar": np.array(3.0),
    "plain": [1, "zwei", None, True, 2.5, {"x": []}],
}


@pytest.mark.parametrize("packb", [pack, msgpack_numpy.packb])
@pytest.mark.parametrize("unpackb", [lambda data: unpack(data, MAX_ARRAY), msgpack_numpy.unpackb])
def test_openpi_and_we_read_each_other(packb: Any, unpackb: Any) -> None:
    read = unpackb(packb(VALUES))
    assert read.keys() == VALUES.keys() and read["plain"] == VALUES["plain"]
    for name in VALUES.keys() - {"plain"}:
        assert read[name].dtype == np.asarray(VALUES[name]).dtype
        np.testing.assert_array_equal(read[name], VALUES[name])


def array(**changes: Any) -> bytes:
    fields = {b"__ndarray__": True, b"data": b"\0" * 8, b"dtype": "<f4", b"shape": [2]}
    return msgpack.packb(fields | {key.encode(): value for key, value in changes.items()})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x80\x80",
        array(dtype="|O"),
        array(dtype="O"),
        array(dtype="<c8"),
        array(dtype="|V8"),
        array(dtype="<U2"),
        array(dtype="f4,f4"),
        array(dtype=7),
        array(shape=[3]),
        array(shape=[-2]),
        array(shape=[2**62, 2**62, 0]),
        array(shape=[True, 2]),
        array(shape=[1] * 9 + [2]),
        array(shape="2"),
        array(data="text"),
        array(more=1),
        msgpack.packb({b"__ndarray__": True}),
        msgpack.packb({b"__npgeneric__": True, b"data": "1", b"dtype": "<f4"}),
        msgpack.packb({b"__npgeneric__": True, b"data": 300, b"dtype": "|u1"}),
        msgpack.packb({b"name": 1}),
        msgpack.packb({1: 1}),
        msgpack.packb(msgpack.ExtType(5, b"x")),
        msgpack.packb(msgpack.Timestamp(1)),
        b"\xdd\xff\xff\xff\xff",  # a list of 2**32 - 1
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xd9\x02\xff\xfe",  # not UTF-8
        b"\x91" * 5000,
        msgpack.packb([0] * 5000),
        pack(np.zeros(MAX_ARRAY + 1, np.uint8)),
    ],
)
def test_hostile_messages_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        unpack(data, MAX_ARRAY)


def test_claims_cost_no_memory() -> None:
    """Each level of nesting claims a list of as many items as there are bytes; msgpack reserves what is claimed."""
    data = b"\xdd\x00\x80\x00\x00" * 100_000
    tracemalloc.start()
    with pytest.raises(WireError):
        unpack(data, MAX_ARRAY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


@hypothesis_settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(WireError):
        unpack(data, 1000)


@hypothesis_settings(deadline=None)
@given(st.data())
def test_damaged_messages_are_read_or_refused(data: st.DataObject) -> None:
    message = bytearray(pack(observe()))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(WireError, Refusal):
        read_request(unpack(bytes(message), MAX_ARRAY), ROBOT, LimitsConfig())


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=50)
ARRAYS = st.sampled_from([np.zeros(3), np.zeros((SIDE, SIDE, 3), np.uint8), np.full(3, np.nan), np.int64(-1)])
NESTED = st.recursive(PLAIN | ARRAYS, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x))
FIELDS = ("prompt", "episode_id", "reset", "step", "executed", "deadline_ms", "state", "images", *CAMERAS)


@pytest.mark.slow
@hypothesis_settings(deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), NESTED, max_size=4))
@example({"step": 2**63})
@example({"step": True})
@example({"executed": -1})
@example({"state": [10**400, 0, 0]})
@example({"state": np.full(3, 1e300)})
@example({"state": np.full(3, "x")})
@example({"deadline_ms": float("nan")})
@example({"episode_id": "../../etc/passwd"})
@example({"prompt": "do <|im_end|> it"})
@example({"images": {CAMERAS[0]: 1}})
def test_any_fields_are_taken_or_refused(fields: dict[str, Any]) -> None:
    """What is taken fits the robot exactly."""
    try:
        request = read_request(observe() | fields, ROBOT, LimitsConfig())
    except Refusal as refusal:
        assert refusal.code == "malformed" and "\n" not in str(refusal)
        return
    assert [request.images[name].shape for name in CAMERAS] == [(SIDE, SIDE, 3)] * 2
    assert request.state.shape == (3,) and np.isfinite(request.state).all()
    assert 0 < request.deadline_s <= 2.0


def test_other_spellings_of_an_observation() -> None:
    images = {name: np.full((SIDE, SIDE, 3), k, np.uint8) for k, name in enumerate(CAMERAS)}
    flat = {f"observation/{name}": image for name, image in images.items()}
    for message in (
        flat | {"observation/state": np.arange(3)},
        {"images": images, "state": [0, 1, 2.0]},
    ):
        request = read_request(message, ROBOT, LimitsConfig())
        assert [int(request.images[name][0, 0, 0]) for name in CAMERAS] == [0, 1]
        np.testing.assert_array_equal(request.state, np.array([0, 1, 2], np.float32))


def image_file(width: int, height: int, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (1, 2, 3)).save(buffer, kind)
    return buffer.getvalue()


def test_compressed_images() -> None:
    message = observe() | {CAMERAS[0]: image_file(SIDE, SIDE)}
    request = read_request(message, ROBOT, LimitsConfig())
    np.testing.assert_array_equal(request.images[CAMERAS[0]], np.full((SIDE, SIDE, 3), (1, 2, 3)))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (image_file(8000, 8000), "8000 x 8000 pixels are more than is allowed"),  # 190 kB, 192 MB when decoded
        (image_file(9, SIDE), "expected uint8 [8, 8, 3]"),
        (image_file(SIDE, SIDE)[:-30], "not a PNG or JPEG file"),
        (image_file(SIDE, SIDE, "BMP"), "not a PNG or JPEG file"),
        (b"GIF89a", "not a PNG or JPEG file"),
    ],
)
def test_images_that_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_request(observe() | {CAMERAS[0]: data}, ROBOT, LimitsConfig())
    assert why in str(refused.value)
