"""What a label can mean in a task, and which labels of the arena's vocabulary are ambiguous in which tasks.

A planner's vocabulary is that of all tasks, so a label that is clear in its own task may be ambiguous in another one.
The table in docs/guides/arena.md is written by `python -m predimem.envs.arena.meanings`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable

from predimem.core.subtask_labels import calls
from predimem.core.types import AmbiguousLabel
from predimem.envs.arena.subtasks import Motion, Skill, Subtask
from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS
from predimem.envs.arena.variant import Variant
from predimem.envs.arena.vocabulary import labels

_WORDS = {
    Skill.MOVE: "pick {object}",
    Skill.PLACE: "place {object} at {target}",
    Skill.POUR: "pour {object} over {target}",
    Skill.OPEN: "open {target}",
    Skill.CLOSE: "close {target}",
}


def meanings(label: str, variants: Iterable[Variant]) -> tuple[Subtask, ...]:
    """The subtasks that `label` can stand for (`calls`): of each motion the first one that comes in the variants.

    The label of a subtask to the letter stands for nothing else. Empty for words that no variant has.
    """
    subtasks = [subtask for variant in variants for subtask in variant.subtasks]
    found = [s for s in subtasks if s.label == label] or [s for s in subtasks if calls(label, s.label)]
    first: dict[Motion, Subtask] = {}
    for subtask in found:
        first.setdefault(subtask.motion, subtask)
    return tuple(first.values())


def refusal(label: str, meant: Iterable[Subtask]) -> AmbiguousLabel:
    """Why nobody carries out a label that has these meanings, at least two. Their order tells nothing of the truth."""
    meant = sorted(meant, key=lambda subtask: subtask.label)
    return AmbiguousLabel(label, tuple(map(_in_words, meant)), tuple(subtask.label for subtask in meant))


def ambiguous_labels(vocabulary: Iterable[str], tasks: Iterable[Task] = TASKS) -> list[tuple[Task, AmbiguousLabel]]:
    """The labels of a vocabulary that are ambiguous in one of the tasks, with that task."""
    vocabulary = tuple(vocabulary)
    found = ((task, label, meanings(label, task.variants)) for task in tasks for label in vocabulary)
    return [(task, refusal(label, meant)) for task, label, meant in found if len(meant) > 1]


def as_markdown(rows: Iterable[tuple[Task, AmbiguousLabel]]) -> str:
    """A table."""
    lines = [f"| {task.task_id} | {refused.label} | {'; '.join(refused.clear)} |" for task, refused in rows]
    return "\n".join(["| task | ambiguous | clear |", "| --- | --- | --- |", *lines])


def _in_words(subtask: Subtask) -> str:
    text = _WORDS[subtask.skill].format(object=subtask.object, target=subtask.target)
    return text.replace("_", " ")


if __name__ == "__main__":
    print(as_markdown(ambiguous_labels(labels())))
