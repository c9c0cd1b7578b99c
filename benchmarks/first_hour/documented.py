"""The commands that the README and the guides tell their reader to type."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = ("README.md", "CONTRIBUTING.md", "docs/README.md", "docs/results.md", "docs/guides/*.md")
COMMANDS = ("predimem ", "make ", "python ")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def documented_commands(root: Path) -> dict[str, str]:
    """Each command as it stands in a block, without its comment and on one line -> the first page that has it."""
    found: dict[str, str] = {}
    for page in sorted({path for pattern in PAGES for path in root.glob(pattern)}):
        for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if language not in ("", "bash", "sh"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                command = normal(line)
                if command.startswith(COMMANDS):
                    found.setdefault(command, str(page.relative_to(root)))
    return found


def normal(line: str) -> str:
    """A command line without comment, prompt, folder of the environment and repeated blanks."""
    line = re.sub(r"\s+#.*$", "", line.strip()).removeprefix("$ ").removeprefix(".venv/bin/")
    return re.sub(r"\s+", " ", line)
