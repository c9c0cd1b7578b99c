"""`instructions`: the robot is told the same in other words, by one of 100 paraphrases for the 26 tasks.

They stand in `paraphrases.yaml`. Nothing is trained on them.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from predimem.core.config import read_yaml
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import Setting

PARAPHRASES = Path(__file__).with_name("paraphrases.yaml")
_PLACE = re.compile(r"\\\{(\w+)\\\}")  # a place for a word, such as {drawer}, in a text that `re.escape` has been over


@dataclass(frozen=True)
class Paraphrased:
    """A task's instruction and other words for it; both may have places for the words that its variants differ in."""

    original: str
    paraphrases: tuple[str, ...]

    def of(self, instruction: str) -> tuple[str, ...]:
        """The paraphrases of a variant's instruction. Raises ValueError where it is not the original."""
        found = re.fullmatch(_PLACE.sub(r"(?P<\1>\\w+)", re.escape(self.original)), instruction)
        if found is None:
            raise ValueError(
                f"{PARAPHRASES.name} has paraphrases of {self.original!r}, and the task says {instruction!r}: a task "
                "whose instruction was changed needs new ones"
            )
        return tuple(paraphrase.format(**found.groupdict()) for paraphrase in self.paraphrases)


@functools.cache
def all_paraphrases() -> dict[str, Paraphrased]:
    """Task -> the paraphrases of its instruction."""
    return {
        task: Paraphrased(entry["original"], tuple(entry["paraphrases"]))
        for task, entry in read_yaml(PARAPHRASES).items()
    }


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    if task.name not in all_paraphrases():
        raise ValueError(f"{PARAPHRASES.name} has no paraphrases of {task.name}: play it in another condition")
    original = task.variants[setting.layout.variant].instruction
    told = str(rng.choice(all_paraphrases()[task.name].of(original)))
    return replace(setting, instruction=told, changed={**setting.changed, "instruction": told})
