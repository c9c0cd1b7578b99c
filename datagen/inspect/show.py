"""`predimem data show`: an episode as a video to watch, with its annotations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from datagen.export.video import write_video
from datagen.inspect.statistics import memory_of_spans
from predimem.core.episodes import Episode

CAMERA_PX, GAP_PX, FOOT_PX = 384, 8, 34
MOST_FPS, FLASH_S = 30.0, 0.4
INK, FAINT, PAPER = (236, 236, 232), (150, 152, 158), (18, 19, 23)
REMEMBERED, KEYFRAME = (246, 198, 91), (86, 180, 233)
BANDS = ((66, 70, 80), (88, 93, 105))


def show_episode(episode: Episode, out: str | Path, speed: float = 2.0) -> None:
    """Write an MP4 of all cameras side by side, `speed` times as fast as the robot was.

    Above them the instruction, the step and the subtask (amber where it depends on memory), beneath them the
    spans and keyframes of the whole episode; a blue frame flashes at each keyframe. Raises ValueError for an
    episode without images or of independent states, a speed that is not positive, or another suffix than .mp4.
    """
    out = Path(out)
    if out.suffix != ".mp4":
        raise ValueError(f"--out is a video that ends in .mp4, got {out}")
    if speed <= 0:
        raise ValueError(f"--speed is how many times as fast as the robot, more than 0; got {speed}")
    steps = np.flatnonzero(episode.image_steps)
    if not len(steps):
        raise ValueError(f"{episode.task} seed {episode.seed} has no images")
    if not episode.control_hz:
        raise ValueError(f"{episode.task} seed {episode.seed} holds independent states, which are no film")
    fps = len(steps) / len(episode) * episode.control_hz * speed
    skip = max(1, int(np.ceil(fps / MOST_FPS)))
    write_video(out, _pages(episode, steps[::skip], FLASH_S * episode.control_hz * speed), fps / skip, 23, 30)


def _pages(episode: Episode, steps: np.ndarray, flash_steps: float) -> Iterator[np.ndarray]:
    memory = memory_of_spans(episode) or ("",) * len(episode.subtasks)
    spans = list(zip(episode.subtasks, memory, strict=True))
    scales = {name: max(1, CAMERA_PX // frames.shape[2]) for name, frames in episode.images.items()}
    sizes = {name: (frames.shape[2] * scales[name], frames.shape[1] * scales[name]) for name, frames in
             episode.images.items()}  # fmt: skip
    width = max(sum(w for w, _ in sizes.values()) + GAP_PX * (len(sizes) + 1), 640)
    lines = textwrap.wrap(episode.instruction, width // 8, max_lines=2, placeholder=" …") or [""]
    head = 58 + 17 * len(lines)
    height = head + max(h for _, h in sizes.values()) + FOOT_PX
    foot = _foot(episode, memory, width)
    for step in map(int, steps):
        canvas = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)
        draw = ImageDraw.Draw(canvas)
        for row, line in enumerate(lines):
            draw.text((10, 6 + 17 * row), line, FAINT, _font(14))
        label, reason = next(((s.label, why) for s, why in spans if s.start <= step < s.end), ("", ""))
        draw.text(
            (10, head - 44), f"{label}  ({reason})" if reason else label, REMEMBERED if reason else INK, _font(24)
        )
        right = f"seed {episode.seed}   step {step}   {step / episode.control_hz:.1f} s"
        draw.text((width - 10 - _font(14).getlength(right), head - 34), right, FAINT, _font(14))
        flash = any(0 <= step - keyframe < flash_steps for keyframe in episode.keyframes)
        x = GAP_PX
        for name, size in sizes.items():
            canvas.paste(Image.fromarray(episode.images[name][step]).resize(size, Image.Resampling.BICUBIC), (x, head))
            if flash:
                draw.rectangle((x, head, x + size[0] - 1, head + size[1] - 1), outline=KEYFRAME, width=6)
            draw.text((x + 8, head + 6), name, INK, _font(13), stroke_width=2, stroke_fill=PAPER)
            x += size[0] + GAP_PX
        canvas.paste(foot, (0, height - FOOT_PX))
        at = _at(episode, step, width)
        draw.line((at, height - FOOT_PX + 6, at, height - 6), INK, 2)
        yield np.asarray(canvas)


def _foot(episode: Episode, memory: tuple[str, ...], width: int) -> Image.Image:
    """The spans as a band, amber where they depend on memory, and the keyframes as marks on it."""
    foot = Image.new("RGB", (width, FOOT_PX), PAPER)
    draw = ImageDraw.Draw(foot)
    for i, (span, reason) in enumerate(zip(episode.subtasks, memory, strict=True)):
        box = (_at(episode, span.start, width), 12, _at(episode, span.end, width) - 2, FOOT_PX - 12)
        draw.rectangle(box, fill=REMEMBERED if reason else BANDS[i % 2])
    for keyframe in episode.keyframes:
        x = _at(episode, keyframe, width)
        draw.line((x, 8, x, FOOT_PX - 8), KEYFRAME, 2)
    return foot


def _at(episode: Episode, step: int, width: int) -> float:
    return GAP_PX + (width - 2 * GAP_PX) * step / len(episode)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
