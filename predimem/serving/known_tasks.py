"""Whether a planner has learned what it is told: how far a prompt is from the instructions of its training.

A planner answers every prompt with one of its subtasks, however little it has understood, and says that it is sure. So
the prompt itself is looked at. Where a planner was trained from scratch, one other noun is another task, and only the
instructions of its training, give or take articles and courtesy, are known to it. A pretrained one reads other words
for the same thing, so that it is doubted only where a prompt has little in common with all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

FROM_SCRATCH, PRETRAINED = 1.0, 0.4  # chosen on docs/benchmarks/known_tasks.md
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_EMPTY = frozenset(("a", "an", "the", "and", "then", "please", "now", "to", "could", "you"))


@dataclass(frozen=True)
class TasksConfig:
    """What becomes of prompts that the planner was not trained on.

    unknown: `warn` says so in every reply, `refuse` does not begin the episode, `accept` says nothing.
    similarity: prompts below it are unknown, from 0 (shares no word with any instruction of the training) to 1 (is one
    of them); null: 1 for a planner that was trained from scratch, 0.4 for a pretrained one.
    """

    unknown: Literal["warn", "refuse", "accept"] = "warn"
    similarity: float | None = None

    def __post_init__(self) -> None:
        if self.similarity is not None and not 0 <= self.similarity <= 1:
            raise ValueError(f"tasks: similarity is from 0 to 1, got {self.similarity}")


@dataclass(frozen=True)
class KnownTasks:
    """instructions: those of the planner's training; none: they are not known, and no prompt is doubted.

    pretrained: the planner was a language model before.
    """

    instructions: tuple[str, ...] = ()
    pretrained: bool = False

    def nearest(self, prompt: str) -> tuple[float, str]:
        """(similarity, instruction) of the one that is most like the prompt; there has to be one."""
        words = content_words(prompt)
        return max((similarity(words, content_words(known)), known) for known in self.instructions)

    def doubt(self, prompt: str, config: TasksConfig) -> str | None:
        """Why the planner may not have learned this task, in a sentence for people; None where it has."""
        if not self.instructions or config.unknown == "accept":
            return None
        found, known = self.nearest(prompt)
        enough = PRETRAINED if self.pretrained else FROM_SCRATCH
        if found >= (enough if config.similarity is None else config.similarity):
            return None
        return (
            f"the planner was not trained on this task, so that the robot may do something else; the nearest of its "
            f"{len(self.instructions)} instructions is {known!r} (similarity {found:.2f})"
        )


def content_words(text: str) -> list[str]:
    """The words, in their order and in lower case, without those that change no task."""
    return [word for found in _WORD.findall(text) if (word := found.lower().replace("’", "'")) not in _EMPTY]


def similarity(words: list[str], others: list[str]) -> float:
    """Twice the number of words that stand in both in the same order, by the number of words of both: 0 to 1."""
    return SequenceMatcher(None, words, others, autojunk=False).ratio()
