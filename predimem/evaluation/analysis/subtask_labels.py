"""Judges the subtask labels that an agent gave against the stage that was due: right, late, early, and so on."""

from __future__ import annotations

from itertools import groupby

from predimem.evaluation.report.episode_log import EpisodeLog

RIGHT, LATE, AGAIN, EARLY, AHEAD, OTHER, NOTHING = "right", "late", "again", "early", "ahead", "other", "nothing"
AMBIGUOUS = "ambiguous"
TOLERANCE_S = 1.0  # around a switch, within which a label counts as belonging to it


def judged_labels(log: EpisodeLog) -> list[str]:
    """What the subtask label that the agent gave stands for, at each control step.

    right: the due stage, or picking up again the object that the due stage needs in the gripper
    late: a stage that was done, and that the agent has named without a break since before that (1 s of grace)
    again: a stage that was done, and that the agent named anew after that; states that look alike lead to this
    early: the stage after the due one
    ahead: a later stage than that
    other: no stage of this episode, but one of another variant, or of no task
    ambiguous: several stages could be meant, of this episode or another variant, so that S1 refused the label
    nothing: the agent has given no label yet
    """
    result, grace = [""] * len(log), round(TOLERANCE_S * log.hz)
    ended = [log.due_from(stage + 1) for stage in range(len(log.stages))]
    for start, end, name in log.spans():
        called = [stage for stage in range(len(log.stages)) if log.is_called(stage, name)]
        for step in range(start, end):
            result[step] = _judge(log, name, called, log.due[step], start, ended, grace)
    return result


def is_right(log: EpisodeLog, name: str, step: int) -> bool:
    """Whether the label `name` is right at `step`, as it is for picking up again what the due stage needs."""
    due = log.due[step]
    if due >= len(log.stages):
        return log.is_called(len(log.stages) - 1, name)
    if log.is_called(due, name):
        return True
    return any(_picks_up(log, i, due) for i in range(due) if log.is_called(i, name))


def _judge(log: EpisodeLog, name: str, called: list[int], due: int, start: int, ended: list[int], grace: int) -> str:
    if not name:
        return NOTHING
    if name in log.refused:
        return AMBIGUOUS
    if due in called or (due == len(log.stages) and due - 1 in called):
        return RIGHT
    if not called:
        return OTHER
    before = [stage for stage in called if stage < due]
    if before:
        if due < len(log.stages) and _picks_up(log, before[-1], due):
            return RIGHT
        return LATE if start <= ended[before[-1]] + grace else AGAIN
    return EARLY if called[0] == due + 1 else AHEAD


def _picks_up(log: EpisodeLog, stage: int, due: int) -> bool:
    return log.stages[stage].skill == "Move" and log.stages[stage].object == log.stages[due].object


def judged_runs(log: EpisodeLog) -> list[tuple[int, int, str]]:
    """(start, end, judgement) of each run of steps with one label and one due stage."""
    found, start = [], 0
    for (judgement, _, _), group in groupby(zip(judged_labels(log), log.given_labels, log.due, strict=True)):
        end = start + len(list(group))
        found.append((start, end, judgement))
        start = end
    return found
