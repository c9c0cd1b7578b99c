"""Python's garbage in a process that holds torch."""

from __future__ import annotations

import gc


def settle() -> None:
    """Call when everything that stays is loaded: full garbage collections leave it out from then on.

    Closed connections are cycles of objects, and what lived for a while is only freed by a full collection. Python does
    one when a quarter as many objects are new as it has found old; beside torch's hundreds of thousands that is
    practically never, and the server would grow for hours.
    """
    gc.collect()
    gc.freeze()
    gc.collect()  # counts what is old anew
