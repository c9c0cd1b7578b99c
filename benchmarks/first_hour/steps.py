"""The table `commands.yaml`: which command stands for which documented one, and what it must and must not do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from predimem.core.config import from_dict

TABLE = Path(__file__).with_name("commands.yaml")


@dataclass(frozen=True)
class Step:
    """One command of the first hour.

    run: the shell command, with arguments that make it small.
    documented: the commands of README and guides that it stands for.
    code: the exit code that it must have.
    says: texts that must appear in its output.
    silence_s: the longest time that it may say nothing.
    timeout_s: the longest time that it may take.
    until: it is a server: when this text appears, it gets Ctrl-C.
    keeps: a file that must be there already and be the same afterwards: the command must not delete a finished run.
    lines: the most lines that it may write; an error is one clear line.
    """

    run: str
    documented: tuple[str, ...] = ()
    code: int = 0
    says: tuple[str, ...] = ()
    silence_s: float = 30.0
    timeout_s: float = 900.0
    until: str | None = None
    keeps: str | None = None
    lines: int | None = None


@dataclass(frozen=True)
class NotRun:
    """Documented commands that the first hour leaves out, and why."""

    documented: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class FirstHour:
    """All of the table."""

    steps: tuple[Step, ...]
    not_run: tuple[NotRun, ...] = field(default_factory=tuple)

    @property
    def documented(self) -> set[str]:
        """The documented commands that the table knows."""
        return {command for entry in (*self.steps, *self.not_run) for command in entry.documented}


def read_table(path: Path = TABLE) -> FirstHour:
    """Raises ConfigError where the table has an unknown key or a wrong type."""
    return from_dict(FirstHour, yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
