"""What S2 may say for a subtask."""

from __future__ import annotations

import pytest

from predimem.core.subtask_labels import calls, released, with_target

LEFT = with_target("place cookies into basket", "basket_left")


def test_the_target_stands_behind_the_released_words() -> None:
    assert LEFT == "place cookies into basket: basket left"
    assert released(LEFT) == "place cookies into basket" == released(released(LEFT))


@pytest.mark.parametrize("name", [LEFT, "place cookies into basket", "Place  the cookies in basket: basket LEFT"])
def test_called_by_the_label_or_without_its_target(name: str) -> None:
    assert calls(name, LEFT)


@pytest.mark.parametrize("name", ["", ": ", "the", "place cookies", with_target(released(LEFT), "basket_right")])
def test_not_called_by_other_words(name: str) -> None:
    assert not calls(name, LEFT)


def test_small_words_do_not_matter() -> None:
    assert calls("place cookies in top drawer", with_target("place cookies", "top_drawer"))
    assert calls(with_target("place cookies", "top_drawer"), "place cookies in top drawer")
