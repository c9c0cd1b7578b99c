"""Turns the planner's answer into a `Plan`. Parsing is strict, because a wrong answer must be seen, not guessed at."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from predimem.core.subtask_labels import in_turn
from predimem.core.types import MemorySnapshot, Plan

FIELDS = ("current_primitive", "keyframe_positions")
_SUBTASK = re.compile(r'"current_primitive"\s*:\s*"((?:[^"\\]|\\.)*")')


class AnswerError(ValueError):
    """An answer that is not the JSON asked for."""


def parse_plan(text: str, snapshot: MemorySnapshot) -> Plan:
    """The plan that answers `snapshot`. Positions become absolute steps of its recent window.

    Never raises on a bad answer: the plan then has no subtask and says why in `error`.
    """
    try:
        said, positions = parse_answer(text, window=len(snapshot.recent))
    except AnswerError as error:
        return Plan(snapshot.episode_id, snapshot.step, None, (), text, str(error))
    steps = tuple(snapshot.recent[position - 1].step for position in positions)
    subtask, *later = in_turn(said)
    return Plan(snapshot.episode_id, snapshot.step, subtask, steps, text, next_subtasks=tuple(later))


def parse_answer(text: str, window: int) -> tuple[str, tuple[int, ...]]:
    """Returns (subtask with what comes next, sorted 1-indexed positions).

    Raises AnswerError unless `text` is exactly one JSON object with the two fields, a non-empty string and a list of
    integers in 1..window.
    """
    try:
        answer = json.loads(text, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        raise AnswerError(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError:
        raise AnswerError("not JSON that can be read: nested too deeply") from None
    if not isinstance(answer, dict):
        raise AnswerError(f"expected a JSON object, got {type(answer).__name__}")
    if set(answer) != set(FIELDS):
        raise AnswerError(f"expected exactly the fields {', '.join(FIELDS)}, got {', '.join(answer) or 'none'}")
    subtask, positions = answer["current_primitive"], answer["keyframe_positions"]
    if not isinstance(subtask, str) or not all(part.strip() for part in in_turn(subtask)):
        raise AnswerError(f"current_primitive must be a non-empty string, got {subtask!r}")
    if not isinstance(positions, list) or not all(type(p) is int for p in positions):
        raise AnswerError(f"keyframe_positions must be a list of integers, got {positions!r}")
    outside = [p for p in positions if not 1 <= p <= window]
    if outside:
        raise AnswerError(f"keyframe position {outside[0]} lies outside the recent window 1..{window}")
    return subtask, tuple(sorted(set(positions)))


def subtask_characters(text: str) -> tuple[int, int]:
    """(start, end) of the subtask's characters in an answer that can be parsed, the closing quote included.

    Raises AnswerError if there is none.
    """
    found = _SUBTASK.search(text)
    if found is None:
        raise AnswerError("no current_primitive")
    return found.span(1)


def subtask_probability(text: str, ends: Sequence[int], probabilities: Sequence[float]) -> float:
    """The probability of the subtask: that of all tokens that hold a part of it or the quote that ends it.

    text: an answer that can be parsed. ends: after each of its tokens, how many characters there are.
    """
    start, end = subtask_characters(text)
    chance, before = 1.0, 0
    for after, probability in zip(ends, probabilities, strict=True):
        if before < end and after > start:
            chance *= probability
        before = after
    return round(chance, 6)  # the digits that do not depend on the machine


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise AnswerError(f"a field appears twice: {', '.join(keys)}")
    return dict(pairs)
