"""Draws one frame of a video: cameras side by side, what S2 decided, what memory holds, and the stages."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from predimem.core.types import EpisodeResult, Observation, Tick
from predimem.evaluation.analysis.stages import PANEL_PX, Stage, draw_stage_marks, draw_stages
from predimem.evaluation.report.state_image import state_image

CAMERA_PX = 384
GRID_PX = 16  # an image this narrow is a grid, whose cells are shown as they are
GAP = 8
INK, FAINT, PAPER, PANEL = (236, 236, 232), (150, 152, 158), (18, 19, 23), (34, 36, 42)
GOOD, BAD, WARN = (84, 190, 120), (228, 92, 84), (232, 170, 64)
OUTCOME = {"success": ("SUCCESS", GOOD), "failure": ("FAILURE", BAD), "error": ("ERROR", WARN)}
MARKS_PX = 26  # the row of marks that stands for the stages in a narrow frame


@dataclass(frozen=True)
class Layout:
    """Sizes in pixels that stay the same for a whole video.

    narrow: the stages are a row of marks, so that two such videos fit side by side; else a list with their names
    scale: enlargement of the cameras' images; None: as much as makes them about 384 px wide
    keyframe_px: width and height of a keyframe's image of one camera
    keyframe_rows: how many rows of keyframes there is room for
    """

    narrow: bool = False
    scale: int | None = None
    keyframe_px: int = 96
    keyframe_rows: int = 1

    @property
    def bank_px(self) -> int:
        return 30 + self.keyframe_rows * (self.keyframe_px + 22)


@dataclass(frozen=True)
class Scene:
    """What is to be seen at one control step.

    keyframes: step -> camera -> image of what memory ever held
    subtasks: for each control step so far the subtask that the agent was at
    due: the label of the stage that is due, where the agent has been naming a wrong one; else empty
    mistake: what went wrong first, in words, from when it was done on; else empty
    result: how the episode ended, at its last frame
    """

    observation: Observation
    tick: Tick
    stages: tuple[Stage, ...]
    keyframes: Mapping[int, Mapping[str, Image.Image]]
    subtasks: Sequence[str] = ()
    due: str = ""
    mistake: str = ""
    result: EpisodeResult | None = None


class FrameDrawer:
    """Draws the frames of one episode; all have the same size.

    has_memory: whether there is an S2 to show: its subtask, and the memory bank below the cameras
    """

    def __init__(self, layout: Layout, title: str, instruction: str, has_memory: bool):
        self._layout, self._title, self._instruction, self._has_memory = layout, title, instruction, has_memory

    def draw(self, scene: Scene) -> np.ndarray:
        """uint8 [H, W, 3], with an even height and width."""
        layout = self._layout
        images = scene.observation.images or {"state": state_image(scene.observation.state)}
        cameras = [self._enlarged(image) for image in images.values()]
        listed = scene.stages if not layout.narrow else ()
        cameras_width = sum(c.width for c in cameras) + GAP * (len(cameras) + 1)
        width = max(cameras_width + (PANEL_PX if listed else 0), 640)
        lines = textwrap.wrap(self._instruction, (width - 150) // 7, max_lines=2, placeholder=" …") or [""]
        marks = MARKS_PX if layout.narrow and scene.stages else 0
        head = 92 + 17 * (len(lines) - 1) + marks
        foot = layout.bank_px if self._has_memory else GAP
        height = head + max(c.height for c in cameras) + foot
        canvas = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)
        draw = ImageDraw.Draw(canvas)
        self._draw_head(draw, width, lines, scene)
        if marks:
            draw_stage_marks(draw, 10, head - marks, scene.stages)
        x = GAP
        for camera, name in zip(cameras, images, strict=True):
            canvas.paste(camera, (x, head))
            draw.text((x + 6, head + 4), name.replace("_", " "), INK, font(13), stroke_width=2, stroke_fill=PAPER)
            x += camera.width + GAP
        draw_stages(draw, x + 6, head + 4, listed)
        bottom = height - foot
        if scene.mistake:
            _draw_mistake(draw, cameras_width, bottom, scene.mistake)
        if self._has_memory:
            self._draw_memory(canvas, draw, scene, bottom)
        if scene.result is not None:
            _draw_outcome(draw, (cameras_width if listed else canvas.width, head, bottom), scene.result)
        return np.asarray(canvas)

    def _enlarged(self, image: np.ndarray) -> Image.Image:
        height, width = image.shape[:2]
        scale = self._layout.scale or max(1, CAMERA_PX // width)
        smooth = Image.Resampling.NEAREST if width <= GRID_PX else Image.Resampling.BICUBIC
        return Image.fromarray(image).resize((width * scale, height * scale), smooth)

    def _draw_head(self, draw: ImageDraw.ImageDraw, width: int, instruction: Sequence[str], scene: Scene) -> None:
        draw.text((10, 8), self._title, FAINT, font(14))
        for row, line in enumerate(instruction):
            draw.text((10, 27 + 17 * row), line, FAINT, font(14))
        top, tick = 50 + 17 * (len(instruction) - 1), scene.tick
        idle = "no plan yet" if self._has_memory else ""
        colour = BAD if scene.due else INK if tick.subtask else FAINT
        draw.text((10, top), tick.subtask or idle, colour, font(26))
        if scene.due:
            x = 10 + font(26).getlength(tick.subtask) + 14
            draw.text((x, top + 10), f"wrong: “{scene.due}” is due", BAD, font(15))
        for row, (text, colour) in enumerate(_remarks(scene)):
            draw.text((width - 10 - font(15).getlength(text), 8 + 20 * row), text, colour, font(15))

    def _draw_memory(self, canvas: Image.Image, draw: ImageDraw.ImageDraw, scene: Scene, top: int) -> None:
        """The keyframes in memory, oldest first; the oldest and the newest ones if not all fit."""
        layout, px = self._layout, self._layout.keyframe_px
        draw.rectangle((0, top + GAP, canvas.width, canvas.height), fill=PANEL)
        shown = [s for s in scene.tick.keyframe_steps if s in scene.keyframes]
        held = f"{len(shown)} keyframe{'s' * (len(shown) != 1)}" if shown else "no keyframe stored"
        draw.text((10, top + 11), f"memory bank: {held}", INK if shown else FAINT, font(14))
        if not shown:
            return
        cameras = len(scene.keyframes[shown[0]])
        each = max(cameras * px, 80) + 12  # at least the label's width
        columns = max(1, (canvas.width - 10) // each)
        room = columns * layout.keyframe_rows
        if len(shown) > room:
            shown = [shown[0], *shown[len(shown) - room + 1 :]] if room > 1 else shown[-1:]
        for place, step in enumerate(shown):
            x, y = 10 + each * (place % columns), top + 32 + (px + 22) * (place // columns)
            subtask = scene.subtasks[step] if step < len(scene.subtasks) else ""
            label = textwrap.shorten(f"step {step} {subtask}", max(12, (each - 12) // 7), placeholder=" …")
            draw.text((x, y), label, INK, font(13))
            for i, image in enumerate(scene.keyframes[step].values()):
                canvas.paste(image.resize((px, px), Image.Resampling.BICUBIC), (x + i * px, y + 18))


def font(size: int) -> Any:
    return ImageFont.load_default(size)


def _remarks(scene: Scene) -> list[tuple[str, tuple[int, int, int]]]:
    """What stands at the top right, line by line, and in which colour."""
    tick, now = scene.tick, scene.observation
    remarks = [(f"step {now.step}   {now.time_s:.2f} s", FAINT)]
    if tick.plan_age_steps is not None:
        remarks.append((f"plan is {tick.plan_age_steps} step{'s' * (tick.plan_age_steps != 1)} old", FAINT))
    if tick.held_action:
        remarks.append(("holding", FAINT))
    elif tick.stale_action:
        remarks.append(("action of the last subtask", WARN))
    if tick.plan_error is not None:
        remarks.append(("invalid answer", BAD))
    return remarks


def _draw_mistake(draw: ImageDraw.ImageDraw, width: int, bottom: int, mistake: str) -> None:
    words = textwrap.shorten(mistake, (width - 30) // 8, placeholder=" …")
    draw.rectangle((GAP, bottom - 28, width - GAP - 1, bottom - 1), fill=BAD)
    draw.text((GAP + 8, bottom - 24), words, PAPER, font(16))


def _draw_outcome(draw: ImageDraw.ImageDraw, place: tuple[int, int, int], result: EpisodeResult) -> None:
    """place: the width, the top and the bottom of the cameras' images."""
    width, top, bottom = place
    word, colour = OUTCOME[result.status]
    draw.rectangle((0, top, width - 1, bottom), outline=colour, width=6)
    wide = font(44).getlength(word)
    x, y = (width - wide) / 2, (top + bottom) / 2 - 34
    draw.rectangle((x - 20, y - 6, x + wide + 20, y + 60), fill=PAPER, outline=colour, width=3)
    draw.text((x, y), word, colour, font(44))
    if result.message:
        line = result.message.splitlines()[0][:90]
        draw.rectangle((x - 20, y + 62, x - 4 + max(wide + 24, font(14).getlength(line)), y + 84), fill=PAPER)
        draw.text((x - 12, y + 64), line, WARN, font(14))
