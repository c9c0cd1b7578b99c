"""Garbage that lived for a while is freed in a process with many objects."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys, weakref
from predimem.serving.memory import settle

class Connection:
    pass

stays = [[] for _ in range(400_000)]  # torch
gc.collect()
if sys.argv[1] == "settled":
    settle()
connection = Connection()
connection.itself = connection
gc.collect(1)  # it is old now
seen = weakref.ref(connection)
del connection
for _ in range(300):
    passing = [[] for _ in range(800)]  # requests
print(seen() is None)
"""


def freed(how: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.strip()


def test_a_settled_process_frees_old_garbage() -> None:
    assert (freed("settled"), freed("as it is")) == ("True", "False")
