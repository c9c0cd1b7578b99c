"""Films short clips of failures.

An episode in simulated time comes out the same each time. So it is played again, filmed around the step at which it
went wrong, and left when that is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.files import write_json
from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.evaluation.report.thumbnails import KeyframeThumbnails
from predimem.evaluation.report.video import Film, VideoRecorder
from predimem.evaluation.run.player import Player

CLIP_FILM = Film(every_steps=4, fps=10.0)
BEFORE_STEPS, AFTER_STEPS = 80, 160  # 4 s and 8 s at 20 Hz
FOLDER = "failures"


@dataclass(frozen=True)
class Clip:
    """A failure to be filmed.

    step: the control step at which it went wrong
    cause: why, for the title
    given_label, memory: the subtask label that the agent gave then, and the keyframes that it had; they tell whether
        the episode came out the same
    """

    task: str
    agent: str
    seed: int
    step: int
    cause: str
    given_label: str
    memory: tuple[int, ...]

    @property
    def steps(self) -> range:
        return range(max(0, self.step - BEFORE_STEPS), self.step + AFTER_STEPS)

    def file(self, suffix: str) -> str:
        """Relative to the evaluation's folder. The step is part of the name: another failure is another file."""
        return f"{FOLDER}/{self.task}/{self.agent}/seed{self.seed:010d}-step{self.step}{suffix}"


def choose_clips(records: Sequence[Mapping[str, Any]], each: int) -> Iterator[Clip]:
    """Choose up to `each` failures of every agent and cause, from as many tasks and stages as there are."""
    groups: dict[tuple[str, str], dict[tuple[str, int], list[Clip]]] = {}
    for record in records:
        failure = record.get("failure")
        if failure:
            where = record["task"], failure["stage"]
            group = groups.setdefault((record["agent"], failure["cause"]), {})
            group.setdefault(where, []).append(clip_of(record))
    for places in groups.values():
        longest = max(map(len, places.values()))
        turns = (clips[i] for i in range(longest) for clips in places.values() if i < len(clips))
        yield from (clip for clip, _ in zip(turns, range(each), strict=False))


def clip_of(record: Mapping[str, Any]) -> Clip:
    """The clip for the record of a failed episode. Raises KeyError where its failure is not explained."""
    failure = record["failure"]
    return Clip(
        task=record["task"],
        agent=record["agent"],
        seed=record["seed"],
        step=failure["step"],
        cause=failure["cause"],
        given_label=failure["given_label"],
        memory=tuple(failure["memory"]),
    )


def film_clip(player: Player, clip: Clip, out: Path) -> dict[str, Any]:
    """Write the clip's video and its JSON file below `out`; return what is in that file.

    clip: the video, None where there is none
    same: whether the agent gave the same subtask label with the same keyframes in memory at the step in question
    memory: step -> camera -> data URI of the keyframes that were in memory then
    """
    title = f"{clip.task}   {clip.agent}   seed {clip.seed}   {clip.cause} at step {clip.step}"
    video = VideoRecorder(out / clip.file(".mp4"), CLIP_FILM, title=title, steps=clip.steps)
    watcher = _Watcher(clip)
    message = ""
    try:
        result = player.play(clip.task, clip.agent, clip.seed, [video, watcher])
        message = result.message if result.status == "error" else ""
    except _Seen:
        video.finish()
    data = {
        "task": clip.task,
        "agent": clip.agent,
        "seed": clip.seed,
        "step": clip.step,
        "clip": clip.file(".mp4") if watcher.tick and (out / clip.file(".mp4")).is_file() else None,
        "same": watcher.tick is not None
        and (watcher.tick.subtask, watcher.tick.keyframe_steps) == (clip.given_label, clip.memory),
        "memory": watcher.memory,
        "message": message,
    }
    write_json(out / clip.file(".json"), data)
    return data


def read_clip(clip: Clip, out: Path) -> dict[str, Any] | None:
    """What `film_clip` has written; None if it has written nothing, or if the video is gone."""
    path = out / clip.file(".json")
    data = json.loads(path.read_text()) if path.is_file() else None
    return data if data and data["clip"] and (out / data["clip"]).is_file() else None


class _Seen(BaseException):
    """Ends an episode that nobody wants the rest of. Like Ctrl-C, it is no crash: there is no result."""


class _Watcher:
    """A Subscriber that keeps the memory at the clip's step, and ends the episode after the clip."""

    def __init__(self, clip: Clip):
        self._clip = clip
        self._thumbnails = KeyframeThumbnails()
        self.tick: Tick | None = None
        self.memory: dict[str, dict[str, str]] = {}

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self._thumbnails.on_reset(observation, instruction, episode_id)

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        self._thumbnails.on_step(observation, action, tick, result)
        if observation.step == self._clip.step:
            images, held = self._thumbnails.as_json(), tick.keyframe_steps
            self.tick, self.memory = tick, {str(s): images[str(s)] for s in held if str(s) in images}
        if observation.step >= self._clip.steps[-1] and not (result.terminated or result.truncated):
            raise _Seen

    def on_end(self, result: EpisodeResult) -> None:
        self._thumbnails.on_end(result)
