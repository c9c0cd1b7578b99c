"""Made-up episodes for checking memories: what a robot might see, and a planner that nominates now and then."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator

import numpy as np

from memory_bank.config import MemoryConfig
from memory_bank.contract import MemoryFault
from memory_bank.window import frozen_images
from predimem.core.interfaces import FullMemory, RecallsHistory
from predimem.core.types import Frame, History, MemorySnapshot, Observation, PastSession

HZ = 20.0
CAMERAS = ("base_camera", "hand_camera")
SCENE_STEPS = 40  # so often something new comes into view
LAG_STEPS = 4  # so late the planner answers


class MadeUpEpisode:
    """Scenes with a moving square. The images lie in buffers that are written anew at each step, as an environment may.

    side_px: the height of the images; they are a little wider than high.
    """

    def __init__(self, seed: int, side_px: int = 32):
        self.seed = seed
        self._shape = (side_px, side_px + 8, 3)
        self._buffers = {camera: np.zeros(self._shape, np.uint8) for camera in CAMERAS}
        self._state = np.zeros(7, np.float32)

    def observation(self, step: int) -> Observation:
        for place, image in enumerate(self._buffers.values()):
            rng = np.random.default_rng([self.seed, step // SCENE_STEPS, place])
            image[:] = rng.integers(0, 256, (1, 1, 3), np.uint8)
            top = 2 * (step % (self._shape[0] // 4))
            image[top : top + 6, 4:12] = rng.integers(0, 256, 3, np.uint8)
            image[0, :2] = step % 251, step // 251 % 251, place  # no two steps look the same
        self._state[:] = step
        return Observation(step, dict(self._buffers), self._state, self.time_s(step))

    def time_s(self, step: int) -> float:
        return step / HZ


def play(
    memory: FullMemory,
    episode: MadeUpEpisode,
    steps: int,
    cpu_s: list[float] | None = None,
    earlier: History | None = None,
) -> Iterator[MemorySnapshot]:
    """Reset the memory and play an episode to it; the snapshot of every control step.

    The planner's nominations come late, some twice and some of steps that nobody remembers any more.

    cpu_s: gets the CPU time that each control step took, in seconds. Other programs slow that down less than the time
    that passes. earlier: what the memory is told of before the episode.
    """
    cpu_s = [] if cpu_s is None else cpu_s
    rng = random.Random(episode.seed)
    memory.reset(f"episode-{episode.seed}", f"do number {episode.seed}")
    if earlier is not None and isinstance(memory, RecallsHistory):
        memory.recall(earlier)
    for step in range(steps):
        observation = episode.observation(step)
        began = time.process_time()
        memory.observe(observation)
        if step % 10 == LAG_STEPS:
            seen = rng.randrange(max(0, step - 15), step + 1)
            memory.nominate([rng.choice((seen, seen, seen, 0))] * rng.choice((1, 2)))
            memory.note_subtask(f"subtask {step // SCENE_STEPS}")
        snapshot = memory.snapshot()
        cpu_s.append(time.process_time() - began)
        yield snapshot


def made_up_history(instruction: str) -> History:
    """Two earlier sessions of three frames each, with one instruction."""
    sessions = []
    for number, seed in enumerate((20, 21)):
        seen = [MadeUpEpisode(seed).observation(step) for step in (0, SCENE_STEPS, 2 * SCENE_STEPS)]
        frames = tuple(Frame(o.step, o.time_s, frozen_images(o.images)) for o in seen)
        sessions.append(PastSession(f"session-{number}", 3600.0 * (2 - number), instruction, frames))
    return History(tuple(sessions))


def told(snapshot: MemorySnapshot) -> object:
    """All that a snapshot says, to compare it with another one."""
    frames = [[_told(frame) for frame in part] for part in (snapshot.recent, snapshot.keyframes)]
    sessions = [(session.name, [_told(frame) for frame in session.frames]) for session in snapshot.past_sessions]
    return snapshot.episode_id, snapshot.step, snapshot.instruction, frames, snapshot.past_subtasks, sessions


def check_frames(snapshot: MemorySnapshot, config: MemoryConfig, episode: MadeUpEpisode) -> None:
    """Raises MemoryFault unless the frames are those that a snapshot of `episode` may show."""
    first = snapshot.step - config.window_steps + 1
    window = [step for step in range(first, snapshot.step + 1, config.recent_stride_steps) if step >= 0]
    shown = [frame.step for frame in snapshot.recent]
    if shown != window:
        raise MemoryFault(
            f"at step {snapshot.step} the recent window has to be {window} (recent_window {config.recent_window}, "
            f"recent_stride_steps {config.recent_stride_steps}), it is {shown}; RecentWindow.frames() gives it"
        )
    for frame in (*snapshot.keyframes, *snapshot.recent):
        if frame.step < 0 or frame.time_s != episode.time_s(frame.step):
            raise MemoryFault(
                f"the frame of step {frame.step} has to have the time at which it was observed, "
                f"{episode.time_s(frame.step)} s, it has {frame.time_s} s"
            )
        if tuple(frame.images) != CAMERAS:
            raise MemoryFault(f"the frame of step {frame.step} has to have {CAMERAS}, it has {tuple(frame.images)}")
        for camera, image in frame.images.items():
            if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
                came = f"{image.dtype} {list(image.shape)}" if isinstance(image, np.ndarray) else type(image).__name__
                raise MemoryFault(f"{camera} of step {frame.step} has to be uint8 [H, W, 3], it is {came}")


def _told(frame: Frame) -> object:
    images = [(camera, image.shape, _digest(image)) for camera, image in frame.images.items()]
    return frame.step, frame.time_s, images


def _digest(image: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=8).digest()
