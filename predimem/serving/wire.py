"""The wire format: msgpack with NumPy arrays, as openpi-client packs them, read without trust.

An array is a map of four byte-string keys (`__ndarray__`, data, dtype, shape), a NumPy number one of three. What is
read is bounded before memory is given out for it: number of items, depth, and bytes of each array. There is no
pickle, no object dtype and no extension type.
"""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np

DTYPES = frozenset(["b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])
MAX_ITEMS = 4096  # of one list or map: msgpack reserves memory for as many as a message claims
NO_LIMIT = 2**31 - 1  # for what this package wrote itself
MAX_DIMENSIONS = 8
_ARRAY = {b"__ndarray__", b"data", b"dtype", b"shape"}
_NUMBER = {b"__npgeneric__", b"data", b"dtype"}
_PLAIN = {"b": bool, "i": int, "u": int, "f": float}  # what a NumPy number of this kind is sent as


class WireError(ValueError):
    """A message that is not of this format: what was expected, in words that a client may read."""


def pack(message: Any) -> bytes:
    """The bytes of plain data, NumPy arrays and NumPy numbers. Raises TypeError for anything else."""
    return msgpack.packb(message, default=_pack_numpy)  # type: ignore[return-value]


def unpack(data: bytes, max_array_bytes: int, max_items: int = MAX_ITEMS) -> Any:
    """What `pack` packed; arrays are read-only views of `data`. Raises WireError, and nothing else.

    max_items: of one list or map.
    """
    try:
        return msgpack.unpackb(
            data,
            object_hook=lambda found: _unpack_numpy(found, max_array_bytes),
            ext_hook=_no_extension,
            strict_map_key=True,
            max_array_len=max_items,
            max_map_len=max_items,
            max_ext_len=0,
        )
    except WireError:
        raise
    except Exception as error:  # msgpack raises half a dozen types, some of them with the message's content
        raise WireError(f"not a msgpack message that can be read ({type(error).__name__})") from None


def _pack_numpy(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.str[1:] not in DTYPES:
            raise TypeError(f"arrays of dtype {value.dtype} cannot be sent")
        if isinstance(value, np.ndarray):
            return {
                b"__ndarray__": True,
                b"data": value.tobytes(),
                b"dtype": value.dtype.str,
                b"shape": value.shape,
            }
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _unpack_numpy(found: dict[Any, Any], max_array_bytes: int) -> Any:
    if b"__ndarray__" in found:
        return _array(found, max_array_bytes)
    if b"__npgeneric__" in found:
        return _number(found)
    if any(isinstance(key, bytes) for key in found):
        raise WireError("names of fields have to be strings")
    return found


def _array(found: dict[Any, Any], max_bytes: int) -> np.ndarray:
    data, shape = found.get(b"data"), found.get(b"shape")
    if set(found) != _ARRAY or not isinstance(data, bytes) or not isinstance(shape, list):
        raise WireError("an array consists of __ndarray__, data, dtype and shape")
    dtype = _dtype(found[b"dtype"])
    if len(shape) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise WireError(f"the shape of an array has to be up to {MAX_DIMENSIONS} sizes that are not negative")
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size != len(data):
        raise WireError(f"an array of dtype {dtype} and shape {shape} has {size} bytes, got {len(data)}")
    if size > max_bytes:
        raise WireError(f"an array has {size} bytes; {max_bytes} are allowed")
    array = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    return array.reshape(shape)


def _number(found: dict[Any, Any]) -> np.generic:
    if set(found) != _NUMBER:
        raise WireError("a NumPy number consists of __npgeneric__, data and dtype")
    value, dtype = found[b"data"], _dtype(found[b"dtype"])
    fits = type(value) is _PLAIN[dtype.kind]
    if not fits or (dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
        raise WireError(f"a number does not fit its dtype {dtype}")
    return dtype.type(value)


def _dtype(name: Any) -> np.dtype:
    """Numbers and truth values only: a dtype string can also describe objects and records."""
    if not isinstance(name, str) or name[:1] not in "<>|=" or name[1:] not in DTYPES:
        raise WireError(f"the dtype of an array has to be one of {', '.join(sorted(DTYPES))} (with < or |)")
    return np.dtype(name)


def _no_extension(code: int, data: bytes) -> Any:
    raise WireError("msgpack's extension types are not used here")
