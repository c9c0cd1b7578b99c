"""RoboMME's tasks with a conditioning video as families: the video is an earlier session, and so are other videos.

This is how RoboMME-Interference (arXiv:2606.22338) asks its question: the lesson is the video of the very episode, and
distractors are videos of other families. In an episode of this benchmark the robot does not see the video before it
acts: it comes with the history, among others.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.types import Frame, History, Observation, StepResult
from predimem.envs.interference.conditions import OWN, Condition, Draw, draw_videos
from predimem.envs.interference.recordings import Recorded, RecordingFolder, past_session
from predimem.envs.robomme.events import video_keyframes
from predimem.envs.robomme.package import SPLITS, NoScene
from predimem.envs.robomme.robot import CONTROL_HZ, OPENING
from predimem.envs.robomme.suite import Rendering, RobommeEnvironment

VERSION = "1"  # to be raised whenever a recorded video would come out otherwise
FAMILIES = ("VideoUnmask", "VideoUnmaskSwap", "MoveCube", "VideoRepick", "VideoPlaceButton", "InsertPeg")
VIDEO_EVERY = 5  # one frame of so many control steps of a video is rendered
DISTRACTORS_FROM = SPLITS["more"][0] + 5_000  # episodes that are neither trained on nor tested
INSTEAD = 100  # where RoboMME cannot build the scene of a distractor, the video of so many episodes later is taken


class VideoPool:
    """Gives the keyframes of videos; those that are missing are recorded, which needs RoboMME."""

    def __init__(self, folder: str, image_px: int, rendering: Rendering):
        self._folder = RecordingFolder(Path(folder) / f"{VERSION}-robomme-{rendering}-{image_px}px", CONTROL_HZ)
        self._image_px = image_px
        self._latest: tuple[tuple[str, int], tuple[Recorded, Recorded]] | None = None
        self._rendering: Rendering = rendering

    def video(self, task: str, number: int) -> Recorded:
        """A distractor. Raises NoScene where RoboMME can build none of ten scenes."""
        first = DISTRACTORS_FROM + number
        return self._folder.get(f"{task}/video-{first}", lambda: self._first_that_can_be_built(task, first))

    def lesson(self, task: str, seed: int) -> Recorded:
        """The video of an episode."""
        return self._folder.get(f"{task}/video-{seed}", lambda: self._record(task, seed)[0])

    def view(self, task: str, seed: int) -> Recorded:
        """What the robot sees at the start of an episode, for those who measure without playing it."""
        return self._folder.get(f"{task}/view-{seed}", lambda: self._record(task, seed)[1])

    def _record(self, task: str, seed: int) -> tuple[Recorded, Recorded]:
        """(video, view); both are often wanted one after the other."""
        if self._latest is None or self._latest[0] != (task, seed):
            self._latest = (task, seed), self._play(task, seed)
        return self._latest[1]

    def _first_that_can_be_built(self, task: str, first: int) -> Recorded:
        for seed in range(first, first + 9 * INSTEAD, INSTEAD):
            with suppress(NoScene):
                return self._record(task, seed)[0]
        return self._record(task, first + 9 * INSTEAD)[0]

    def _play(self, task: str, seed: int) -> tuple[Recorded, Recorded]:
        environment = RobommeEnvironment(task, self._image_px, self._rendering, VIDEO_EVERY)
        try:
            now = environment.reset(seed)
            view = Recorded(environment.instruction, (Frame(now.step, now.time_s, now.images),))
            return keyframes_of(environment), view
        finally:
            environment.close()


class VideoInterferenceEnvironment:
    """One of RoboMME's tasks under one condition; its own success counts. Seeds are those of the benchmark `robomme`.

    `history` has keyframes of the video (`video_keyframes`) as a session, with the steps that they have there: below 0,
    up to -1 for the last frame of the video.
    """

    def __init__(self, task: str, condition: Condition, videos: VideoPool, pool: int, inner: RobommeEnvironment):
        """pool: how many recorded videos of each family distractors are drawn from."""
        self.task, self.condition, self.inner = task, condition, inner
        self._videos, self._pool = videos, pool
        self._draw: Draw | None = None
        self._history: History | None = None

    @property
    def camera_every(self) -> int | None:
        return self.inner.camera_every

    @camera_every.setter
    def camera_every(self, steps: int | None) -> None:
        self.inner.camera_every = steps

    @property
    def simulation(self) -> Any:
        return self.inner.simulation

    @property
    def instruction(self) -> str:
        return self.inner.instruction

    @property
    def action_dim(self) -> int:
        return self.inner.action_dim

    @property
    def horizon(self) -> int:
        return self.inner.horizon

    @property
    def control_hz(self) -> float:
        return self.inner.control_hz

    @property
    def history(self) -> History:
        assert self._draw is not None, "reset() comes first"
        if self._history is None:
            sessions = []
            for index, planned in enumerate(self._draw.sessions):
                own = planned.number == OWN
                recorded = self._own if own else self._videos.video(planned.family, planned.number)
                sessions.append(past_session(index, planned, recorded))
            self._history = History(tuple(sessions), self._draw.robot, self._draw.person)
        return self._history

    def reset(self, seed: int) -> Observation:
        """Raises ValueError for a seed that stands for no episode."""
        self._draw = draw_videos(self.task, FAMILIES, self.condition, seed, self._pool)
        observation = self.inner.reset(seed)
        self._own, self._history = keyframes_of(self.inner), None
        return observation

    def step(self, action: np.ndarray) -> StepResult:
        return self.inner.step(action)

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return self.inner.hold_action(last)

    def close(self) -> None:
        self.inner.close()


def keyframes_of(environment: RobommeEnvironment) -> Recorded:
    """Of the video of the episode that was reset last. Without images, where nobody looks, there are no frames."""
    video = environment.video
    openings = [float(seen.state[OPENING].sum()) for seen in video]
    chosen = [video[index] for index in video_keyframes(openings, environment.shown_in_video) if video[index].images]
    frames = tuple(Frame(seen.step, seen.time_s, seen.images) for seen in chosen)
    return Recorded(environment.instruction, frames)
