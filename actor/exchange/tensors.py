"""Tensors in safetensors files under other names, copied byte by byte: a checkpoint never has to fit into memory.

The library reads and writes whole files. A file is 8 bytes with the length of a JSON header, the header (name → dtype,
shape, place), and the tensors one after the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from actor.weights import WeightsError
from predimem.core.files import AtomicWrite

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U8": 8, "BOOL": 8}
BLOCK = 1 << 24


@dataclass(frozen=True)
class Stored:
    """A tensor of a file. Without a path it is made of zeros.

    dtype: as safetensors calls it, such as "BF16".
    start: its first byte in the file.
    """

    path: Path | None
    dtype: str
    shape: tuple[int, ...]
    start: int = 0

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * BITS[self.dtype] // 8


def stored_tensors(folder: Path) -> dict[str, Stored]:
    """name → tensor, of `model.safetensors`, or of the files that its index names. Raises WeightsError for files that
    are missing, cut off, or are no safetensors."""
    if (folder / FILE).is_file():
        return dict(_read_header(folder / FILE))
    if not (folder / INDEX).is_file():
        raise WeightsError(f"no checkpoint in {folder}: expected {FILE}, or {INDEX} and the files that it names")
    try:
        files = sorted(set(json.loads((folder / INDEX).read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise WeightsError(f"{folder / INDEX} is no index of safetensors: {error!r}; copy it again") from error
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise WeightsError(f"{folder}: {', '.join(missing)} of {len(files)} files missing that {INDEX} names")
    return {name: tensor for file in files for name, tensor in _read_header(folder / file)}


def _read_header(path: Path) -> Iterator[tuple[str, Stored]]:
    mend = "it was cut off or is no safetensors file: copy it again"
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise WeightsError(f"{path} has {size} bytes and its header would have {length}; {mend}")
        try:
            header: dict[str, Any] = json.loads(file.read(length))
            header.pop("__metadata__", None)
            ends = [entry["data_offsets"][1] for entry in header.values()]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WeightsError(f"{path} has no header that can be read ({error!r}); {mend}") from error
    begin = 8 + length
    if size != (expected := begin + max(ends, default=0)):
        raise WeightsError(f"{path} should have {expected} bytes by its header, it has {size}; {mend}")
    for name, entry in header.items():
        if entry["dtype"] not in BITS:
            raise WeightsError(f"{path}: {name} is {entry['dtype']}; expected one of {', '.join(BITS)}")
        yield name, Stored(path, entry["dtype"], tuple(entry["shape"]), begin + entry["data_offsets"][0])


def write_tensors(path: Path, tensors: Mapping[str, Stored]) -> None:
    """Write one safetensors file, whole under its name. Wide types come first, so that each begins at a multiple of its
    own size."""
    order = sorted(tensors, key=lambda name: (-BITS[tensors[name].dtype], name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        tensor = tensors[name]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [end, end + tensor.size]}
        end += tensor.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with AtomicWrite(path) as partial, partial.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            _copy(tensors[name], out)


def _copy(tensor: Stored, out: BinaryIO) -> None:
    left = tensor.size
    if tensor.path is None:
        for _ in range(0, left, BLOCK):
            out.write(bytes(min(BLOCK, left)))
            left -= min(BLOCK, left)
        return
    with tensor.path.open("rb") as file:
        file.seek(tensor.start)
        while left:
            data = file.read(min(BLOCK, left))
            if not data:
                raise WeightsError(f"{tensor.path} has become shorter while it was read; copy it again")
            out.write(data)
            left -= len(data)
