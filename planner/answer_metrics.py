"""Figures of answers while a planner is trained: is the subtask right, and are the right keyframes nominated?

They come from the validation pass itself, which costs no decoding and works however the weights are sharded: the most
likely token at each place, given the label's tokens before it. Greedy decoding names the label's subtask exactly if all
tokens up to the end of the subtask are right here, so this is its accuracy. The nominations are judged behind the
label's subtask; a first wrong one is seen as it would be, what would follow it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.parsing import AnswerError, subtask_characters

IGNORED = -100  # the label of what is no part of the answer
_POSITIONS = re.compile(r'"keyframe_positions"\s*:\s*\[([^\]]*)')
_SOME_POSITION = 0  # stands for a nomination whose number cannot be seen


@dataclass(frozen=True)
class AnswerScores:
    """answers: how many there were. subtask_accuracy: the share with the right subtask.
    keyframe_precision, keyframe_recall, keyframe_f1: of all nominations together; 1 where none is wanted or made.
    """

    answers: int
    subtask_accuracy: float
    keyframe_precision: float
    keyframe_recall: float
    keyframe_f1: float


def answer_scores(predicted: np.ndarray, labels: np.ndarray, decode: Callable[[Sequence[int]], str]) -> AnswerScores:
    """predicted: the most likely token after each place, int [N, K]; labels: the token at each place, int [N, K],
    `IGNORED` outside the answer; decode: tokens to text."""
    right = answers = hits = said = wanted = 0
    for row, label in zip(predicted[:, :-1], labels[:, 1:], strict=True):
        inside = label != IGNORED
        if not inside.any():
            continue
        true, guess = label[inside].tolist(), row[inside].tolist()
        end = _end_of_subtask(true, decode)
        answers += 1
        right += guess[:end] == true[:end]
        nominated, targets = _nominated(true[:end], guess[end:], true[end:], decode), _positions(decode(true))
        hits += len(nominated & targets)
        said, wanted = said + len(nominated), wanted + len(targets)
    precision, recall = hits / said if said else 1.0, hits / wanted if wanted else 1.0
    f1 = 2 * hits / (said + wanted) if said + wanted else 1.0
    return AnswerScores(answers, right / answers if answers else 0.0, precision, recall, f1)


def _end_of_subtask(tokens: Sequence[int], decode: Callable[[Sequence[int]], str]) -> int:
    """How many tokens there are up to the quote that ends the subtask."""
    try:
        _, end = subtask_characters(decode(tokens))
    except AnswerError:  # cut off
        return len(tokens)
    return next(count for count in range(1, 1 + len(tokens)) if len(decode(tokens[:count])) >= end)


def _nominated(
    before: list[int], guess: list[int], true: list[int], decode: Callable[[Sequence[int]], str]
) -> set[int]:
    found = _positions(decode([*before, *guess]))
    silent = not found and guess != true and not _positions(decode([*before, *true]))
    return {_SOME_POSITION} if silent else found


def _positions(text: str) -> set[int]:
    found = _POSITIONS.search(text)
    return set(map(int, re.findall(r"\d+", found[1]))) if found else set()
