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


def share_heap() -> None:
    """Let all threads that begin from now on share one heap; call it before there are many threads.

    Images come and go in the threads of requests, connections and sessions. GNU's C library has a heap for up to eight
    threads on each core, and each grows to the most that it ever held at once, which takes hours. With one, what one
    thread frees serves the next one. Threads of Python hardly ever wait for it, since they hold the interpreter. Does
    nothing with other C libraries.
    """
    if _GNU:
        _C.mallopt(_M_ARENA_MAX, 1)


def trim() -> None:
    """Give free memory back to the system; call it every few seconds. Does nothing with other C libraries than GNU's.

    What is freed in the midst of a heap stays resident otherwise. This takes about 1 ms, in which other threads go on.
    """
    if _GNU:
        _C.malloc_trim(0)


_C = ctypes.CDLL(None)  # its functions let other threads run
_GNU = hasattr(_C, "malloc_trim")
_M_ARENA_MAX = -8
