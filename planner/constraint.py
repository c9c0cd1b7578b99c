"""Answers that cannot be anything but the JSON asked for: a mask over the vocabulary, by llguidance.

Optional, and off in evaluation: a planner that has lost its format should be seen. What has to come next in any case,
such as the names of the fields, is put into the draft that `planner.greedy` checks, so that it costs no pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from planner.answer_schema import answer_schema


class AnswerGrammar:
    """Makes an `AnswerMatcher` for each answer. Raises ValueError where llguidance is not installed.

    tokenizer: the planner's; vocabulary: how many logits the model gives; end: the token that ends an answer.
    subtasks: those that may be named; None allows any text.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, end: int, subtasks: Iterable[str] | None):
        try:
            import llguidance.hf
        except ImportError:
            raise ValueError("constrained answers need llguidance: pip install 'predimem[constrained]'") from None
        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=end)
        self._subtasks = None if subtasks is None else sorted(subtasks)
        self._vocabulary, self._end = vocabulary, end
        self._grammars: dict[str, str] = {}

    def __call__(self, window: int) -> AnswerMatcher:
        """For an answer about a recent window of so many timesteps."""
        return self.matching(answer_schema(window, self._subtasks))

    def matching(self, schema: dict[str, Any]) -> AnswerMatcher:
        """For an answer of another JSON schema. Raises ValueError for one that llguidance cannot keep to."""
        from llguidance import LLMatcher

        text = json.dumps(schema)
        if text not in self._grammars:
            grammar = LLMatcher.grammar_from_json_schema(text, defaults={"whitespace_flexible": False})
            if fault := LLMatcher.validate_grammar(grammar, self._tokenizer):
                raise ValueError(f"the JSON schema cannot be kept to: {fault}")
            self._grammars[text] = grammar
        return AnswerMatcher(LLMatcher(self._tokenizer, self._grammars[text]), self._vocabulary, self._end)


class AnswerMatcher:
    """Follows one answer, token by token."""

    def __init__(self, matcher: Any, vocabulary: int, end: int):
        import llguidance.numpy

        self._matcher, self._vocabulary, self._end = matcher, vocabulary, end
        self._fill = llguidance.numpy.fill_next_token_bitmask
        self._bits = llguidance.numpy.allocate_token_bitmask(1, vocabulary)

    @property
    def done(self) -> bool:
        """Whether nothing but the end can follow."""
        return self._matcher.is_stopped()

    @property
    def forced(self) -> list[int]:
        """The tokens that follow in any case."""
        return self._matcher.compute_ff_tokens()

    def choose(self, logits: Tensor) -> int:
        """The most likely token, by logits [V], of those that may follow; it counts as said."""
        self._fill(self._matcher, self._bits, 0)
        bits = torch.from_numpy(self._bits[0]).view(torch.uint8)
        allowed = (bits[:, None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten()[: self._vocabulary].bool()
        token = int(logits.masked_fill(~allowed.to(logits.device), float("-inf")).argmax())
        if token != self._end and not self._matcher.consume_token(token):
            raise AssertionError(f"token {token} was allowed and refused: {self._matcher.get_error()}")
        return token
