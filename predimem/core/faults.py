"""Tells faults of the set-up from faults of an episode.

Missing weights, a full disk or an endpoint that is down are no episode's fault: the next one would meet them too. So
they are never noted as the outcome of an episode. They stop the run, and the same command goes on once they are mended.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

# What the operating system says of disks, folders and permissions, whatever is being played.
OF_THE_DISK = frozenset((
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE,
    errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EMFILE, errno.ENFILE,
))  # fmt: skip
# Libraries raise errors of their own for these, with the system's words in the message.
TOLD_IN_WORDS = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)}
FULL_BELOW_BYTES = 64 * 1024


class SetupError(Exception):
    """Something outside the program has to be mended first. The message is one line that says what, and how."""


def setup_fault(error: BaseException) -> SetupError | OSError | None:
    """What is wrong with the set-up if that is behind `error`, else None. The fault can be pickled.

    The exceptions from which `error` was raised count, too: a planner that fails in its thread raises another one here.
    """
    for one in _chain(error):
        if isinstance(one, SetupError):
            return SetupError(str(one))
        if isinstance(one, ModuleNotFoundError):
            return SetupError(f"the package {one.name} is not installed: `make setup` installs all that is needed")
        fault = disk_fault(one)
        if fault is not None:
            return fault
    return None


def disk_fault(error: BaseException, path: str | Path | None = None) -> OSError | None:
    """The system's error behind an exception that was raised when `path` was written; None where there is none."""
    if isinstance(error, OSError) and error.errno in OF_THE_DISK:
        return OSError(error.errno, os.strerror(error.errno), error.filename or _named(path))
    for words, number in TOLD_IN_WORDS.items():
        if words in str(error):
            return OSError(number, words, _named(path))
    if path is not None and isinstance(error, Exception) and _is_full(Path(path).parent):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), _named(path))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those from which it was raised, as tracebacks show them."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _named(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _is_full(folder: Path) -> bool:
    try:
        status = os.statvfs(folder)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < FULL_BELOW_BYTES
