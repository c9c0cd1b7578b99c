"""TFRecord files and the `tf.train.Example` in them, without TensorFlow.

A record is its length (uint64, little endian), the length's checksum (uint32), the data, and their checksum. Checksums
are CRC-32C, masked: rotated right by 15 bits, plus a constant.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from predimem.core.frames import EpisodeError

HEAD, CHECKSUM = struct.Struct("<QI"), struct.Struct("<I")
MASK = 0xA282EAD8
KINDS = {"bytes_list": "BytesList", "float_list": "FloatList", "int64_list": "Int64List"}


def read_record(path: Path, number: int) -> bytes:
    """The data of a record, counted from 0. Raises EpisodeError for a file that is truncated or altered."""
    try:
        with path.open("rb") as file:
            for _ in range(number):
                file.seek(_length(file, path) + CHECKSUM.size, 1)
            length = _length(file, path)
            data, checksum = file.read(length), file.read(CHECKSUM.size)
    except OSError as error:
        raise EpisodeError(f"{path} cannot be read: {error}") from error
    if len(data) < length or checksum != CHECKSUM.pack(masked_crc(data)):
        raise EpisodeError(f"{path}: record {number} is truncated or altered: get the file anew")
    return data


def _length(file: BinaryIO, path: Path) -> int:
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EpisodeError(f"{path} ends before its last record: get the file anew")
    length, checksum = HEAD.unpack(head)
    if checksum != masked_crc(head[:8]):
        raise EpisodeError(f"{path} is no TFRecord file, or altered (or a pointer of git LFS?): get the file anew")
    return length


def masked_crc(data: bytes) -> int:
    import google_crc32c

    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def parse_example(data: bytes) -> dict[str, list[Any]]:
    """Feature -> its values: bytes, floats or whole numbers. Raises ValueError where the data are no example."""
    from google.protobuf.message import DecodeError

    example = _example_class()()
    try:
        example.ParseFromString(data)
    except DecodeError as error:
        raise ValueError(f"a record is no tf.train.Example: {error}") from error
    features: Mapping[str, Any] = example.features.feature
    return {
        name: list(getattr(f, kind).value) if (kind := f.WhichOneof("kind")) else [] for name, f in features.items()
    }


@cache
def _example_class() -> Any:
    """The message class of `tf.train.Example`, by the field numbers of TensorFlow's example.proto and feature.proto."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    package = "predimem.tfrecord"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")

    def add(message: Any, name: str, number: int, kind: int, repeated: bool = False, of: str = "", **more: Any) -> None:
        label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
        named = {"type_name": f".{package}.{of}"} if of else {}
        message.field.add(name=name, number=number, type=kind, label=label, **named, **more)  # type: ignore[arg-type]

    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        add(file.message_type.add(name=name), "value", 1, kind, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, of) in enumerate(KINDS.items(), 1):
        add(feature, name, number, field.TYPE_MESSAGE, of=of, oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field.TYPE_STRING)
    add(entry, "value", 2, field.TYPE_MESSAGE, of="Feature")
    add(features, "feature", 1, field.TYPE_MESSAGE, repeated=True, of="Features.FeatureEntry")
    add(file.message_type.add(name="Example"), "features", 1, field.TYPE_MESSAGE, of="Features")

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[attr-defined]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Example"))
