"""Images as an MP4 that data loaders can seek in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from predimem.core.files import AtomicWrite

CODEC, PIXEL_FORMAT = "h264", "yuv420p"


def write_video(path: Path, frames: Iterable[np.ndarray], fps: float, crf: int = 18, key_every: int = 2) -> None:
    """H.264 from images uint8 [H, W, 3], one or more, atomically; image t is shown at t / fps seconds.

    Every `key_every`th one is a key frame and none depends on a later one: a loader that wants one of them
    decodes at most two by default. The compression loses a little of every image, more with a larger
    `crf`. Raises ValueError for an odd width or height, which yuv420p cannot hold.
    """
    import imageio.v2 as imageio

    frames = iter(frames)
    first = next(frames)
    height, width = first.shape[:2]
    if height % 2 or width % 2:
        raise ValueError(f"{path}: a video needs an even width and height, got {width} x {height}")
    seekable = ["-crf", str(crf), "-g", str(key_every), "-bf", "0", "-threads", "1", "-movflags", "+faststart"]
    with AtomicWrite(path, ".partial.mp4") as partial:
        writer = imageio.get_writer(
            partial,
            fps=fps,
            codec="libx264",
            quality=None,
            pixelformat=PIXEL_FORMAT,
            macro_block_size=2,
            ffmpeg_log_level="error",
            output_params=seekable,
        )
        with writer:
            for frame in chain([first], frames):
                writer.append_data(frame)
