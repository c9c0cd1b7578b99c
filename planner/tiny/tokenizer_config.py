"""What a tiny planner's tokenizer knows: the instructions and subtasks that it is trained for.

Apart from `planner.tiny.tokenizer`, so that reading it loads no model library.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TokenizerConfig:
    """What the tokenizer must spell well.

    vocab_size: an upper bound of the vocabulary, without special tokens and phrases.
    instructions: the global tasks; `{name}` stands for every word of the list `words[name]`.
    sentences: what instructions are put together from: each is one token, wherever it stands in an instruction.
    subtasks: the answers; `{name}` means the same here.
    words: lists of words by name. They also say which tokens decide an answer (`deciding_words`).
    label_tokens: every subtask is one token of its own, so that naming it is one decision. Then these tokens decide an
        answer.
    block_tokens: the lines that never change are one token together, and a relative time is two tokens. Without it,
        each of these lines is a token.
    """

    vocab_size: int = 640
    instructions: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    subtasks: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] | None = None
    label_tokens: bool = False
    block_tokens: bool = False

    def all_subtasks(self) -> list[str]:
        """Every subtask with its words filled in."""
        return self._filled(self.subtasks)

    def all_instructions(self) -> list[str]:
        """Every instruction with its words filled in. A name that stands twice gets the same word in both places."""
        return self._filled(self.instructions)

    def deciding_words(self) -> list[str]:
        return [word for values in (self.words or {}).values() for word in values]

    def _filled(self, templates: Sequence[str]) -> list[str]:
        words = self.words or {}
        filled = []
        for template in templates:
            used = [name for name in words if f"{{{name}}}" in template]
            for choice in itertools.product(*(words[name] for name in used)):
                filled.append(template.format(**dict(zip(used, choice, strict=True))))
        return filled
