"""The labels of subtasks: what S2 says and S1 is told.

Where the words of a task could mean several targets, because the hidden state decides which, the target stands
behind them: "place cookies into basket: basket left". A planner that plans ahead also says what comes next: "touch the
teal cube; then touch the red cube".
"""

from __future__ import annotations

SEPARATOR = ": "
THEN = "; then "
_SMALL_WORDS = frozenset(("in", "into", "on", "onto", "the"))


def with_target(words: str, target: str) -> str:
    """The label that says the target as well; `target` is a name with underscores ("basket_left")."""
    return f"{words}{SEPARATOR}{target.replace('_', ' ')}"


def released(label: str) -> str:
    """The label without its target: as it was released with RoboMemArena."""
    return label.partition(SEPARATOR)[0]


def in_turn(text: str) -> tuple[str, ...]:
    """The subtask that is due now and those that come next, of what a planner says: "touch the teal cube; then touch
    the red cube". A label alone is the only one."""
    return tuple(text.split(THEN))


def calls(name: str, label: str) -> bool:
    """Whether somebody who says `name` can mean the subtask of that label: by the label, or without its target.

    Case, blanks and small words do not matter, so that "place cookies in top drawer" is "place cookies: top drawer".
    """
    said = _words(name)
    return bool(said) and said in (_words(label), _words(released(label)))


def _words(label: str) -> list[str]:
    words = label.lower().replace(SEPARATOR, " ").split()
    return [word for word in words if word not in _SMALL_WORDS]
