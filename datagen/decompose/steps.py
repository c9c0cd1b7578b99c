"""The steps that an instruction is decomposed into, as strict JSON (RoboMemArena, arXiv:2605.10921, section 7)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from predimem.envs.arena.subtasks import Skill

FIELDS = ("step_id", "subtask", "planner", "target")


@dataclass(frozen=True)
class Step:
    """One step, which one skill carries out. Place and Pour act on what the gripper holds.

    step_id: the number of the step; the first is 1.
    subtask: what to do, in words.
    planner: the skill.
    target: the object (Move), the place (Place), what is poured into or over (Pour), or the joint (Open, Close).
    """

    step_id: int
    subtask: str
    planner: Skill
    target: str


class AnswerError(ValueError):
    """An answer that is not the JSON that was asked for.

    problems: what is wrong with it, one sentence each.
    """

    def __init__(self, problems: Sequence[str]):
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def to_json(steps: Sequence[Step]) -> str:
    """The paper's form: {"subtasks": [{"step_id": 1, "subtask": ..., "planner": ..., "target": ...}, ...]}."""
    return json.dumps({"subtasks": [asdict(step) for step in steps]}, indent=1, ensure_ascii=False)


def parse_steps(text: str) -> tuple[Step, ...]:
    """The steps in `text`, which has to be one JSON object as `to_json` writes it, and nothing else.

    Raises AnswerError with every fault of form. `check` judges whether the steps make sense.
    """
    try:
        answer = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        fault = (
            f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
        )
        raise AnswerError([f"not JSON ({fault}): answer with one JSON object and no text around it"]) from None
    if not isinstance(answer, dict) or set(answer) != {"subtasks"} or not isinstance(answer["subtasks"], list):
        got = f"the fields {', '.join(answer) or 'none'}" if isinstance(answer, dict) else type(answer).__name__
        raise AnswerError([f"expected a JSON object with the one field subtasks, a list of steps; got {got}"])
    problems: list[str] = []
    steps = [_step(entry, index, problems) for index, entry in enumerate(answer["subtasks"], 1)]
    if problems:
        raise AnswerError(problems)
    return tuple(step for step in steps if step)


def _step(entry: Any, index: int, problems: list[str]) -> Step | None:
    where = f"entry {index} of subtasks"
    if not isinstance(entry, dict) or set(entry) != set(FIELDS):
        got = ", ".join(entry) or "none" if isinstance(entry, dict) else repr(entry)
        problems.append(f"{where}: expected an object with exactly the fields {', '.join(FIELDS)}; got {got}")
        return None
    faults = []
    if type(entry["step_id"]) is not int:
        faults.append(f"{where}: step_id must be a whole number, not {entry['step_id']!r}")
    for name in ("subtask", "target"):
        if not isinstance(entry[name], str) or not entry[name].strip():
            faults.append(f"{where}: {name} must be a text that is not empty, not {entry[name]!r}")
    if entry["planner"] not in list(Skill):
        faults.append(f"{where}: unknown planner {entry['planner']!r}: there are {', '.join(Skill)}")
    problems += faults
    return None if faults else Step(entry["step_id"], entry["subtask"], Skill(entry["planner"]), entry["target"])
