"""How well a planner follows the subtasks of long episodes, on recorded frames and with its own memory.

As in `planner.evaluate` the frames are those of the recording, whatever the planner answers. The figures say how often
it names the right subtask, inside the subtasks, around their changes and where they depend on memory, and which
changes it names too early, too late or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from memory_bank import MemoryConfig, make_memory
from planner.evaluate import replay_plans
from planner.nominations import nominated_frames
from predimem.core.episodes import Episode
from predimem.core.interfaces import Planner


@dataclass(frozen=True)
class TrackingConfig:
    """How a planner is replayed, and what counts as right.

    latency_steps: the control steps from a snapshot to its plan; the next snapshot is taken when the plan arrives.
    tolerance_steps: an answer that is no further from a change of subtask belongs to the change, and a change may be
        named so much too early or too late.
    keyframe_tolerance_steps: how far from its target a stored keyframe may lie.
    nominate, traceless, told, events: which keyframes are the targets (`planner.dataset.DatasetConfig`).
    """

    latency_steps: int = 10
    tolerance_steps: int = 20
    keyframe_tolerance_steps: int = 12
    nominate: str = "subtask_ends"
    traceless: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Track:
    """What a planner did in one episode.

    episode: the recorded episode.
    answers: each answer as (step of its snapshot, subtask); the subtask is None if the answer could not be read.
    keyframes: the steps of the keyframes that were stored in the end.
    memory: the planner's memory.
    """

    episode: Episode
    answers: Sequence[tuple[int, str | None]]
    keyframes: Sequence[int]
    memory: MemoryConfig = field(default_factory=MemoryConfig)


@dataclass(frozen=True)
class TrackingScores:
    """Shares; a share is None where there is nothing to count.

    inside: the right ones of the answers that are further from a change of subtask than the tolerance.
    boundary: the right ones of the answers that are nearer to one.
    memory: as `inside`, of the subtasks that depend on memory.
    spans: the subtasks of which most inside answers are right.
    premature, late, missed: the changes of subtask that were named too early, too late or not at all.
    keyframe_precision: the stored keyframes that lie near a target.
    keyframe_recall: the targets that have a stored keyframe nearby.
    annotated_recall: the annotated keyframes that have a stored keyframe nearby.
    invalid: the answers that could not be read.
    counts: for each share, how many things it is a share of.
    """

    inside: float | None = None
    boundary: float | None = None
    memory: float | None = None
    spans: float | None = None
    premature: float | None = None
    late: float | None = None
    missed: float | None = None
    keyframe_precision: float | None = None
    keyframe_recall: float | None = None
    annotated_recall: float | None = None
    invalid: float | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def track_planner(
    planner: Planner, episodes: Sequence[Episode], memory: MemoryConfig, config: TrackingConfig | None = None
) -> list[Track]:
    """Ask a planner all through recorded episodes. Raises ValueError for none."""
    if not episodes:
        raise ValueError("no episodes to replay")
    config = config or TrackingConfig()
    tracks = []
    for episode in episodes:
        bank = make_memory(memory)
        bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
        plans = replay_plans(planner, bank, episode, config.latency_steps)
        answers = [(step, plan.subtask) for step, plan, _ in plans]
        tracks.append(Track(episode, answers, bank.keyframe_steps, memory))
    return tracks


def score_by_group(tracks: Sequence[Track], config: TrackingConfig | None = None) -> dict[str, TrackingScores]:
    """The scores of all episodes ("all"), of each category that the episodes' metadata names, and of each task."""
    groups: dict[str, list[Track]] = {"all": list(tracks)}
    for key in ("category", "task"):
        for track in tracks:
            name = track.episode.task if key == "task" else track.episode.metadata.get(key)
            if name:
                groups.setdefault(name, []).append(track)
    return {name: score(group, config or TrackingConfig()) for name, group in groups.items()}


def score(tracks: Sequence[Track], config: TrackingConfig) -> TrackingScores:
    """All figures over these episodes taken together."""
    found: dict[str, list[bool]] = {}
    for track in tracks:
        for name, value in (*_answers(track, config), *_switches(track, config), *_keyframes(track, config)):
            found.setdefault(name, []).append(value)
    shares = {name: round(float(np.mean(values)), 4) for name, values in found.items()}
    return TrackingScores(**shares, counts={name: len(values) for name, values in found.items()})


def _answers(track: Track, config: TrackingConfig) -> Iterable[tuple[str, bool]]:
    episode = track.episode
    depends = episode.metadata.get("spans_memory") or [""] * len(episode.subtasks)
    changes = [span.start for span in episode.subtasks[1:]]
    for span, memory in zip(episode.subtasks, depends, strict=True):
        inside = []
        for step, answer in track.answers:
            if not span.start <= step < span.end:
                continue
            right = answer == span.label
            yield "invalid", answer is None
            if any(abs(step - change) <= config.tolerance_steps for change in changes):
                yield "boundary", right
                continue
            inside.append(right)
            yield "inside", right
            if memory:
                yield "memory", right
        if inside:
            yield "spans", float(np.mean(inside)) > 0.5


def _switches(track: Track, config: TrackingConfig) -> Iterable[tuple[str, bool]]:
    """A change is missed if the new subtask is not named before the next change, or the end."""
    spans = track.episode.subtasks
    for earlier, before, after in zip((None, *spans), spans, spans[1:], strict=False):
        if before.label == after.label:
            continue
        begin = before.start
        if earlier is not None and earlier.label == after.label:  # it goes back: it may still be named from before
            begin = next((t for t, a in track.answers if t >= begin and a == before.label), after.start)
        first = next((t for t, a in track.answers if begin <= t < after.end and a == after.label), None)
        yield "premature", first is not None and first < after.start - config.tolerance_steps
        yield "late", first is not None and first > after.start + config.tolerance_steps
        yield "missed", first is None


def _keyframes(track: Track, config: TrackingConfig) -> Iterable[tuple[str, bool]]:
    which = (config.told, config.events)
    targets = nominated_frames(track.episode, config.nominate, config.traceless, track.memory, *which)
    near = config.keyframe_tolerance_steps
    for kept in track.keyframes:
        yield "keyframe_precision", any(abs(kept - target) <= near for target in targets)
    for name, wanted in (("keyframe_recall", targets), ("annotated_recall", track.episode.keyframes)):
        for target in wanted:
            yield name, any(abs(kept - target) <= near for kept in track.keyframes)
