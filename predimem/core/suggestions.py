"""What somebody may have meant who mistyped a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Such as "; did you mean RememberColor9-VLA-v0?", or "" where nothing is like the name.

    Capitals do not count, and the beginning of a name is like it.
    """
    text = str(name).lower()
    names = {one.lower(): one for one in known}
    close = [one for one in names if len(text) > 3 and one.startswith(text)]
    close += [one for one in difflib.get_close_matches(text, names, n=3, cutoff=0.6) if one not in close]
    return f"; did you mean {' or '.join(names[one] for one in close[:3])}?" if close else ""
