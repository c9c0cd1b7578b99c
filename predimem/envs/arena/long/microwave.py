"""Modules of the microwave."""

from __future__ import annotations

from predimem.envs.arena.long.drawers import put_by_answer
from predimem.envs.arena.long.module import Module, Part
from predimem.envs.arena.long.words import pick_label
from predimem.envs.arena.subtasks import close_joint, open_joint, pick, place

OPEN, CLOSE = "open microwave", "close microwave"


def look(occupant: str, occupied: bool, object: str, drawers: tuple[str, ...]) -> Module:
    """Look into the microwave; later an object goes into one of two drawers, by whether it held something.

    drawers: the one for yes, the one for no, and the one that the occupant is in if it is not in the microwave.
    """
    if_yes, if_no, decoy = drawers
    return Module(
        remember=("whether the microwave held something",),
        before=Part(
            "Open and close the microwave to see whether something is inside.",
            (open_joint(OPEN, "microwave"), close_joint(CLOSE, "microwave")),
        ),
        after=put_by_answer(object, if_yes, if_no, "If something was in the microwave", occupied),
        start={occupant: "microwave_right" if occupied else decoy},
    )


def store(side: str) -> Module:
    """The cookies onto the mat in the microwave, the pudding beside them on the same side."""
    place_there = f"microwave_{side}"
    return Module(
        remember=("what is in the microwave, and on which side",),
        free=Part(
            "Open the microwave, put the cookies onto the red mat in it, put the chocolate pudding where the cookies "
            "are, and close the microwave.",
            (
                open_joint(OPEN, "microwave"),
                pick(pick_label("cookies"), "cookies"),
                place(f"place cookies: microwave {side}", "cookies", place_there),
                pick(pick_label("chocolate_pudding"), "chocolate_pudding", "occlusion"),
                place(f"place chocolate: microwave {side}", "chocolate_pudding", place_there, "occlusion"),
                close_joint(CLOSE, "microwave", "occlusion"),
            ),
        ),
        mats=(place_there,),
    )
