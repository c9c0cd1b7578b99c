"""Compares ways to keep the images of an episode: bytes, and milliseconds to write one and to read a random one.

    python benchmarks/episode_files.py EPISODE.h5

One HDF5 chunk for each image with each of HDF5's filters, and PNG files as rows of bytes.
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

from predimem.core.episode_reader import load_episode

FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    **{f"gzip {level}": {"compression": "gzip", "compression_opts": level} for level in (1, 4, 9)},
    "gzip 4, shuffled": {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    "LZF": {"compression": "lzf"},
}
PNG_LEVELS = (1, 6)


def measure(
    name: str, path: Path, images: np.ndarray, options: dict[str, Any], pack: Callable, unpack: Callable
) -> None:
    order = np.random.default_rng(0).permutation(len(images))
    began = time.perf_counter()
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("images", **options)
        for row, image in enumerate(images):
            dataset[row] = pack(image)
    written = time.perf_counter()
    with h5py.File(path, "r") as file:
        stored: Any = file["images"]
        for row in order:
            unpack(stored[row])
        assert (unpack(stored[0]) == images[0]).all()
    read = time.perf_counter()
    write_ms, read_ms = (1e3 * seconds / len(images) for seconds in (written - began, read - written))
    print(f"| {name} | {path.stat().st_size / len(images) / 1e3:.1f} | {write_ms:.2f} | {read_ms:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("episode", type=Path)
    episode = load_episode(parser.parse_args().episode)
    images = np.concatenate([frames[frames.stored][:200] for frames in episode.images.values()])
    print(f"{len(images)} images of {images[0].nbytes / 1e3:.1f} kB\n")
    print("| | kB an image | ms to write | ms to read |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.h5"
        for name, filters in FILTERS.items():
            options = {"shape": images.shape, "dtype": np.uint8, "chunks": (1, *images.shape[1:]), **filters}
            measure(name, path, images, options, lambda image: image, lambda stored: stored)
        rows = {"shape": len(images), "dtype": h5py.vlen_dtype(np.uint8)}
        for level in PNG_LEVELS:
            measure(f"PNG {level}", path, images, rows, lambda p, level=level: _png(p, level), _from_png)


def _png(image: np.ndarray, level: int) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=level)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def _from_png(stored: np.ndarray) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(stored.tobytes())))


if __name__ == "__main__":
    main()
