"""Where the subtasks of an imported episode come from: the data set itself, the instruction, or a CSV file."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError

COLUMNS, INSTRUCTION = "columns", "instruction"
HEADER = ("episode", "start", "end", "label")
CHOICES = (
    f"`--subtasks {INSTRUCTION}` makes the whole instruction one subtask, which is enough to train an actor; "
    f"`--subtasks FILE.csv` reads them from a table with the columns {', '.join(HEADER)}"
)


@dataclass(frozen=True)
class SpanTable:
    """Spans by episode. digest: of the file that they were read from."""

    path: Path
    digest: str
    spans: dict[tuple[str, int], tuple[SubtaskSpan, ...]]

    def of(self, task: str, episode: int, steps: int) -> tuple[SubtaskSpan, ...]:
        """Raises EpisodeError unless each of the steps has one subtask."""
        found = self.spans.get((task, episode), self.spans.get(("", episode)))
        if found is None:
            raise EpisodeError(f"{self.path} has no row for the episode {episode} of {task}")
        return covering(found, steps, f"{self.path}, episode {episode} of {task}")

    def check(self, episodes: Collection[tuple[str, int]]) -> None:
        """Raises ValueError where episodes have no row, before anything is imported."""
        missing = [number for task, number in episodes if not {(task, number), ("", number)} & self.spans.keys()]
        if missing:
            names = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
            raise ValueError(f"{self.path} has no rows for {len(missing)} of {len(episodes)} episodes: {names}")


def read_spans(path: str | Path) -> SpanTable:
    """A table with the columns `episode` (its number in the data set, from 0), `start` and `end` (control steps from 0,
    `end` exclusive) and `label`; a column `task` tells several data sets apart. Raises ValueError, naming the line.
    """
    path = Path(path)
    content = path.read_bytes()
    rows = csv.DictReader(content.decode("utf-8-sig").splitlines())
    lacking = set(HEADER) - set(rows.fieldnames or ())
    if lacking:
        raise ValueError(
            f"{path}: expected a first line with the columns {', '.join(HEADER)}; missing: {', '.join(sorted(lacking))}"
        )
    spans: dict[tuple[str, int], list[SubtaskSpan]] = {}
    for row in rows:
        try:
            span = SubtaskSpan(int(row["start"]), int(row["end"]), (row["label"] or "").strip())
            key = (row.get("task") or "").strip(), int(row["episode"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {rows.line_num}: expected whole numbers and a label, got {row}") from error
        spans.setdefault(key, []).append(span)
    ordered = {key: tuple(sorted(found, key=lambda span: span.start)) for key, found in spans.items()}
    return SpanTable(path, hashlib.sha256(content).hexdigest(), ordered)


def whole(instruction: str, steps: int) -> tuple[SubtaskSpan, ...]:
    return (SubtaskSpan(0, steps, instruction),)


def from_starts(labels: Sequence[str], starts: Sequence[int], steps: int, where: str) -> tuple[SubtaskSpan, ...]:
    """Spans that each last until the next one. Raises EpisodeError unless they cover the episode."""
    ends = [*starts[1:], steps]
    spans = tuple(SubtaskSpan(int(a), int(b), label) for a, b, label in zip(starts, ends, labels, strict=True))
    return covering(spans, steps, where)


def from_labels(labels: Sequence[str], where: str) -> tuple[SubtaskSpan, ...]:
    """The label of every step as spans of equal labels."""
    starts = [step for step in range(len(labels)) if step == 0 or labels[step] != labels[step - 1]]
    return from_starts([labels[step] for step in starts], starts, len(labels), where)


def covering(spans: tuple[SubtaskSpan, ...], steps: int, where: str) -> tuple[SubtaskSpan, ...]:
    """The same spans. Raises EpisodeError unless every one of the steps is in exactly one of them."""
    if not spans or spans[0].start != 0:
        raise EpisodeError(f"{where}: the first subtask has to begin at step 0, got {spans[0] if spans else 'none'}")
    for before, after in pairwise(spans):
        if before.end != after.start:
            raise EpisodeError(
                f"{where}: {before.label!r} ends at {before.end}, {after.label!r} begins at {after.start}"
            )
    if spans[-1].end != steps:
        raise EpisodeError(f"{where}: the last subtask ends at {spans[-1].end}, the episode has {steps} steps")
    empty = [span for span in spans if not span.label or span.start >= span.end]
    if empty:
        raise EpisodeError(f"{where}: expected a label and at least one step, got {empty[0]}")
    return spans
