"""Logs an episode for those who explain it: what was due, which subtask labels the agent gave, what memory held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.evaluation.analysis.stages import StageFacts, facts_of


@dataclass(frozen=True)
class Answer:
    """One answer of S2.

    asked_step: the step of the observation that it answers
    subtask: None where the answer was not valid
    """

    asked_step: int
    arrived_step: int
    subtask: str | None
    confidence: float | None = None


@dataclass
class EpisodeLog:
    """What is kept of one episode.

    hz: control steps in a second
    stages: empty where the environment does not explain its stages
    given_labels: for each control step the subtask label that the agent gave
    due: for each control step the index of the stage that was due when the agent acted; it is the number of stages
        where all were passed
    answers: the answers of S2
    keyframes: (step, steps in memory from then on), wherever the memory changed
    undue: (step, kind, label) of each stage that was achieved when it was not due
    states: the states of the stages after the last step, one letter each (see `stages`)
    failed_attempts: (step, kind) of each attempt that failed
    mistakes: (step, in words) of each mistake that the environment reports itself
    true_subtasks: for each control step the true subtask when the agent acted, where an environment without stages
        tells it; else empty
    refused: the labels that S1 refused because they are ambiguous in this task
    changed: what the environment says that it changed for this episode, as JSON data; None where it says nothing
    """

    instruction: str = ""
    hz: float = 20.0
    stages: tuple[StageFacts, ...] = ()
    given_labels: list[str] = field(default_factory=list)
    due: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    keyframes: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    undue: list[tuple[int, str, str]] = field(default_factory=list)
    states: str = ""
    failed_attempts: list[tuple[int, str]] = field(default_factory=list)
    mistakes: list[tuple[int, str]] = field(default_factory=list)
    true_subtasks: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    changed: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.given_labels)

    @property
    def has_planner(self) -> bool:
        """Whether there is an S2, which gave at least one answer that is not the whole instruction."""
        return any(answer.subtask not in (None, self.instruction) for answer in self.answers)

    def is_called(self, stage: int, name: str) -> bool:
        """Whether `name` says that stage (`StageFacts.is_called`). An ambiguous label that was refused says none."""
        return name not in self.refused and self.stages[stage].is_called(name)

    def due_from(self, stage: int) -> int:
        """The first step at which `stage` or a later one was due; the episode's length if that never was."""
        return next((t for t, due in enumerate(self.due) if due >= stage), len(self))

    def memory_at(self, step: int) -> tuple[int, ...]:
        """The steps of the keyframes that memory held at `step`."""
        return next((held for since, held in reversed(self.keyframes) if since <= step), ())

    def confidence_at(self, step: int) -> float | None:
        """The planner's confidence in the plan that was followed at `step`; None where it does not say it."""
        followed = self.given_labels[step]
        valid = [a for a in self.answers if a.arrived_step <= step and a.subtask == followed]
        return valid[-1].confidence if valid else None

    def spans(self) -> list[tuple[int, int, str]]:
        """(start, end, label) of each run of steps with one label."""
        runs, start = [], 0
        for name, group in groupby(self.given_labels):
            end = start + len(list(group))
            runs.append((start, end, name))
            start = end
        return runs


class LogRecorder:
    """A Subscriber. `log` is valid at any time; `states` are the robot's states, float32 [T, D]."""

    def __init__(self) -> None:
        self.log = EpisodeLog()
        self._states: list[np.ndarray] = []

    @property
    def states(self) -> np.ndarray:
        return np.stack(self._states) if self._states else np.zeros((0, 0), np.float32)

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        self.log, self._states = EpisodeLog(instruction), []
        self._due, self._true_subtask = 0, ""

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        log, info, step = self.log, result.info, len(self.log)
        if not log.given_labels:
            log.stages = facts_of(info)
            log.changed = json.loads(str(info["changed"])) if "changed" in info else None
            seconds = result.observation.time_s - observation.time_s
            log.hz = 1 / seconds if seconds > 0 else log.hz
        log.given_labels.append(tick.subtask)
        log.due.append(self._due)
        log.true_subtasks.append(self._true_subtask)
        if tick.refusal is not None:
            log.refused.add(tick.refusal.label)
        if tick.plan_arrived:
            log.answers.append(_answer(tick, step))
        if tick.keyframe_steps != (log.keyframes[-1][1] if log.keyframes else ()):
            log.keyframes.append((step, tick.keyframe_steps))
        for achieved in str(info.get("undue", "")).splitlines():
            kind, _, label = achieved.partition(": ")
            log.undue.append((step, kind, label))
        log.failed_attempts += [(step, kind) for kind in str(info.get("failed_attempts", "")).splitlines()]
        log.mistakes += [(step, text) for text in str(info.get("mistake", "")).splitlines()]
        log.states = str(info.get("stage_states", ""))
        self._states.append(observation.state)
        self._due, self._true_subtask = _number(info, "stage_due"), str(info.get("true_subtask", ""))

    def on_end(self, result: EpisodeResult) -> None:
        pass


def _answer(tick: Tick, step: int) -> Answer:
    """An answer that was not valid, or was given in a conditioning video, counts as asked when it arrived."""
    if tick.plan_error is not None or tick.plan_step is None or tick.plan_step < 0:
        return Answer(step, step, None)
    return Answer(tick.plan_step, step, tick.plan_subtask, tick.plan_confidence)


def _number(info: Mapping[str, object], name: str) -> int:
    value = info.get(name, 0)
    return int(value) if isinstance(value, int | float) else 0
