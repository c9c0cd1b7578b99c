"""The prompt of a vision-language model: the task of RoboMemArena (arXiv:2605.10921), section 7, in our words."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from datagen.decompose.steps import FIELDS
from datagen.decompose.vocabulary import ROLE_OF, Role, Target, Vocabulary
from predimem.envs.arena.subtasks import Skill

SYSTEM = """You plan the work of a robot arm with one gripper, to make training data for tasks that need memory.
You get one image of the scene as it is now, an instruction, the skills of the robot, and the names of everything
that a step may refer to. Break the instruction down into the steps that carry it out, in the order of execution.

The skills (planners):
- Move: go to an object and pick it up. target: the object.
- Place: put down what is held. target: the place.
- Pour: pour once from what is held. target: what is poured into or over. Pour twice is two steps.
- Open, Close: a drawer or a door. target: the drawer or door.

Rules:
- One gripper: an object is picked up with Move before it is placed or poured, and placed before the next Move.
- Opening and closing needs an empty gripper. Everything is closed at first, and nothing can be put into what is closed.
- Do all that the instruction asks for and nothing else: close only what it says to close, pour as often as it says.
- What is to be left open needs no step. A place that is full cannot be the target of another Place.
- Keep steps that only look (open, then close) and repetitions: later steps depend on what was seen and done.
- Use only names from the list as targets. Where the image does not show which place is meant, use the reference
  that describes it: the robot finds out which place that is while it works.

Answer with JSON only, no other text: {"subtasks": [{"step_id": 1, "subtask": "pick up the milk", "planner": "Move",
"target": "milk"}, ...]}. step_id counts from 1; subtask says in a few words what is done."""


def first_messages(instruction: str, image: np.ndarray, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """The conversation up to the model's first answer. image: uint8 [H, W, 3]."""
    text = f"{_scene(vocabulary)}\n\nInstruction: {instruction}\n\nGive the steps as JSON."
    content = [
        {"type": "image_url", "image_url": {"url": data_uri(image)}},
        {"type": "text", "text": text},
    ]
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]


def correction(problems: list[str]) -> dict[str, Any]:
    """The message that is sent after an answer that cannot be used."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    text = (
        f"These steps cannot be carried out:\n{listed}\nGive the whole corrected list of steps as JSON, nothing else."
    )
    return {"role": "user", "content": text}


def response_format(vocabulary: Vocabulary) -> dict[str, Any]:
    """The JSON schema that the answer has to follow, for servers with structured output."""
    kinds: dict[str, Any] = {
        "step_id": {"type": "integer"},
        "subtask": {"type": "string"},
        "planner": {"type": "string", "enum": [str(skill) for skill in Skill]},
        "target": {"type": "string", "enum": [target.name for target in vocabulary.targets]},
    }
    return subtasks_schema("decomposition", {field: kinds[field] for field in FIELDS})


def subtasks_schema(name: str, kinds: dict[str, Any]) -> dict[str, Any]:
    """The `response_format` of an answer {"subtasks": [...]}. kinds: the JSON schema of each field of a subtask."""
    entry = {"type": "object", "properties": kinds, "required": list(kinds), "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"subtasks": {"type": "array", "items": entry}},
        "required": ["subtasks"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def data_uri(image: np.ndarray) -> str:
    """An image, uint8 [H, W, 3], as a PNG in a data URI. Raises ValueError for anything else."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise ValueError(f"expected an RGB image, uint8 [H, W, 3]; got {image.dtype} {list(image.shape)}")
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _scene(vocabulary: Vocabulary) -> str:
    lines = ["Names that a step may have as its target:"]
    for target in vocabulary.targets:
        uses = ", ".join(str(skill) for skill, role in ROLE_OF.items() if role in target.roles)
        lines.append(f"- {target.name} ({uses}): {_describe(target)}")
    return "\n".join(lines)


def _describe(target: Target) -> str:
    parts = [target.note or f"the {target.called[0]}"]
    if Role.BOTTLE in target.roles:
        parts.append("can be poured from")
    if target.behind:
        parts.append(f"inside {target.behind}")
    if target.room is not None:
        parts.append(f"room for {target.room}")
    if target.candidates:
        parts.append(f"a reference: one of {', '.join(target.candidates)}")
    return "; ".join(parts)
