"""Subscribers that keep images of an episode: a video (MP4) to watch, and thumbnails of the keyframes.

Both see frames only as they pass. What they hold is bounded: the frames of the last `HISTORY_STEPS` steps, and one
small image for each keyframe. The memory can nominate a frame only while it is in its own history, which is no longer.
"""

from __future__ import annotations

import base64
import io
import textwrap
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from predimem.core.files import AtomicWrite, check_folder
from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.evaluation.analysis.stages import PANEL_PX, Stage, draw_stages, stages_of

HISTORY_STEPS = 256
THUMBNAIL_PX = 96
CAMERA_PX = 384

INK, FAINT, PAPER, PANEL = (236, 236, 232), (150, 152, 158), (18, 19, 23), (34, 36, 42)
GOOD, BAD, WARN = (84, 190, 120), (228, 92, 84), (232, 170, 64)
OUTCOME = {"success": ("SUCCESS", GOOD), "failure": ("FAILURE", BAD), "error": ("ERROR", WARN)}


@dataclass(frozen=True)
class Film:
    """How an episode is filmed: one frame for every so many control steps, shown at `fps`."""

    every_steps: int = 1
    fps: float = 5.0


LONG_EPISODES = Film(every_steps=4, fps=12.0)


class KeyframeThumbnails:
    """A Subscriber. `thumbnails`: step -> camera -> image of every frame that memory ever stored."""

    def __init__(self, history_steps: int = HISTORY_STEPS):
        self._history_steps = history_steps
        self._frames: OrderedDict[int, Mapping[str, np.ndarray]] = OrderedDict()
        self.thumbnails: dict[int, dict[str, Image.Image]] = {}

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._frames.clear()
        self.thumbnails = {}

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._frames[observation.step] = observation.images
        while len(self._frames) > self._history_steps:
            self._frames.popitem(last=False)
        for step in tick.keyframe_steps:
            if step not in self.thumbnails and step in self._frames:
                self.thumbnails[step] = {c: _thumbnail(image) for c, image in self._frames[step].items()}

    def on_end(self, result: EpisodeResult) -> None:
        self._frames.clear()

    def as_json(self) -> dict[str, dict[str, str]]:
        """Step -> camera -> data URI of a JPEG, as the report embeds them."""
        return {
            str(step): {camera: _data_uri(image) for camera, image in cameras.items()}
            for step, cameras in sorted(self.thumbnails.items())
        }


