"""A Ctrl-C counts at any time, also where Python drops the exceptions of a callback."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

AGAIN_AFTER_S = 0.05


def keep_interrupts() -> None:
    """From now on a KeyboardInterrupt that came in a callback (such as those of the import system, or `__del__`), where
    Python prints and drops it, comes again a moment later."""
    before = sys.unraisablehook

    def hook(dropped: Any) -> None:
        if dropped.exc_type is not None and issubclass(dropped.exc_type, KeyboardInterrupt):
            # By a thread, since what is raised in this hook would be dropped as well.
            timer = threading.Timer(AGAIN_AFTER_S, signal.raise_signal, (signal.SIGINT,))
            timer.daemon = True
            timer.start()
        else:
            before(dropped)

    sys.unraisablehook = hook
