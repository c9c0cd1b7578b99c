"""The two ways in which an agent without memory fails, counted in every episode.

They are those of RoboMemArena (arXiv:2605.10921), Table S3.

State aliasing: the image looks as it did before, and the agent goes back to what it has done. Constraint
forgetting: it goes on to what is locally possible and leaves out what the instruction asks for before.

Each is counted where it is named (S2 says so, for a second or more) and where it is done (the true state
shows it). What is done also counts for agents that name nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis import subtask_labels as n
from predimem.evaluation.report.episode_log import EpisodeLog


@dataclass(frozen=True)
class MemoryErrors:
    """aliasing_named: how often an earlier stage that was done was named anew. aliasing_done: how often it was done
    again: a drawer opened that had been looked into, an object taken out of its place.

    forgetting_named: how often a stage was named while others before it had not been passed, and given up
    or kept to the end without their being passed; of the very next stage only where the due one depends on memory,
    as elsewhere the image shows that it was not passed. forgetting_done: how often such a stage was achieved, or
    was poured when that was not due.
    """

    aliasing_named: int = 0
    aliasing_done: int = 0
    forgetting_named: int = 0
    forgetting_done: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def memory_errors(log: EpisodeLog, result: EpisodeResult) -> MemoryErrors | None:
    """None where the environment does not explain its stages, and for an episode that crashed."""
    if not log.stages or result.status == "error":
        return None
    kinds = [kind for _, kind, _ in log.undue]
    aliasing = forgetting = 0
    for start, end, name in n.runs(log):
        if end - start < n.TOLERANCE_S * log.hz:
            continue
        aliasing += name == n.AGAIN
        forgetting += name in (n.EARLY, n.AHEAD) and _left_out(log, name, start, end)
    return MemoryErrors(
        aliasing_named=aliasing,
        aliasing_done=kinds.count("again"),
        forgetting_named=forgetting,
        forgetting_done=kinds.count("ahead") + (result.message.startswith("a pour that was not due")),
    )


def _left_out(log: EpisodeLog, naming: str, start: int, end: int) -> bool:
    """Whether the stage that was due at `start` was still due when the run ended."""
    due = log.due[start]
    still = due == (log.due[end] if end < len(log) else log.due[-1])
    return still and (naming == n.AHEAD or bool(log.stages[due].memory))
