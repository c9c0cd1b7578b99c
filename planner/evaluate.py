"""Closed-loop replay: a planner answers on recorded frames of unseen episodes, with its own memory.

The frames are those of the recording, whatever the planner answers. The memory is the planner's own: it sees the
keyframes that it nominated itself. Latency is counted in control steps, as at run time.

The recorded arm soon heads for the right object and gives the goal away. `first_goal` is the answer before it moves,
and therefore shows whether the planner remembers or merely watches the arm.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from memory_bank import MemoryConfig, make_memory
from planner.replay import observation_at
from predimem.core.episodes import Episode
from predimem.core.interfaces import FullMemory, Planner
from predimem.core.types import Plan


@dataclass(frozen=True)
class ReplayConfig:
    """How a planner is replayed.

    latency_steps: the control steps from a snapshot to its plan; the next snapshot is taken when the plan arrives.
    keyframe_tolerance_steps: how far from an annotated keyframe a stored one may lie.
    """

    latency_steps: int = 2
    keyframe_tolerance_steps: int = 2


@dataclass(frozen=True)
class ReplayScores:
    """The figures of a replay.

    episodes, answers: how many there were.
    invalid: how many answers could not be read.
    accuracy: the share of right subtasks, by the first word of the label.
    counts: how many answers each accuracy is a share of.
    first_goal: the share of episodes in which the first answer that should name the goal is right.
    goal_episodes: the share of episodes in which every such answer is right.
    cue_kept: the share of episodes in which a frame of the first subtask is a keyframe at the end.
    keyframe_precision: the share of stored keyframes that lie near an annotated one.
    keyframe_recall: the share of annotated keyframes that have a stored one nearby.
    keyframes_per_episode: how many keyframes are stored at the end, on average.
    latency_p50_s: the median time of an answer.
    mistakes: wrong answers, each as (episode, step, label, answer).

    A share of nothing is None, such as the precision of a planner that stores no keyframes.
    """

    episodes: int
    answers: int
    invalid: int
    accuracy: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    first_goal: float | None = None
    goal_episodes: float | None = None
    cue_kept: float = 0.0
    keyframe_precision: float | None = None
    keyframe_recall: float | None = None
    keyframes_per_episode: float = 0.0
    latency_p50_s: float = 0.0
    mistakes: list[list[str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def replay_planner(
    planner: Planner, episodes: Sequence[Episode], memory: MemoryConfig, config: ReplayConfig | None = None
) -> ReplayScores:
    """Score a planner on recorded episodes (see the module's docstring). Raises ValueError for none."""
    if not episodes:
        raise ValueError("no episodes to replay")
    config = config or ReplayConfig()
    right: dict[str, list[bool]] = defaultdict(list)
    latencies: list[float] = []
    mistakes: list[list[str]] = []
    first_right, all_right, cue_kept = [], [], []
    stored, matched, annotated, recalled, invalid = 0, 0, 0, 0, 0
    for episode in episodes:
        bank = make_memory(memory)
        bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
        goals = []
        for step, plan, seconds in replay_plans(planner, bank, episode, config.latency_steps):
            label = episode.subtask_at(step)
            right[label.split()[0]].append(plan.subtask == label)
            latencies.append(seconds)
            invalid += plan.subtask is None
            if label == episode.goal:
                goals.append(plan.subtask == label)
            if plan.subtask != label:
                mistakes.append([f"{episode.task}-{episode.seed}", str(step), label, plan.text])
        kept, near = bank.keyframe_steps, config.keyframe_tolerance_steps
        stored += len(kept)
        matched += sum(any(abs(k - a) <= near for a in episode.keyframes) for k in kept)
        annotated += len(episode.keyframes)
        recalled += sum(any(abs(k - a) <= near for k in kept) for a in episode.keyframes)
        first = episode.subtasks[0].label
        cue_kept.append(any(episode.subtask_at(k) == first for k in kept))
        if goals:
            first_right.append(goals[0])
            all_right.append(all(goals))
    return ReplayScores(
        episodes=len(episodes),
        answers=len(latencies),
        invalid=invalid,
        accuracy={name: round(float(np.mean(values)), 4) for name, values in right.items()},
        counts={name: len(values) for name, values in right.items()},
        first_goal=_share(sum(first_right), len(first_right)),
        goal_episodes=_share(sum(all_right), len(all_right)),
        cue_kept=round(float(np.mean(cue_kept)), 4),
        keyframe_precision=_share(matched, stored),
        keyframe_recall=_share(recalled, annotated),
        keyframes_per_episode=round(stored / len(episodes), 2),
        latency_p50_s=round(float(np.median(latencies)), 4),
        mistakes=mistakes,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def replay_plans(
    planner: Planner, bank: FullMemory, episode: Episode, latency_steps: int
) -> Iterator[tuple[int, Plan, float]]:
    """Yields (step of the snapshot, plan, seconds). A plan is written into the bank when it arrives."""
    pending: tuple[int, Plan] | None = None
    for step in range(len(episode)):
        bank.observe(observation_at(episode, step))
        if pending is not None and step >= pending[0] + latency_steps:
            bank.nominate(pending[1].keyframe_steps)
            if (said := pending[1].said) is not None:
                bank.note_subtask(said)
            pending = None
        if pending is None:
            began = time.perf_counter()
            plan = planner.plan(bank.snapshot())
            yield step, plan, time.perf_counter() - began
            pending = (step, plan)
