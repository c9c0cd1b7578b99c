"""What tasks are made of: one subtask is one skill on one target, with the condition that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from predimem.envs.arena.predicates import Closed, Held, Opened, Placed, Poured, Predicate

Memory = Literal["occlusion", "counting", "transferring", "sequence"]


class Skill(StrEnum):
    """The planners that a VLM may assign to a subtask (RoboMemArena, arXiv:2605.10921, §7)."""

    MOVE = "Move"  # to an object, and pick it up
    PLACE = "Place"
    POUR = "Pour"
    OPEN = "Open"
    CLOSE = "Close"


Motion = tuple[Skill, str, str]


@dataclass(frozen=True)
class Subtask:
    """One skill on one target, and the condition that ends it.

    label: what the planner says (`predimem.core.subtask_labels`).
    target: the object (Move), the place (Place), the receiver (Pour) or the joint.
    object: what the gripper holds or picks; "" for Open and Close. A Place whose object is not held yet begins by
    picking it.
    done: the stage predicate.
    memory: why the correct decision cannot be seen in the current observation alone (RoboMemArena, §10); None where it
    can.
    """

    label: str
    skill: Skill
    target: str
    done: Predicate
    object: str = ""
    memory: Memory | None = None

    @property
    def motion(self) -> Motion:
        """Subtasks with the same one are carried out alike: the first and the second pour are."""
        return self.skill, self.target, self.object


def pick(label: str, object: str, memory: Memory | None = None) -> Subtask:
    """Done when the gripper holds the object above where it lay.

    memory, of all subtasks: what has to be remembered to know that this one is due; None where it can be seen.
    """
    return Subtask(label, Skill.MOVE, object, Held(object), object, memory)


def place(label: str, object: str, target: str, memory: Memory | None = None, upright: bool = False) -> Subtask:
    """Done when the object lies or stands in the place and was let go. upright: it has to stand."""
    return Subtask(label, Skill.PLACE, target, Placed(object, target, upright), object, memory)


def pour(label: str, object: str, target: str, times: int, memory: Memory | None = None) -> Subtask:
    """times: how often it has been poured when this subtask is done."""
    return Subtask(label, Skill.POUR, target, Poured(object, target, times), object, memory)


def open_joint(label: str, joint: str, memory: Memory | None = None) -> Subtask:
    """Done when a drawer or the microwave's door is open wide enough."""
    return Subtask(label, Skill.OPEN, joint, Opened(joint), memory=memory)


def close_joint(label: str, joint: str, memory: Memory | None = None) -> Subtask:
    """Done when a drawer or the microwave's door is shut."""
    return Subtask(label, Skill.CLOSE, joint, Closed(joint), memory=memory)


def undoes(later: Subtask, earlier: Subtask) -> bool:
    """Whether doing `later` takes back what `earlier` achieved."""
    if isinstance(earlier.done, Closed):
        return later.skill is Skill.OPEN and later.target == earlier.target
    return isinstance(earlier.done, Placed) and later.object == earlier.object
