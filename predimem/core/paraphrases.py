"""Other words for instructions, from a YAML file: the name of a task -> its instruction (`original`) and `paraphrases`.

All of them may have places for words in which the episodes of the task differ, such as `{drawer}`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from predimem.core.config import ConfigError, read_yaml

_PLACE = re.compile(r"\\\{(\w+)\\\}")  # a place for a word, such as {drawer}, in a text that `re.escape` has been over
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Paraphrased:
    """A task's instruction and other words for it. file: where they stand."""

    original: str
    paraphrases: tuple[str, ...]
    file: str

    def of(self, instruction: str) -> tuple[str, ...]:
        """The paraphrases of an episode's instruction. Raises ValueError where it is not the original."""
        found = re.fullmatch(_PLACE.sub(r"(?P<\1>\\w+)", re.escape(self.original)), instruction)
        if found is None:
            raise ValueError(
                f"{self.file} has paraphrases of {self.original!r}, and the task says {instruction!r}: a task "
                "whose instruction was changed needs new ones"
            )
        return tuple(paraphrase.format(**found.groupdict()) for paraphrase in self.paraphrases)


@functools.cache
def read_paraphrases(path: Path) -> dict[str, Paraphrased]:
    """Task -> the paraphrases of its instruction. Raises ConfigError for a file of another form."""
    found = {}
    for task, entry in read_yaml(path).items():
        own = entry.get("paraphrases") if isinstance(entry, dict) else None
        if not isinstance(own, list) or not own or not all(isinstance(t, str) for t in (entry.get("original"), *own)):
            raise ConfigError(
                f"{path}: expected the text `original` and the list of texts `paraphrases` of {task}, got {entry!r}"
            )
        known = set(_FIELD.findall(entry["original"]))
        for text in own:
            if unknown := set(_FIELD.findall(text)) - known:
                raise ConfigError(f"{path}: {task}: the original has no {{{unknown.pop()}}}, which is in {text!r}")
        found[task] = Paraphrased(entry["original"], tuple(own), path.name)
    return found
