from types import SimpleNamespace
from typing import Any

import pytest

from datagen.execution.references import UnresolvedError, resolved

DRAWERS = ("top_drawer", "middle_drawer", "bottom_drawer")


def scene(places: tuple[str, ...] = (), marked: tuple[str, ...] = (), **contents: set[str]) -> Any:
    """What a scene remembers of what it saw."""
    return SimpleNamespace(
        places=(*DRAWERS, *places), marked=set(marked), contents={name: frozenset(v) for name, v in contents.items()}
    )


def test_a_plain_target_is_itself() -> None:
    assert resolved("top_drawer", scene(), {}) == "top_drawer"


def test_drawers_are_told_apart_by_what_was_in_them() -> None:
    seen = scene(top_drawer=set(), middle_drawer={"cookies"}, bottom_drawer=set())
    assert resolved("occupied_drawer", seen, {}) == "middle_drawer"
    seen = scene(top_drawer={"butter"}, middle_drawer={"cookies"}, bottom_drawer=set())
    assert resolved("empty_drawer", seen, {}) == "bottom_drawer"


def test_a_drawer_that_was_not_looked_into_is_not_called_empty() -> None:
    with pytest.raises(UnresolvedError, match="empty_drawer: none was seen"):
        resolved("empty_drawer", scene(top_drawer={"butter"}, middle_drawer={"cookies"}), {})


def test_two_answers_are_none() -> None:
    with pytest.raises(UnresolvedError, match="top_drawer or bottom_drawer"):
        resolved("empty_drawer", scene(top_drawer=set(), middle_drawer={"cookies"}, bottom_drawer=set()), {})


def test_marks_and_starts() -> None:
    halves = ("middle_drawer_left", "middle_drawer_right")
    assert resolved("marked_half", scene(halves, ("middle_drawer_right",)), {}) == "middle_drawer_right"
    baskets = ("basket_left", "basket_right")
    assert resolved("marked_basket", scene(baskets, ("basket_left",)), {}) == "basket_left"
    shelves = ("shelf_left", "shelf_right")
    start = {"shelf_left": frozenset({"butter"}), "shelf_right": frozenset[str]()}
    assert resolved("other_shelf", scene(shelves), start) == "shelf_right"
    with pytest.raises(UnresolvedError):
        resolved("other_shelf", scene(shelves), {})
