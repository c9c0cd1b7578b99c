"""Memories of a user's own with one fault each, and one without."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from memory_bank import MemoryConfig, RecentWindow
from predimem.core.types import Frame, MemorySnapshot


class Sound:
    """Every twentieth frame, at most `most`."""

    def __init__(self, config: MemoryConfig, most: int = 4):
        self.config, self.most = config, min(most, config.keyframe_capacity or most)

    def reset(self, episode_id: str, instruction: str) -> None:
        self.episode_id, self.instruction = episode_id, instruction
        self.window, self.kept = RecentWindow(self.config), []

    def observe(self, observation: Any) -> None:
        frame = self.window.add(observation)
        if frame.step % 20 == 0 and self.config.keyframes:
            self.keep(frame)

    def keep(self, frame: Frame) -> None:
        self.kept = [*self.kept, frame][-self.most :]

    def nominate(self, steps: Any) -> None:
        pass

    def snapshot(self) -> MemorySnapshot:
        return self.show(self.window.older(self.kept))

    def show(self, keyframes: Any) -> MemorySnapshot:
        recent = self.window.frames()
        return MemorySnapshot(self.episode_id, recent[-1].step, self.instruction, recent, tuple(keyframes))


class NewerThanTheWindow(Sound):
    def snapshot(self):
        return self.show(self.kept)


class NewestFirst(Sound):
    def snapshot(self):
        return self.show(reversed(self.window.older(self.kept)))


class NoWindow(Sound):
    def snapshot(self):
        snapshot = super().snapshot()
        return replace(snapshot, recent=snapshot.recent[-1:], keyframes=())


class AnyOrder(Sound):
    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.frames = {}

    def observe(self, observation):
        self.frames[observation.step] = Frame(observation.step, observation.time_s, observation.images)

    def snapshot(self):
        return MemorySnapshot(
            self.episode_id,
            max(self.frames),
            self.instruction,
            tuple(self.frames.values())[-self.config.recent_window :],
        )


class ShowsNothing(Sound):
    def snapshot(self):
        recent = self.window.frames() if self.window.last else (Frame(0, 0.0, {}),)
        return MemorySnapshot(self.episode_id, recent[-1].step, self.instruction, recent)


class PaintsOver(Sound):
    """One image that is the mean of all so far, and always the same array."""

    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.mean = None

    def keep(self, frame):
        if self.mean is None:
            self.mean = {name: np.zeros_like(image) for name, image in frame.images.items()}
            self.shown = {name: image.view() for name, image in self.mean.items()}
            for image in self.shown.values():
                image.flags.writeable = False
            self.kept = [replace(frame, images=self.shown)]
        for name, image in self.mean.items():
            image[:] = (image.astype(int) + frame.images[name]) // 2


class Writeable(Sound):
    def keep(self, frame):
        super().keep(replace(frame, images={name: image.copy() for name, image in frame.images.items()}))


class Leaks(Sound):
    """It goes on counting where the episode before ended."""

    count = -1

    def observe(self, observation):
        frame = self.window.add(observation)
        self.count += 1
        if self.count % 37 == 0 and self.config.keyframes:
            self.keep(frame)


class Shares(Sound):
    """All memories together note which step was kept last."""

    notes = SimpleNamespace(step=-1)

    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.notes.step = -1

    def keep(self, frame):
        if frame.step > self.notes.step:
            super().keep(frame)
        self.notes.step = frame.step


class ByTheClock(Sound):
    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.began = time.monotonic()

    def observe(self, observation):
        frame = self.window.add(observation)
        if self.config.keyframes and not self.kept and time.monotonic() - self.began > 60:
            self.kept = [frame]


class ByChance(Sound):
    def keep(self, frame):
        if random.random() < 0.5:
            super().keep(frame)


class KeepsAll(Sound):
    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.all = []

    def observe(self, observation):
        super().observe(observation)
        self.all.append(self.window.last)


class LooksBack(Sound):
    """Each step costs more than the one before."""

    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.steps = []

    def observe(self, observation):
        super().observe(observation)
        self.steps.append(observation.step)
        self.latest = max(itertools.chain(*[self.steps] * (1 + len(self.steps) // 20)))


class FromZero(Sound):
    """Takes steps for places in a list."""

    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.places = [False] * 300

    def observe(self, observation):
        super().observe(observation)
        self.places[observation.step] = True


class OverCapacity(Sound):
    def keep(self, frame):
        self.kept = [*self.kept, frame][-4:]


class Half:
    def __init__(self, config: MemoryConfig):
        pass

    def reset(self, episode_id: str, instruction: str) -> None:
        pass

    def observe(self, observation: Any) -> None:
        pass


class Darkens(Sound):
    """Shows images that it made itself."""

    def keep(self, frame):
        dark = {name: image // 2 for name, image in frame.images.items()}
        for image in dark.values():
            image.flags.writeable = False
        super().keep(replace(frame, images=dark))


class Recalls(Sound):
    """Shows all earlier sessions, and does not say so."""

    def reset(self, episode_id, instruction):
        super().reset(episode_id, instruction)
        self.sessions = ()

    def recall(self, history):
        self.sessions = history.sessions

    def snapshot(self):
        return replace(super().snapshot(), past_sessions=self.sessions)


class RecallsForEver(Recalls):
    sessions, shows_sessions = (), True

    def reset(self, episode_id, instruction):
        Sound.reset(self, episode_id, instruction)
