"""TFRecord files without TensorFlow; one that TensorFlow wrote lies beside (write_rlds.py)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from datagen.imports.tfrecord import masked_crc, parse_example, read_record
from predimem.core.frames import EpisodeError
from tests.datagen.imports.released import FOLDER

WRITTEN = Path(__file__).with_name("rlds") / FOLDER / "1.0.0/mikasa_dataset-train.tfrecord-00000-of-00002"


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join((length, struct.pack("<I", masked_crc(length)), data, struct.pack("<I", masked_crc(data))))


def test_a_checksum_that_is_known() -> None:
    """CRC-32C of "123456789" is 0xe3069283; masked by hand."""
    assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17 & 0xFFFFFFFF) + 0xA282EAD8) % 2**32


def test_records_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "file.tfrecord"
    path.write_bytes(record(b"one") + record(b"") + record(b"three" * 1000))
    assert [read_record(path, number) for number in range(3)] == [b"one", b"", b"three" * 1000]
    with pytest.raises(EpisodeError, match="ends before its last record"):
        read_record(path, 3)


def test_every_byte_of_a_record_is_checked(tmp_path: Path) -> None:
    path, whole = tmp_path / "file.tfrecord", record(b"some data")
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(EpisodeError, match=r"get the file anew"):
            read_record(path, 0)
        path.write_bytes(whole[:place])
        with pytest.raises(EpisodeError, match=r"get the file anew"):
            read_record(path, 0)


def test_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    path = tmp_path / "file.tfrecord"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(EpisodeError, match=r"is no TFRecord file, or altered \(or a pointer of git LFS\?\)"):
        read_record(path, 0)


def test_an_example_of_all_kinds() -> None:
    """Written by hand from protobuf's wire format: {"a": [b"x"], "b": [0.5, 2.0], "c": [3, -1], "d": nothing}."""
    minus_one = b"\xff" * 9 + b"\x01"
    values = {
        "a": b"\x0a\x03\x0a\x01x",
        "b": b"\x12\x0a\x0a\x08" + struct.pack("<2f", 0.5, 2.0),
        "c": b"\x1a\x0d\x0a\x0b\x03" + minus_one,
        "d": b"",
    }
    entries = b""
    for name, value in values.items():
        entry = b"\x0a\x01" + name.encode() + b"\x12" + bytes([len(value)]) + value
        entries += b"\x0a" + bytes([len(entry)]) + entry
    assert parse_example(b"\x0a" + bytes([len(entries)]) + entries) == {
        "a": [b"x"],
        "b": [0.5, 2.0],
        "c": [3, -1],
        "d": [],
    }
    with pytest.raises(ValueError, match=r"no tf\.train\.Example"):
        parse_example(b"\x0a\xff")


def test_what_tensorflow_wrote() -> None:
    features = parse_example(read_record(WRITTEN, 1))
    steps = len(features["steps/is_first"])
    assert features["steps/is_first"] == [1] + [0] * (steps - 1)
    assert len(features["steps/action"]) == 7 * steps
    assert features["steps/observation/image"][0].startswith(b"\x89PNG")
