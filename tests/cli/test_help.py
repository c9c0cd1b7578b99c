"""`predimem --help` groups its commands, in a terminal and out of one."""

import re

from typer.testing import CliRunner

from predimem.cli.app import app


def test_commands_stand_in_their_groups():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    found = re.findall(r"─ ([A-Z][\w ]*) ─|^│ (\w+)  ", shown, re.MULTILINE)
    assert [group or command for group, command in found][1:] == [
        *("See it", "demo", "play", "tasks"),
        *("Data", "datagen", "decompose", "annotate", "data", "export", "import"),
        *("Train", "train", "verify"),
        *("Evaluate", "eval", "harness", "skills", "analyze"),
        *("Serve", "serve", "memory"),
        *("Machine", "doctor"),
    ]
