"""Logs of episodes made by hand: what was due and which labels were given, second by second."""

from __future__ import annotations

from collections.abc import Sequence

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.stages import StageFacts
from predimem.evaluation.report.episode_log import Answer, EpisodeLog

HZ = 20
PICK, FIRST, SECOND, STAND = "pick wine", "pour 1st", "pour 2nd", "place wine on table"
STAGES = (
    StageFacts(PICK, "Move", "wine", "wine", "", 140),
    StageFacts(FIRST, "Pour", "mug", "wine", "counting", 320),
    StageFacts(SECOND, "Pour", "mug", "wine", "counting", 320, (1,)),
    StageFacts(STAND, "Place", "table", "wine", "counting", 240, (1, 2)),
)
# Each stage is passed after 5 s, and its label is given when it becomes due.
GOOD = ((0, PICK, 5.0), (1, FIRST, 5.0), (2, SECOND, 5.0), (3, STAND, 5.0))


def log(parts: Sequence[tuple[int, str, float]], states: str = "", memory: Sequence[int] = ()) -> EpisodeLog:
    """parts: (stage that is due, name, seconds), one after the other. memory: keyframes, each stored at its step.

    S2 answers each second, at once; its confidence is 0.75.
    """
    given = [name for _, name, seconds in parts for _ in range(round(seconds * HZ))]
    due = [stage for stage, _, seconds in parts for _ in range(round(seconds * HZ))]
    answers = [Answer(step, step, given[step] or None, 0.75) for step in range(0, len(given), HZ)]
    held = [(step, tuple(memory[: i + 1])) for i, step in enumerate(memory)]
    return EpisodeLog("pour twice", float(HZ), STAGES, given, due, answers, held, [], states)


def failed(message: str, steps: int = 1) -> EpisodeResult:
    return EpisodeResult("wine", "predimem", 1, "failure", steps, 1, len(STAGES), message)
