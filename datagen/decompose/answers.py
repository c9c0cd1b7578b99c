"""Finds the steps in what a model says, which may think aloud, fence its JSON, or write sentences around it."""

from __future__ import annotations

import json
import re

from datagen.decompose.steps import AnswerError, Step, parse_steps

# The end tag alone, too: many chat templates put the start tag into the prompt.
THOUGHTS = re.compile(r"^.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
UNFINISHED = re.compile(r"<think(?:ing)?>.*$", re.DOTALL | re.IGNORECASE)


def read_answer(text: str) -> tuple[Step, ...]:
    """The steps in an answer. Thoughts, fences and prose around the one JSON object are passed over.

    Raises AnswerError where there is no object or more than one list of steps, and for every fault of form.
    """
    return parse_steps(json_answer(text))


def json_answer(text: str) -> str:
    """The one JSON object with the field subtasks in an answer; what follows the first brace where there is none.

    Raises AnswerError where nothing is said, and for more than one such object.
    """
    said = UNFINISHED.sub("", THOUGHTS.sub("", text)).strip()
    if not said:
        empty = "the answer is empty" if not text.strip() else "nothing follows the thoughts"
        raise AnswerError([f"{empty}: answer with one JSON object"])
    return _json_in(said)


def _json_in(text: str) -> str:
    """The object with the steps, by itself; the text from the first brace on where there is none."""
    found = _lists_of_steps(text)
    if len(found) > 1:
        raise AnswerError([f"{len(found)} different lists of steps: answer with one JSON object and no other"])
    if found:
        return found.pop()
    start = text.find("{")
    try:
        return json.dumps(json.JSONDecoder().raw_decode(text, start)[0])
    except (ValueError, IndexError, RecursionError):
        return text[max(start, 0) :]


def _lists_of_steps(text: str) -> set[str]:
    """The JSON objects in a text that have the field subtasks and lie in no other object, each written one way."""
    decoder = json.JSONDecoder()
    found: set[str] = set()
    start = text.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            found |= {json.dumps(value)} if "subtasks" in value else set()
        start = text.find("{", end)
    return found
