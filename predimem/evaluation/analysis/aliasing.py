"""Counts the two ways in which an agent without memory fails, in every episode.

RoboMemArena (arXiv:2605.10921), Table S3, defines them. State aliasing: the image looks as it did before, and the
agent goes back to what it has done. Constraint forgetting: the agent goes on to what is locally possible and leaves
out what the instruction asks for before that.

Each is counted twice: where it is named (S2 gave that subtask label for a second or more), and where it is done (the
true state shows it). What is done also counts for agents that give no subtask labels.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.subtask_labels import AGAIN, AHEAD, EARLY, TOLERANCE_S, judged_runs
from predimem.evaluation.report.episode_log import EpisodeLog


@dataclass(frozen=True)
class MemoryErrors:
    """How often each kind of error occurred in one episode.

    aliasing_named: the agent named a stage anew that was done already.
    aliasing_done: it did such a stage again: it opened a drawer that it had looked into, or took an object out of
        its place.
    forgetting_named: it named a stage while others before it had not been passed, and gave that up, or kept to it to
        the end, without their being passed. The very next stage only counts where the due one depends on memory, as
        elsewhere the image shows that it was not passed.
    forgetting_done: it achieved such a stage, or poured when that was not due.
    """

    aliasing_named: int = 0
    aliasing_done: int = 0
    forgetting_named: int = 0
    forgetting_done: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def memory_errors(log: EpisodeLog, result: EpisodeResult) -> MemoryErrors | None:
    """The counts of one episode; None if it crashed, or if the environment does not explain its stages."""
    if not log.stages or result.status == "error":
        return None
    kinds = [kind for _, kind, _ in log.undue]
    aliasing = forgetting = 0
    for start, end, judgement in judged_runs(log):
        if end - start < TOLERANCE_S * log.hz:
            continue
        aliasing += judgement == AGAIN
        forgetting += judgement in (EARLY, AHEAD) and _left_out(log, judgement, start, end)
    return MemoryErrors(
        aliasing_named=aliasing,
        aliasing_done=kinds.count("again"),
        forgetting_named=forgetting,
        forgetting_done=kinds.count("ahead") + (result.message.startswith("a pour that was not due")),
    )


def _left_out(log: EpisodeLog, judgement: str, start: int, end: int) -> bool:
    """Whether the stage that was due at `start` was still due when the run ended."""
    due = log.due[start]
    still = due == (log.due[end] if end < len(log) else log.due[-1])
    return still and (judgement == AHEAD or bool(log.stages[due].memory))
