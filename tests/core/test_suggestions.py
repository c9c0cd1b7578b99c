"""Which names are like a mistyped one."""

import pytest

from predimem.core.suggestions import did_you_mean

NAMES = ("RememberColor3-VLA-v0", "RememberColor9-VLA-v0", "ShellGameTouch-VLA-v0")


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("predimen", ("predimem", "no-keyframes"), "; did you mean predimem?"),
        ("shellgametouch-vla-v0", NAMES, "; did you mean ShellGameTouch-VLA-v0?"),
        ("RememberColor", NAMES, "; did you mean RememberColor3-VLA-v0 or RememberColor9-VLA-v0?"),
        ("x", NAMES, ""),
        (27, ("26",), ""),
    ],
)
def test_names_that_are_like_it(name, known, expected):
    assert did_you_mean(name, known) == expected
