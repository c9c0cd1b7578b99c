"""Finds the moment at which an episode first goes wrong, for those who want to look at it.

What was done counts first, because everybody can see it: the benchmark reports it itself, as RememberColor does with
the touch of a wrong cube, or the true state shows that something was achieved that was not due. Where nothing wrong
was done, it is the subtask that explains the failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from predimem.evaluation.analysis.failures import (
    AMBIGUOUS_LABEL,
    EARLY_SWITCH,
    LATE_SWITCH,
    MISSED_KEYFRAME,
    WRONG_SUBTASK,
    Failure,
)
from predimem.evaluation.analysis.subtask_labels import (
    AGAIN,
    AHEAD,
    AMBIGUOUS,
    NOTHING,
    OTHER,
    RIGHT,
    TOLERANCE_S,
    judged_labels,
    judged_runs,
)
from predimem.evaluation.report.episode_log import EpisodeLog

BY_S2 = (WRONG_SUBTASK, MISSED_KEYFRAME, LATE_SWITCH, EARLY_SWITCH, AMBIGUOUS_LABEL)
WORDS = {
    "again": "did “{}” again",
    "ahead": "did “{}” too early",
    "elsewhere": "did “{}”, which is the wrong place",
}


@dataclass(frozen=True)
class Mistake:
    """The first thing that went wrong in an episode.

    step: the control step at which the robot set about it
    done_step: the control step at which it was done; None where it only was named
    text: what it was, in words
    due: the label of the stage that was due; empty where that is not known
    """

    step: int
    done_step: int | None
    text: str
    due: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def first_mistake(log: EpisodeLog, failed: bool, failure: Failure | None = None) -> Mistake | None:
    """failed: whether the episode failed; failure: why, where that is known.

    None where nothing went wrong, or nobody knows what.
    """
    done = done_mistake(log)
    if done is not None or not failed:
        return done
    if failure is not None and failure.cause in BY_S2:
        return Mistake(failure.step, None, _named(failure.given_label), failure.label)
    wrong = next((step for step in range(len(log)) if _is_untrue(log, step)), None)
    return None if wrong is None else Mistake(wrong, None, _named(log.given_labels[wrong]), log.true_subtasks[wrong])


def done_mistake(log: EpisodeLog) -> Mistake | None:
    """The first wrong thing that was done so far; it may be asked for while the episode is running."""
    told = [(step, text) for step, text in log.mistakes]
    seen = [(step, WORDS[kind].format(label)) for step, kind, label in log.undue if kind in WORDS]
    if not told and not seen:
        return None
    done_step, text = min(told + seen, key=lambda found: found[0])
    step = _set_about(log, done_step)
    due = log.due[step]
    return Mistake(step, done_step, text, log.stages[due].label if due < len(log.stages) else "")


def wrong_now(log: EpisodeLog) -> str:
    """What is due, where the agent has named something wrong for a second, or at all where there are no stages; else
    nothing."""
    if not log.stages:
        return log.true_subtasks[-1] if len(log) and _is_untrue(log, len(log) - 1) else ""
    second = round(TOLERANCE_S * log.hz)
    if len(log) < second or log.due[-1] >= len(log.stages):
        return ""
    judged = judged_labels(log)[-second:]
    return log.stages[log.due[-1]].label if all(name in (AGAIN, AHEAD, OTHER, AMBIGUOUS) for name in judged) else ""


def in_words(mistake: Mapping[str, Any]) -> str:
    """A mistake (`to_dict`) as one line."""
    return mistake["text"] + (f" where “{mistake['due']}” was due" if mistake["due"] else "")


def _named(label: str) -> str:
    return f"named “{label}”" if label else "named nothing"


def _is_untrue(log: EpisodeLog, step: int) -> bool:
    """Whether the agent names what has not been the true subtask up to then; one that it was before is only late."""
    given, true = log.given_labels[step], log.true_subtasks[: step + 1]
    return bool(given and true and true[-1]) and given not in true


def _set_about(log: EpisodeLog, done_step: int) -> int:
    """The first step of the run of steps with one label in which the mistake was made: the last wrong label up to
    then; where all of them were right or nothing is known of them, the last one."""
    runs = [(start, judgement) for start, _, judgement in judged_runs(log) if start <= done_step]
    wrong = [start for start, judgement in runs if judgement not in (RIGHT, NOTHING)]
    return (wrong or [start for start, _, _ in log.spans() if start <= done_step])[-1]
