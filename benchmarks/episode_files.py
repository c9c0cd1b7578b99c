"""Ways to keep the pictures of an episode: bytes, and milliseconds to write one and to read a random one.

    python benchmarks/episode_files.py EPISODE.h5

One HDF5 chunk for each picture with each of HDF5's filters, and PNG files as rows of bytes.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

from predimem.core.episodes import load_episode

FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    **{f"gzip {level}": {"compression": "gzip", "compression_opts": level} for level in (1, 4, 9)},
    "gzip 4, shuffled": {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    "LZF": {"compression": "lzf"},
}
PNG_LEVELS = (1, 6)


def measure(
    name: str, path: Path, pictures: np.ndarray, options: dict[str, Any], pack: Callable, unpack: Callable
) -> None:
    order = np.random.default_rng(0).permutation(len(pictures))
    began = time.perf_counter()
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("pictures", **options)
        for row, picture in enumerate(pictures):
            dataset[row] = pack(picture)
    written = time.perf_counter()
    with h5py.File(path, "r") as file:
        stored: Any = file["pictures"]
        for row in order:
            unpack(stored[row])
        assert (unpack(stored[0]) == pictures[0]).all()
    read = time.perf_counter()
    write_ms, read_ms = (1e3 * seconds / len(pictures) for seconds in (written - began, read - written))
    print(f"| {name} | {path.stat().st_size / len(pictures) / 1e3:.1f} | {write_ms:.2f} | {read_ms:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("episode", type=Path)
    episode = load_episode(parser.parse_args().episode)
    pictures = np.concatenate([frames[frames.stored][:200] for frames in episode.images.values()])
    print(f"{len(pictures)} pictures of {pictures[0].nbytes / 1e3:.1f} kB\n")
    print("| | kB a picture | ms to write | ms to read |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pictures.h5"
        for name, filters in FILTERS.items():
            options = {"shape": pictures.shape, "dtype": np.uint8, "chunks": (1, *pictures.shape[1:]), **filters}
            measure(name, path, pictures, options, lambda picture: picture, lambda stored: stored)
        rows = {"shape": len(pictures), "dtype": h5py.vlen_dtype(np.uint8)}
        for level in PNG_LEVELS:
            measure(f"PNG {level}", path, pictures, rows, lambda p, level=level: _png(p, level), _from_png)


def _png(picture: np.ndarray, level: int) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", compress_level=level)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _from_png(stored: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(stored.tobytes())))


if __name__ == "__main__":
    main()
