"""A subscriber that films an episode as one MP4. It sees frames only as they pass, and keeps none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.files import AtomicWrite, check_folder
from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.evaluation.analysis.mistakes import done_mistake, wrong_now
from predimem.evaluation.analysis.stages import stages_of
from predimem.evaluation.report.episode_log import LogRecorder
from predimem.evaluation.report.frame import FrameDrawer, Layout, Scene
from predimem.evaluation.report.thumbnails import KeyframeThumbnails


@dataclass(frozen=True)
class Film:
    """How an episode is filmed: one frame for every so many control steps, shown at `fps`.

    narrow: as one half of a video that compares two agents, see `pair`
    """

    every_steps: int = 1
    fps: float = 5.0
    narrow: bool = False

    def layout(self, has_stages: bool) -> Layout:
        """Tasks with stages fill the bank with many keyframes, the others with a few."""
        if not self.narrow:
            return Layout()
        return Layout(narrow=True, keyframe_px=124, keyframe_rows=3 if has_stages else 1)


LONG_EPISODES = Film(every_steps=4, fps=12.0)


def open_writer(path: Path, fps: float) -> Any:
    """A writer of H.264 with yuv420p, which every browser plays; `append_data` takes uint8 [H, W, 3]."""
    import imageio.v2 as imageio

    return imageio.get_writer(
        path,
        fps=fps,
        codec="libx264",
        pixelformat="yuv420p",
        macro_block_size=2,
        ffmpeg_log_level="error",
        output_params=["-crf", "23", "-preset", "veryfast", "-threads", "1", "-movflags", "+faststart"],
    )


class VideoRecorder:
    """A Subscriber that writes one MP4: cameras side by side, what S2 decided, memory, the stages where a step's `info`
    names them, and from when it was done on what went wrong first.

    path: where the video goes; it appears there when the episode has ended, or with `finish`. scale: see
    `frame.Layout`. steps: only these control steps are shown; None: all.
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
        self._log = LogRecorder()
        self._writer: Any = None
        self._drawer: FrameDrawer | None = None
        self._last: Scene | None = None

    @property
    def every_steps(self) -> int:
        """Control steps between two frames: no image is needed in between."""
        return self._film.every_steps

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._thumbnails.on_reset(observation, instruction, episode_id)
        self._log.on_reset(observation, instruction, episode_id)
        self._instruction, self._last, self._drawer = instruction, None, None
        self._whole = AtomicWrite(self._path, ".partial.mp4")
        self._writer = open_writer(self._whole.partial, self._film.fps)

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._thumbnails.on_step(observation, action, tick, result)
        self._log.on_step(observation, action, tick, result)
        stages = stages_of(result.info)
        if self._drawer is None:
            # An agent that at first neither waits, plans nor infers has no S1 and no S2.
            has_memory = tick.held_action or tick.plan_arrived or tick.s1_latency_s is not None
            layout = replace(self._film.layout(bool(stages)), scale=self._scale)
            self._drawer = FrameDrawer(layout, self._title, self._instruction, has_memory)
        scene = Scene(observation, tick, stages, self._thumbnails.thumbnails)
        shown = self._steps is None or observation.step in self._steps
        if shown and observation.step % self._film.every_steps == 0:
            self._write(self._drawer.draw(self._judged(scene)))
        self._last = replace(scene, observation=result.observation)

    def on_end(self, result: EpisodeResult) -> None:
        """Show the outcome for two seconds and finish the file. Without a single step there is no video."""
        self._thumbnails.on_end(result)
        if self._writer is None:
            return
        if self._last is not None and self._drawer is not None:
            frame = self._drawer.draw(replace(self._judged(self._last), result=result))
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

    def _judged(self, scene: Scene) -> Scene:
        """The scene with what went wrong by now."""
        mistake = done_mistake(self._log.log)
        words = "" if mistake is None else f"went wrong at step {mistake.step}: {mistake.text}"
        return replace(scene, subtasks=self._log.log.given_labels, due=wrong_now(self._log.log), mistake=words)
