"""Finds out why an episode failed, from what was due, which subtask labels the agent gave and what memory held.

Each failed episode has exactly one of these causes, at the stage that was not passed:

- `wrong subtask`: S2 named another subtask than the one that was due;
- `missed keyframe`: S2 did so, and memory held no keyframe of an earlier stage that the decision draws on;
- `late switch`: S2 stayed at the stage before, which had been passed;
- `early switch`: S2 went on to the next stage before this one was passed, where the image shows that it was not;
- `ambiguous label`: S2 named something that could mean several subtasks of this task, and S1 refused it;
- `wrong place`: S2 named the right subtask, but it was done where another variant would have it, as the label does
  not say where; it does not matter what S2 named after that;
- `motor failure`: S2 named the right subtask for its whole budget of control steps, or while something happened that
  cannot be mended, and the stage was not passed;
- `timeout`: S2 named the right subtask, but earlier stages had left too little time;
- `undone`: all stages were passed, and one of them did not last;
- `no subtask named`: the agent gives no subtask labels, so that memory and motor skill cannot be told apart.

Errors (episodes that crashed) and environments that do not explain their stages have no cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.subtask_labels import AMBIGUOUS, EARLY, LATE, RIGHT, TOLERANCE_S, judged_labels
from predimem.evaluation.report.episode_log import EpisodeLog

WRONG_SUBTASK, MISSED_KEYFRAME, LATE_SWITCH, EARLY_SWITCH = (
    "wrong subtask",
    "missed keyframe",
    "late switch",
    "early switch",
)
AMBIGUOUS_LABEL, WRONG_PLACE, MOTOR, TIMEOUT, UNDONE, UNNAMED = (
    "ambiguous label",
    "wrong place",
    "motor failure",
    "timeout",
    "undone",
    "no subtask named",
)
CAUSES = (
    WRONG_SUBTASK,
    MISSED_KEYFRAME,
    LATE_SWITCH,
    EARLY_SWITCH,
    AMBIGUOUS_LABEL,
    WRONG_PLACE,
    MOTOR,
    TIMEOUT,
    UNDONE,
    UNNAMED,
)
SUDDEN_S = 3.0  # the label that was given in the last seconds explains a failure that cannot be mended


@dataclass(frozen=True)
class Failure:
    """Why one episode failed.

    cause: one of `CAUSES`
    stage, label: the stage that was not passed
    step: the control step at which it began to go wrong, where to look
    given_label: the subtask label that the agent gave then
    missing: those stages that the decision draws on and of which memory held nothing
    memory: the steps of the keyframes that memory held then
    confidence: the planner's confidence in its label, where it says so
    """

    cause: str
    stage: int
    label: str
    step: int
    given_label: str
    missing: tuple[str, ...] = ()
    memory: tuple[int, ...] = ()
    confidence: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"missing": list(self.missing), "memory": list(self.memory)}


def explain(log: EpisodeLog, result: EpisodeResult) -> Failure | None:
    """The failure of an episode; None if it did not fail, or if nothing is known of its stages."""
    if result.status != "failure" or not log.stages or not len(log):
        return None
    due, last = log.due[-1], len(log) - 1
    if "x" in log.states:  # the stage that was due after the last step, which may have passed the one before
        due = log.states.index("x")
    if due >= len(log.stages) or "x" not in log.states:
        undone = max(log.states.find("-"), 0)
        return _failure(log, UNDONE, undone, last)
    return _explain_stage(log, due, not result.message.startswith("out of time"))


def _explain_stage(log: EpisodeLog, stage: int, sudden: bool) -> Failure:
    last = len(log) - 1
    start = min(log.due_from(stage), last)
    if not any(name and name != log.instruction for name in log.given_labels):
        return _failure(log, UNNAMED, stage, last if sudden else start)
    if sudden:
        start = max(start, last + 1 - round(SUDDEN_S * log.hz))
    judged = judged_labels(log)[start:]
    place = _done_elsewhere(log, start, judged)
    if place is not None:
        return _failure(log, WRONG_PLACE, stage, place)
    wrong = [judgement for judgement in judged if judgement != RIGHT]
    budget, right = log.stages[stage].budget_steps, len(judged) - len(wrong)
    if sudden and right >= len(wrong):
        return _failure(log, MOTOR, stage, last)
    if not sudden and right >= min(budget, len(wrong) + 1):
        if right >= budget:
            return _failure(log, MOTOR, stage, min(last, start + budget // 2))
        return _failure(log, TIMEOUT, stage, last)
    return _blame_planner(log, stage, start, judged, Counter(wrong).most_common(1)[0][0])


def _done_elsewhere(log: EpisodeLog, start: int, judged: Sequence[str]) -> int | None:
    """The first step from `start` on at which it was done elsewhere under the right label."""
    done = (step for step, kind, _ in log.undue if kind == "elsewhere" and step >= start)
    return next((step for step in done if judged[step - start] == RIGHT), None)


def _blame_planner(log: EpisodeLog, stage: int, start: int, judged: Sequence[str], worst: str) -> Failure:
    step = start + judged.index(worst)
    if worst == AMBIGUOUS:
        return _failure(log, AMBIGUOUS_LABEL, stage, step)
    missing = missing_evidence(log, stage, step) if log.has_planner else ()
    if worst == LATE:
        return _failure(log, LATE_SWITCH, stage, step)
    if worst == EARLY and not log.stages[stage].memory:
        return _failure(log, EARLY_SWITCH, stage, step)
    return _failure(log, MISSED_KEYFRAME if missing else WRONG_SUBTASK, stage, step, missing)


def missing_evidence(log: EpisodeLog, stage: int, step: int) -> tuple[str, ...]:
    """Labels of the stages that `stage` draws on and of which memory holds no keyframe at `step`.

    A keyframe belongs to a pour or a pick if it lies between the step at which that was due and 1 s after it was
    passed. It belongs to an opening or a placement, whose outcome has to be seen, if it lies between 1 s before that
    was passed and the step at which the next stage was passed.
    """
    held, second = log.memory_at(step), round(TOLERANCE_S * log.hz)
    missing = []
    for earlier in log.stages[stage].evidence:
        passed = log.due_from(earlier + 1)
        if log.stages[earlier].skill in ("Pour", "Move"):
            first, last = log.due_from(earlier), passed + second
        else:
            first, last = passed - second, log.due_from(earlier + 2)
        if not any(first <= keyframe <= last for keyframe in held):
            missing.append(log.stages[earlier].label)
    return tuple(missing)


def _failure(log: EpisodeLog, cause: str, stage: int, step: int, missing: tuple[str, ...] = ()) -> Failure:
    return Failure(
        cause=cause,
        stage=stage,
        label=log.stages[stage].label,
        step=step,
        given_label=log.given_labels[step],
        missing=missing,
        memory=log.memory_at(step),
        confidence=log.confidence_at(step),
    )
