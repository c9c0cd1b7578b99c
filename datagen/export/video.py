"""Pictures of one camera as an MP4 that data loaders can seek in."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

CODEC, PIXEL_FORMAT = "h264", "yuv420p"


def write_video(path: Path, frames: np.ndarray, fps: int) -> None:
    """H.264 from uint8 [T, H, W, 3], atomically; the frame of step t is shown at t / fps seconds.

    Every second frame is a key frame and none depends on a later one: a loader that wants one frame
    decodes at most two. The compression loses a little of every picture. Raises ValueError for an odd
    width or height, which yuv420p cannot hold.
    """
    import imageio.v2 as imageio

    height, width = frames.shape[1:3]
    if height % 2 or width % 2:
        raise ValueError(f"{path}: a video needs an even width and height, got {width} x {height}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.mp4")
    writer = imageio.get_writer(
        partial,
        fps=fps,
        codec="libx264",
        quality=None,
        pixelformat=PIXEL_FORMAT,
        macro_block_size=2,
        ffmpeg_log_level="error",
        output_params=["-crf", "18", "-g", "2", "-bf", "0", "-threads", "1", "-movflags", "+faststart"],
    )
    for frame in frames:
        writer.append_data(frame)
    writer.close()
    os.replace(partial, path)
