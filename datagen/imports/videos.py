"""Frames of a video file, decoded one after another by PyAV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from predimem.core.frames import EpisodeError


def read_frames(path: Path, start_s: float, count: int, fps: float) -> Iterator[np.ndarray]:
    """`count` frames uint8 [H, W, 3] in RGB: those that are shown at start_s, start_s + 1 / fps, ...

    Raises EpisodeError where one of them is missing or the file cannot be decoded.
    """
    import av
    from av.error import FFmpegError

    step = 0
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1  # workers decode side by side
            if start_s > 0 and stream.time_base is not None:
                container.seek(int(start_s / stream.time_base), stream=stream)
            for frame in container.decode(stream):
                behind = (frame.time or 0.0) - (start_s + step / fps)
                if behind < -0.5 / fps:  # between the key frame and the first one that is wanted
                    continue
                if behind > 0.5 / fps:
                    break
                yield frame.to_ndarray(format="rgb24")
                step += 1
                if step == count:
                    return
    except (FFmpegError, IndexError) as error:
        raise EpisodeError(f"{path} cannot be decoded (missing, truncated or damaged?): {error}") from error
    raise EpisodeError(
        f"{path} has no frame at {start_s + step / fps:.3f} s, which is step {step} of the episode: it is truncated, "
        "or meta/episodes does not belong to it"
    )


def scaled(image: np.ndarray, max_px: int | None) -> np.ndarray:
    """uint8 [H, W, 3]: the same image, or a smaller one whose longer side has `max_px` pixels."""
    height, width = image.shape[:2]
    if max_px is None or max(height, width) <= max_px:
        return image
    factor = max_px / max(height, width)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))
