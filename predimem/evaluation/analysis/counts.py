"""Counted successes, and the episodes of results files that they are counted from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predimem.evaluation.analysis.metrics import Interval, wilson_interval


@dataclass(frozen=True)
class Count:
    """successes of n episodes."""

    successes: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.n:
            raise ValueError(f"expected 0 <= successes <= n, got {self.successes} of {self.n}")

    @property
    def rate(self) -> float:
        """NaN for no episodes."""
        return self.successes / self.n if self.n else float("nan")

    @property
    def interval(self) -> Interval:
        """Wilson's, 95 %."""
        return wilson_interval(self.successes, self.n)


def read_json_results(path: Path) -> dict[str, Any]:
    """A results.json, whole or compact. Raises ValueError for a file that is none."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if "episodes" in results or "groups" in results:
            return results
        reason = "it has no episodes"
    except (json.JSONDecodeError, TypeError) as error:
        reason = repr(error)
    raise ValueError(f"{path}: expected the results.json of an evaluation ({reason})")
