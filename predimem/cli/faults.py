"""Says in one line what the operating system has refused, and what to do about it."""

from __future__ import annotations

import errno

ELSEWHERE = "write to another folder"
REMEDIES = {
    errno.ENOSPC: f"free some space there, or {ELSEWHERE}",
    errno.EDQUOT: f"free some of your quota, or {ELSEWHERE}",
    errno.EFBIG: f"raise the limit on the size of files (`ulimit -f`), or {ELSEWHERE}",
    errno.EROFS: ELSEWHERE,
    errno.EACCES: f"have its permissions changed (`ls -ld` shows them), or {ELSEWHERE}",
    errno.EPERM: f"have its permissions changed (`ls -ld` shows them), or {ELSEWHERE}",
    errno.EIO: f"the disk may be failing (`dmesg` says more); {ELSEWHERE}",
    errno.ENOTDIR: "a folder is expected there: move the file away, or name another folder",
    errno.EEXIST: "a folder is expected there: move the file away, or name another folder",
    errno.EISDIR: "a file is expected: name one in that folder, or another one",
    errno.ENOENT: "check the path",
    errno.EMFILE: "raise the limit on open files (`ulimit -n`)",
    errno.ENFILE: "too many files are open on this machine: end some programs",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EADDRINUSE: "choose another port, or end the program that has it",
    errno.ECONNREFUSED: "start the server there, or check the address",
}


def explain(error: Exception) -> str:
    """Path, reason and remedy in one line. Errors that are no system's, such as our own, say all of it themselves."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    reason = (error.strerror or str(error)).splitlines()[0]
    where = f"{error.filename}: " if error.filename else ""
    remedy = REMEDIES.get(error.errno)
    return f"{where}{reason[:1].lower()}{reason[1:]}{f'; {remedy}' if remedy else ''}"
