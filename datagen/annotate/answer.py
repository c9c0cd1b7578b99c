"""The subtasks in what a model says, as spans of an episode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from datagen.decompose.answers import json_answer
from datagen.decompose.steps import AnswerError
from predimem.core.episodes import SubtaskSpan

FIELDS = {"first_image", "label"}


def read_spans(text: str, shown: Sequence[int], steps: int, labels: Sequence[str] = ()) -> tuple[SubtaskSpan, ...]:
    """Spans that cover the episode. shown: the step of each image. labels: those that may be used; empty: any.

    Raises AnswerError with everything that is wrong, in sentences that the model is told.
    """
    try:
        answer = json.loads(json_answer(text))
    except json.JSONDecodeError as error:
        raise AnswerError([f"not JSON ({error.msg}): answer with one JSON object"]) from None
    entries = answer.get("subtasks") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not entries:
        raise AnswerError(["expected a JSON object with the field subtasks, a list of one subtask or more"])
    problems = [problem for number, entry in enumerate(entries, 1) for problem in _faults(entry, number, shown, labels)]
    if problems:
        raise AnswerError(problems)
    first = [entry["first_image"] for entry in entries]
    if first[0] != 0:
        problems.append(f"the first subtask begins with image 0, not {first[0]}")
    if any(after <= before for before, after in pairwise(first)):
        problems.append(f"each subtask begins with a later image than the one before, not {first}")
    if problems:
        raise AnswerError(problems)
    starts = [0, *(shown[image] for image in first[1:])]
    ends = [*starts[1:], steps]
    spans = [
        SubtaskSpan(start, end, entry["label"].strip()) for start, end, entry in zip(starts, ends, entries, strict=True)
    ]
    return _joined(spans)


def _faults(entry: Any, number: int, shown: Sequence[int], labels: Sequence[str]) -> list[str]:
    where = f"entry {number} of subtasks"
    if not isinstance(entry, dict) or set(entry) != FIELDS:
        return [f"{where}: expected an object with exactly the fields first_image and label, got {entry!r}"]
    image, label, faults = entry["first_image"], entry["label"], []
    if type(image) is not int or not 0 <= image < len(shown):
        faults.append(f"{where}: first_image must be one of 0 to {len(shown) - 1}, not {image!r}")
    if not isinstance(label, str) or not label.strip():
        faults.append(f"{where}: label must be a text that is not empty, not {label!r}")
    elif labels and label.strip() not in labels:
        faults.append(f"{where}: {label!r} is none of the labels {', '.join(labels)}")
    return faults


def _joined(spans: Sequence[SubtaskSpan]) -> tuple[SubtaskSpan, ...]:
    """Neighbours with the same label are one span."""
    joined: list[SubtaskSpan] = []
    for span in spans:
        if joined and joined[-1].label == span.label:
            joined[-1] = SubtaskSpan(joined[-1].start, span.end, span.label)
        else:
            joined.append(span)
    return tuple(joined)
