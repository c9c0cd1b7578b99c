"""Lays tables out for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(lines: Sequence[Sequence[str]], rule_after: int) -> str:
    """The lines as a table with a rule below the first `rule_after` lines; columns are as wide as their widest cell."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rows = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    rows.insert(rule_after, "  ".join("-" * width for width in widths))
    return "\n".join(rows)
