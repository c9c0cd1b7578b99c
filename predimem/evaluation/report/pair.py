"""Puts the videos of two agents side by side: the same task, the same seed, the same moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from predimem.core.files import AtomicWrite
from predimem.evaluation.report.frame import INK, PAPER, font
from predimem.evaluation.report.video import open_writer

CAPTION_PX = 44
RULE_PX = 4


class Half(NamedTuple):
    video: Path
    caption: str


def side_by_side(left: Half, right: Half, out: Path) -> None:
    """Write the MP4 `out` from two videos of the same rate; the shorter one stands still at its last frame.

    Raises ValueError where their rates differ.
    """
    import imageio.v3 as imageio

    rates = [imageio.immeta(half.video)["fps"] for half in (left, right)]
    if rates[0] != rates[1]:
        raise ValueError(f"expected two videos of the same rate, got {rates[0]} and {rates[1]} frames a second")
    with AtomicWrite(out, ".partial.mp4") as partial:
        writer = open_writer(partial, rates[0])
        streams = [imageio.imiter(half.video) for half in (left, right)]
        frames = [next(stream) for stream in streams]
        height = max(frame.shape[0] for frame in frames)
        captions = [_caption(half.caption, frame.shape[1]) for half, frame in zip((left, right), frames, strict=True)]
        ended = [False, False]
        while not all(ended):
            halves = [_half(c, frame, height) for c, frame in zip(captions, frames, strict=True)]
            rule = np.zeros((halves[0].shape[0], RULE_PX, 3), np.uint8)
            writer.append_data(np.concatenate([halves[0], rule, halves[1]], axis=1))
            for i, stream in enumerate(streams):
                following: Any = next(stream, None)
                ended[i] = following is None
                frames[i] = frames[i] if following is None else following
        writer.close()


def _caption(text: str, width: int) -> np.ndarray:
    band = Image.new("RGB", (width, CAPTION_PX), PAPER)
    draw = ImageDraw.Draw(band)
    draw.text(((width - font(22).getlength(text)) / 2, 8), text, INK, font(22))
    return np.asarray(band)


def _half(caption: np.ndarray, frame: np.ndarray, height: int) -> np.ndarray:
    """[CAPTION_PX + height, W, 3]: the caption above the frame, and below it what it lacks in height."""
    below = np.broadcast_to(np.array(PAPER, np.uint8), (height - frame.shape[0], frame.shape[1], 3))
    return np.concatenate([caption, frame, below])
