"""Greedy decoding that checks a guess: the planner's last answer is usually also its next one.

A guess (a *draft*, in the terms of speculative decoding) is read together with the prompt. Its tokens are kept as
far as the model would have said them; from the first other one on decoding goes on as usual. The answer is the one
that greedy decoding gives without a guess, float rounding aside, and a right guess costs a single pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from planner.forward import Block
from planner.reading import PromptReader, Question


@dataclass
class Decoded:
    """One decoded answer.

    tokens: the answer's tokens without the end token.
    probabilities: the probability of each token, given those before it.
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
) -> list[Decoded]:
    """Decodes an answer to each of the questions: the most likely token each time, until `end`.

    Callers switch gradients off.

    guesses: for each question, tokens that its answer may well begin with. Any guess is allowed; a right one saves
        time.
    """
    guesses = guesses or [()] * len(questions)
    answers = [Decoded() for _ in questions]
    drafts = [list(guess[: max_new_tokens - 1]) for guess in guesses]
    logits = reader.read(questions, drafts)
    while True:
        for question, answer, draft, logits_ in zip(questions, answers, drafts, logits, strict=True):
            if not answer.finished:
                wrong = len(draft) - _accept(answer, draft, logits_, end, max_new_tokens)
                question.prefix.known.cut(question.prefix.known.length - wrong)
        if all(answer.finished for answer in answers):
            return answers
        drafts = [_draft(a.tokens, guess, max_new_tokens) for a, guess in zip(answers, guesses, strict=True)]
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


def _accept(answer: Decoded, draft: list[int], logits: Tensor, end: int, max_new_tokens: int) -> int:
    """Prolong an answer by what logits [1 + len(draft), V] say; how many tokens of the draft were right."""
    best = logits.argmax(-1, keepdim=True)
    chances = logits.float().softmax(-1).gather(-1, best)[:, 0].tolist()
    for index, (token, chance) in enumerate(zip(best[:, 0].tolist(), chances, strict=True)):
        if token == end:
            answer.finished = True
            return index
        answer.tokens.append(token)
        answer.probabilities.append(chance)
        answer.finished = len(answer.tokens) >= max_new_tokens
        if answer.finished or index == len(draft) or draft[index] != token:
            return index
    raise AssertionError("the last logits end the loop")


def _draft(tokens: list[int], guess: Sequence[int], max_new_tokens: int) -> list[int]:
    """How the answer may go on: as the guess does after its last token, else as if one token had been another."""
    if not tokens:
        return []
    known = list(guess)
    start = len(known) - known[::-1].index(tokens[-1]) if tokens[-1] in known else len(tokens)
    return known[start:][: max_new_tokens - len(tokens) - 1]
