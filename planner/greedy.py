"""Greedy decoding that checks a guess: the planner's last answer is usually also its next one.

A guess (a *draft*, in the terms of speculative decoding) is read together with the prompt. Its tokens are kept as
far as the model would have said them; from the first other one on decoding goes on as usual. The answer is the one
that greedy decoding gives without a guess, float rounding aside, and a right guess costs a single pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from planner.constraint import AnswerMatcher
from planner.forward import Block
from planner.reading import PromptReader, Question


@dataclass
class Decoded:
    """One decoded answer.

    tokens: the answer's tokens without the end token.
    probabilities: the probability that the model gives to each token, given those before it.
    finished: whether the answer has come to its end, or is as long as is allowed.
    """

    tokens: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    finished: bool = False


def greedy_decode(
    reader: PromptReader,
    questions: Sequence[Question],
    end: int,
    max_new_tokens: int,
    guesses: Sequence[Sequence[int]] | None = None,
    matchers: Sequence[AnswerMatcher | None] | None = None,
) -> list[Decoded]:
    """Decodes an answer to each of the questions: the most likely token each time, until `end`.

    Callers switch gradients off.

    guesses: for each question, tokens that its answer may well begin with. Any guess is allowed; a right one saves
        time.
    matchers: for each question, what the answer is kept to; None leaves it free.
    """
    guesses = guesses or [()] * len(questions)
    matchers = matchers or [None] * len(questions)
    answers = [Decoded() for _ in questions]
    drafts = [_drafted(list(g), m)[: max_new_tokens - 1] for g, m in zip(guesses, matchers, strict=True)]
    logits = reader.read(questions, drafts)
    while True:
        asked = zip(questions, answers, drafts, logits, matchers, strict=True)
        for question, answer, draft, logits_, matcher in asked:
            if not answer.finished:
                wrong = len(draft) - _accept(answer, draft, logits_, end, max_new_tokens, matcher)
                question.prefix.known.cut(question.prefix.known.length - wrong)
        if all(answer.finished for answer in answers):
            return answers
        drafts = [
            _drafted(_draft(answer.tokens, guess), matcher)[: max_new_tokens - len(answer.tokens) - 1]
            for answer, guess, matcher in zip(answers, guesses, matchers, strict=True)
        ]
        open_ = [number for number, answer in enumerate(answers) if not answer.finished]
        blocks = [
            Block(
                [answers[number].tokens[-1], *drafts[number]],
                questions[number].inputs.next_position + len(answers[number].tokens) - 1,
                questions[number].prefix.known,
            )
            for number in open_
        ]
        read = dict(zip(open_, reader.forward.extend(blocks), strict=True))
        logits = [read.get(number, logits[number]) for number in range(len(answers))]


def _accept(
    answer: Decoded, draft: list[int], logits: Tensor, end: int, max_new_tokens: int, matcher: AnswerMatcher | None
) -> int:
    """Prolong an answer by what logits [1 + len(draft), V] say; how many tokens of the draft were right."""
    for index, (token, chance) in enumerate(_choices(logits, matcher)):
        if token == end:
            answer.finished = True
            return index
        answer.tokens.append(token)
        answer.probabilities.append(chance)
        answer.finished = len(answer.tokens) >= max_new_tokens or (matcher is not None and matcher.done)
        right = index < len(draft) and draft[index] == token
        if answer.finished or not right:
            return index + right
    raise AssertionError("the last logits end the loop")


def _choices(logits: Tensor, matcher: AnswerMatcher | None) -> Iterator[tuple[int, float]]:
    """(token, the probability that the model gives it) after each of the tokens that logits [Q, V] follow."""
    chances = logits.float().softmax(-1)
    if matcher is None:
        best = logits.argmax(-1, keepdim=True)
        yield from zip(best[:, 0].tolist(), chances.gather(-1, best)[:, 0].tolist(), strict=True)
        return
    for row, chance in zip(logits, chances, strict=True):
        token = matcher.choose(row)
        yield token, float(chance[token])


def _drafted(guess: list[int], matcher: AnswerMatcher | None) -> list[int]:
    """A guess, or what has to come in any case where the guess says something else."""
    forced = [] if matcher is None else matcher.forced
    return guess if guess[: len(forced)] == forced else forced


def _draft(tokens: list[int], guess: Sequence[int]) -> list[int]:
    """How the answer may go on: as the guess does after its last token, else as if one token had been another."""
    if not tokens:
        return []
    known = list(guess)
    start = len(known) - known[::-1].index(tokens[-1]) if tokens[-1] in known else len(tokens)
    return known[start:]
