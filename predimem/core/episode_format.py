"""Episodes on disk: one HDF5 file each, versioned, with a checksum, written once and never edited.

Layout (format version 2): attributes `format`, `version`, `checksum` and `meta` (JSON); datasets
`images/<camera>` uint8 [N, H, W, 3] (gzip, one chunk per image, so that one can be read alone: of
gzip, LZF, PNG and no compression the best trade, docs/benchmarks/episode_files.md),
`image_rows` int32 [T] where images were taken less often than control steps (see `Frames`; else
N = T), `state` float32 [T, D], `actions` float32 [T, A], and, where the expert can label what was not
done, `alternatives/*` (see `Alternatives`). The checksum is SHA-256 over `meta` and, by name, the
shape, type and SHA-256 of the bytes of each dataset. Version 1, which is read as well, has no
`image_rows`, and its checksum runs over the bytes themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from predimem.core.frames import StoredImages

FORMAT = "predimem-episode"
VERSION = 2
READABLE = (1, 2)


def header(name: str, array: Any) -> str:
    return f"{name}{tuple(array.shape)}{array.dtype}"


def checksum_of(
    version: int, meta: str, headers: Mapping[str, str], data: Mapping[str, np.ndarray | StoredImages]
) -> str:
    """Of what was read from a file; images pass through one by one."""
    if version == 1:
        digest = hashlib.sha256(meta.encode())
        for name in sorted(data):
            digest.update(headers[name].encode())
            for block in _blocks(data[name]):
                digest.update(block)
        return digest.hexdigest()
    parts = {}
    for name, array in data.items():
        digest = hashlib.sha256()
        for block in _blocks(array):
            digest.update(block)
        parts[name] = digest.hexdigest()
    return combined_checksum(meta, headers, parts)


def combined_checksum(meta: str, headers: Mapping[str, str], parts: Mapping[str, str]) -> str:
    """Version 2's checksum, from the SHA-256 of each dataset: it can be had while the episode is written."""
    digest = hashlib.sha256(meta.encode())
    for name in sorted(parts):
        digest.update(f"{headers[name]}{parts[name]}".encode())
    return digest.hexdigest()


def _blocks(array: np.ndarray | StoredImages) -> Iterator[bytes | memoryview]:
    if isinstance(array, np.ndarray):
        yield array.tobytes()
    else:
        yield from (image.data for image in array)
