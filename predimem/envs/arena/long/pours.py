"""Modules of pouring: a pour leaves no trace, so how often it was poured has to be remembered."""

from __future__ import annotations

from predimem.envs.arena.long.module import Module, Part
from predimem.envs.arena.long.words import container_label, pick_label
from predimem.envs.arena.subtasks import pick, place, pour

OFTEN = "how often it was poured"


def sauce_in_two_goes() -> Module:
    """Sauce into the pan once before the pause and once after it."""
    said, sauce, pan = "pour tomato sauce into frypan", "tomato_sauce", "frying_pan"
    return Module(
        remember=(OFTEN,),
        before=Part(
            "Pour tomato sauce into the frying pan once and stand the sauce back on the table.",
            (
                pick(pick_label(sauce), sauce),
                pour(f"{said} 1st", sauce, pan, 1, "counting"),
                place("place tomato aside", sauce, "table", "counting", upright=True),
            ),
        ),
        after=Part(
            "Pour tomato sauce into the frying pan once more, so that it is two pours in all, and stand the sauce in "
            "the drainer.",
            (
                pick(pick_label(sauce, 2), sauce, "counting"),
                pour(f"{said} 2nd", sauce, pan, 2, "counting"),
                place("place tomato sauce bowl drainer", sauce, "drainer", "counting", upright=True),
            ),
        ),
    )


def sauce_over_pudding() -> Module:
    """The pudding into the pan, and sauce over it twice; the sauce goes into the drainer."""
    said, sauce, pan = "pour tomato sauce over chocolate", "tomato_sauce", "frying_pan"
    return Module(
        remember=(OFTEN,),
        free=Part(
            "Put the chocolate pudding into the frying pan, pour tomato sauce over it twice, and stand the sauce in "
            "the drainer.",
            (
                pick(pick_label("chocolate_pudding"), "chocolate_pudding"),
                place("place chocolate in frypan", "chocolate_pudding", pan),
                pick(pick_label(sauce), sauce),
                pour(f"{said} 1st", sauce, pan, 1, "counting"),
                pour(f"{said} 2nd", sauce, pan, 2, "counting"),
                place("place tomato sauce bowl drainer", sauce, "drainer", "counting", upright=True),
            ),
        ),
    )


def sauce_from_shelf(side: str) -> Module:
    """Sauce over the cookies twice, and back into the one of two shelf cabinets that it was in."""
    said, sauce = "pour tomato sauce over cookies", "tomato_sauce"
    return Module(
        remember=(OFTEN, "which shelf cabinet the tomato sauce was in"),
        start={sauce: f"shelf_{side}"},
        free=Part(
            "Take the tomato sauce out of its shelf cabinet, pour it over the cookies twice, and put it back into the "
            "shelf cabinet that it was in.",
            (
                pick(pick_label(sauce), sauce),
                pour(f"{said} 1st", sauce, "cookies", 1, "counting"),
                pour(f"{said} 2nd", sauce, "cookies", 2, "counting"),
                place(container_label(sauce, "shelf", side), sauce, f"shelf_{side}", "transferring"),
            ),
        ),
    )


def wine(colour: str) -> Module:
    """Wine into the mug of that colour twice; the bottle goes back to the table."""
    bottle, mug = "wine_bottle", f"mug_{colour}"
    return Module(
        remember=(OFTEN,),
        free=Part(
            f"Pour wine into the {colour} mug twice and stand the bottle back on the table.",
            (
                pick(pick_label(bottle), bottle),
                pour(f"pour wine into mug 1st: mug {colour}", bottle, mug, 1, "counting"),
                pour(f"pour wine into mug 2nd: mug {colour}", bottle, mug, 2, "counting"),
                place("place wine bottle on table", bottle, "table", "counting", upright=True),
            ),
        ),
    )
