"""What keeps the memory of a server's process from growing: Python's garbage, and what the C library holds back."""

from __future__ import annotations

import ctypes
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


def trim() -> None:
    """Give free memory back to the system; call it every few seconds. Does nothing where the C library has no
    `malloc_trim`, which is GNU's.

    Images come and go in the threads of requests, connections and sessions, and glibc keeps a heap for up to eight
    threads on each core. What is freed in the midst of a heap stays resident, so that each one grows to the most that
    it ever held at once. What is free at the end of a heap stays all the same, at most twice the largest message. This
    takes about 1 ms, in which other threads go on.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # ctypes lets other threads run meanwhile
