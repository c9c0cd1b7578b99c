"""Reviews an episode for its record: why it failed, and how good S2 was in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.aliasing import memory_errors
from predimem.evaluation.analysis.failures import explain
from predimem.evaluation.analysis.mistakes import first_mistake
from predimem.evaluation.analysis.planner_figures import planner_counts
from predimem.evaluation.analysis.retries import retry_counts
from predimem.evaluation.report.episode_log import LogRecorder

TrueKeyframes = Callable[[np.ndarray, float], Sequence[int] | None]

NO_REVIEW: dict[str, Any] = {
    "failure": None,
    "mistake": None,
    "memory_errors": None,
    "planner": None,
    "retries": None,
}


def review(recorder: LogRecorder, result: EpisodeResult, true_keyframes: TrueKeyframes | None = None) -> dict[str, Any]:
    """The review as JSON data. Each part is None where it does not apply; for an error all of them are.

    failure: see `failures.Failure`
    mistake: see `mistakes.first_mistake`
    memory_errors: see `aliasing.MemoryErrors`
    planner: see `planner_figures.planner_counts`
    retries: see `retries.retry_counts`

    true_keyframes: gives the steps of the keyframes by Eq. 1-3 of RoboMemArena (arXiv:2605.10921), or None, for the
        robot's states [T, D] and the control rate in Hz.
    """
    log = recorder.log
    if result.status == "error":
        return dict(NO_REVIEW)
    failure, errors = explain(log, result), memory_errors(log, result)
    mistake = first_mistake(log, result.status == "failure", failure)
    true = true_keyframes(recorder.states, log.hz) if true_keyframes and log.has_planner else None
    return {
        "failure": failure.to_dict() if failure else None,
        "mistake": mistake.to_dict() if mistake else None,
        "memory_errors": errors.to_dict() if errors else None,
        "planner": planner_counts(log, true),
        "retries": retry_counts(log),
    }