class VideoRecorder:
    """A Subscriber that writes one MP4 (H.264, yuv420p): cameras side by side, what S2 decided, memory,
    and the stages where a step's `info` names them.

    path: where the video goes; it appears there when the episode has ended, or with `finish`. scale:
    enlargement of the cameras' images; None: as much as makes them about 384 px wide. steps: only these
    control steps are shown; None: all.
    """

    def __init__(
        self,
        path: str | Path,
        film: Film | None = None,
        scale: int | None = None,
        title: str = "",
        steps: range | None = None,
    ):
        self._path = Path(path)
        self._film = film or Film()
        self._scale = scale
        self._title = title
        self._steps = steps
        self._thumbnails = KeyframeThumbnails()
        self._writer: Any = None
        self._last: tuple[Observation, Tick, tuple[Stage, ...]] | None = None
        self._has_memory = True

    @property
    def every_steps(self) -> int:
        """Control steps between two frames: no image is needed in between."""
        return self._film.every_steps

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        import imageio.v2 as imageio

        self._thumbnails.on_reset(observation, instruction, episode_id)
        self._instruction, self._last = instruction, None
        self._whole = AtomicWrite(self._path, ".partial.mp4")
        self._writer = imageio.get_writer(
            self._whole.partial,
            fps=self._film.fps,
            codec="libx264",
            pixelformat="yuv420p",
            macro_block_size=2,
            ffmpeg_log_level="error",
            output_params=["-crf", "23", "-threads", "1", "-movflags", "+faststart"],
        )

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._thumbnails.on_step(observation, action, tick, result)
        if self._last is None:  # an agent that at first neither waits, plans nor infers has no S1 and no S2
            self._has_memory = tick.held_action or tick.plan_arrived or tick.s1_latency_s is not None
        stages = stages_of(result.info)
        shown = self._steps is None or observation.step in self._steps
        if shown and observation.step % self._film.every_steps == 0:
            self._write(self._draw(observation, tick, stages, None))
        self._last = (result.observation, tick, stages)

    def on_end(self, result: EpisodeResult) -> None:
        """Show the outcome for two seconds and finish the file. Without a single step there is no video."""
        self._thumbnails.on_end(result)
        if self._writer is None:
            return
        if self._last is not None:
            frame = self._draw(*self._last, result)
            for _ in range(max(1, round(2 * self._film.fps))):
                self._write(frame)
        self.finish()

    def finish(self) -> None:
        """Close the file, which then is at its path; without a single step there is none. Raises OSError where the disk
        is full."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        try:
            check_folder(self._path.parent)  # ffmpeg does not tell
        except OSError:
            self._whole.abandon()
            raise
        if self._last is not None:
            self._whole.finish()

    def _write(self, frame: np.ndarray) -> None:
        try:
            self._writer.append_data(frame)
        except OSError:
            check_folder(self._path.parent)
            raise

    def _draw(
        self, observation: Observation, tick: Tick, stages: tuple[Stage, ...], result: EpisodeResult | None
    ) -> np.ndarray:
        cameras = [self._enlarged(image) for image in observation.images.values()]
        names = list(observation.images)
        gap, strip = 8, 126 if self._has_memory else 8
        cameras_width = sum(c.width for c in cameras) + gap * (len(cameras) + 1)
        width = max(cameras_width + (PANEL_PX if stages else 0), 640)
        lines = textwrap.wrap(self._instruction, (width - 150) // 7, max_lines=2, placeholder=" …") or [""]
        head = 92 + 17 * (len(lines) - 1)
        height = head + max(c.height for c in cameras) + strip
        canvas = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)
        draw = ImageDraw.Draw(canvas)
        self._draw_head(draw, width, lines, observation, tick)
        x = gap
        for camera, name in zip(cameras, names, strict=True):
            canvas.paste(camera, (x, head))
            draw.text((x + 6, head + 4), name.replace("_", " "), INK, _font(13), stroke_width=2, stroke_fill=PAPER)
            x += camera.width + gap
        draw_stages(draw, x + 6, head + 4, stages)
        if self._has_memory:
            self._draw_memory(canvas, draw, tick, height - strip)
        if result is not None:
            size = cameras_width if stages else canvas.width, canvas.height
            _draw_outcome(draw, size, head, height - strip, result)
        return np.asarray(canvas)

    def _enlarged(self, image: np.ndarray) -> Image.Image:
        height, width = image.shape[:2]
        scale = self._scale or max(1, CAMERA_PX // width)
        return Image.fromarray(image).resize((width * scale, height * scale), Image.Resampling.BICUBIC)

    def _draw_head(
        self, draw: ImageDraw.ImageDraw, width: int, instruction: list[str], observation: Observation, tick: Tick
    ) -> None:
        draw.text((10, 8), self._title, FAINT, _font(14))
        for row, line in enumerate(instruction):
            draw.text((10, 27 + 17 * row), line, FAINT, _font(14))
        top = 50 + 17 * (len(instruction) - 1)
        idle = "no plan yet" if self._has_memory else ""
        draw.text((10, top), tick.subtask or idle, INK if tick.subtask else FAINT, _font(26))
        right = [f"step {observation.step}   {observation.time_s:.2f} s"]
        if tick.plan_age_steps is not None:
            right.append(f"plan is {tick.plan_age_steps} step{'s' * (tick.plan_age_steps != 1)} old")
        colour = FAINT
        if tick.held_action:
            right.append("holding")
        elif tick.stale_action:
            right.append("action of the last subtask")
            colour = WARN
        if tick.plan_error is not None:
            right.append("invalid answer")
            colour = BAD
        for row, text in enumerate(right):
            font = _font(15)
            draw.text((width - 10 - font.getlength(text), 8 + 20 * row), text, colour if row > 1 else FAINT, font)

    def _draw_memory(self, canvas: Image.Image, draw: ImageDraw.ImageDraw, tick: Tick, top: int) -> None:
        """The keyframes in memory, oldest first; the oldest and the newest ones if not all fit."""
        draw.rectangle((0, top + 8, canvas.width, canvas.height), fill=PANEL)
        shown = [s for s in tick.keyframe_steps if s in self._thumbnails.thumbnails]
        if not shown:
            draw.text((10, top + 52), "memory: no keyframe stored", FAINT, _font(15))
            return
        first = self._thumbnails.thumbnails[shown[0]]
        each = max(sum(p.width for p in first.values()), 112) + 12  # at least the label's width
        room = max(1, (canvas.width - 10) // each)
        if len(shown) > room:
            shown = [shown[0], *shown[len(shown) - room + 1 :]] if room > 1 else shown[-1:]
        x = 10
        for keyframe in shown:
            label = f"keyframe: step {keyframe}"
            draw.text((x, top + 10), label, INK, _font(13))
            inside = x
            for image in self._thumbnails.thumbnails[keyframe].values():
                canvas.paste(image, (inside, top + 28))
                inside += image.width
            x += each


def _draw_outcome(
    draw: ImageDraw.ImageDraw, size: tuple[int, int], top: int, bottom: int, result: EpisodeResult
) -> None:
    word, colour = OUTCOME[result.status]
    draw.rectangle((0, top, size[0] - 1, bottom), outline=colour, width=6)
    font = _font(44)
    wide = font.getlength(word)
    x, y = (size[0] - wide) / 2, (top + bottom) / 2 - 34
    draw.rectangle((x - 20, y - 6, x + wide + 20, y + 60), fill=PAPER, outline=colour, width=3)
    draw.text((x, y), word, colour, font)
    if result.message:
        draw.text((14, bottom - 26), result.message.splitlines()[0][:90], WARN, _font(14))


def _thumbnail(image: np.ndarray) -> Image.Image:
    small = Image.fromarray(np.array(image))  # a copy: the environment may reuse its buffer
    small.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.LANCZOS)
    return small


def _data_uri(image: Image.Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def _font(size: int) -> Any:
    return ImageFont.load_default(size)
