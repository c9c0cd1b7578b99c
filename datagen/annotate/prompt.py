"""What the model is shown of an episode, and what it has to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datagen.decompose.prompt import data_uri, subtasks_schema

SYSTEM = """You annotate recordings of robots, to make training data.
You get an instruction and numbered images of one recording in which a robot carries it out, in the order of time.
Divide the recording into the subtasks that the robot carries out one after another, and name each of them.

Rules:
- A subtask is one skill with one target, such as "pick up the red cup", "open the top drawer", "wait and watch".
- Name what is done so that somebody who does not see the recording could do it: which object, which place.
- The same kind of thing is always named in the same words.
- The first subtask begins with image 0. Each one lasts until the next one begins, the last one until the end.
- A subtask begins with the image in which the robot first moves towards its target.

Answer with JSON only, no other text: {"subtasks": [{"first_image": 0, "label": "pick up the red cup"}, ...]}."""
KNOWN = "Use only these labels, in exactly these words:"


def first_messages(
    instruction: str, views: Sequence[np.ndarray], steps: Sequence[int], hz: float, labels: Sequence[str]
) -> list[dict[str, Any]]:
    """The conversation up to the first answer.

    views: uint8 [H, W, 3], one for each of the `steps`. labels: those that may be used; empty: any.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": f"Instruction: {instruction}"}]
    for number, (view, step) in enumerate(zip(views, steps, strict=True)):
        content.append({"type": "text", "text": f"Image {number}, at {step / hz:.1f} s:"})
        content.append({"type": "image_url", "image_url": {"url": data_uri(view)}})
    if labels:
        content.append({"type": "text", "text": "\n- ".join([KNOWN, *labels])})
    content.append({"type": "text", "text": "Give the subtasks as JSON."})
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]


def correction(problems: Sequence[str]) -> dict[str, Any]:
    """The message that is sent after an answer that cannot be used."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return {
        "role": "user",
        "content": f"This cannot be used:\n{listed}\nGive all subtasks again as JSON, nothing else.",
    }


def response_format(labels: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of the answer, for servers with structured output."""
    label: dict[str, Any] = {"type": "string", "enum": list(labels)} if labels else {"type": "string"}
    return subtasks_schema("annotation", {"first_image": {"type": "integer"}, "label": label})
