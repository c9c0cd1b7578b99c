"""Success under interference: how far unrelated sessions wash out the one session that an episode needs.

The protocol and its words are those of RoboMME-Interference (Rathi, arXiv:2606.22338, CC BY 4.0). A *condition* says
what the history before an episode holds: `no-history`, or `k0`, `k1`, `k3`, ... for the relevant session (the lesson)
followed by so many distractors. Conditions with another kind of distractor have its name behind: `k7-older`.

Three kinds of file are read, and their rows are put together:

- counts: a CSV with `family`, `variant`, `condition`, `successes`, `n` (the paper's by_family_condition.csv);
- rollouts: a CSV with `family`, `condition`, `success` (0 or 1), and optionally `variant` and `status`, one line an
  episode. Where it does not name the variant, all its episodes are of one, called like `retrieval_model` or the file;
- results.json of `predimem eval --benchmark interference`, whole or compact.

Episodes that ended in an error are in no rate.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.counts import Count, read_json_results

NO_HISTORY, LESSON_ALONE = "no-history", "k0"
ERRORS = ("error",)


class Cell(NamedTuple):
    family: str
    variant: str
    condition: str


@dataclass(frozen=True)
class Effect:
    """The success of `condition` minus that of `baseline`, both of one variant.

    low, high: the 95 % interval of Newcombe (1998), method 10, of two independent proportions. The episodes of two
    conditions are of the same seeds, which counts do not tell, so it is wider than it need be.
    """

    variant: str
    condition: str
    baseline: str
    difference: float
    low: float
    high: float


Counts = Mapping[Cell, Count]
Totals = Mapping[tuple[str, str], Count]  # (variant, condition)


def read_counts(paths: Sequence[Path]) -> dict[Cell, Count]:
    """All cells of all files, those of our own results last. An episode that two of our results have counts once.

    Raises ValueError for a file that is of none of the three kinds, where two files have the same cell, whose episodes
    would be counted twice, and where two of our results have an episode with different outcomes.
    """
    counts: dict[Cell, Count] = {}
    ours: dict[tuple[Cell, int], bool | None] = {}
    for path in paths:
        if path.suffix == ".json":
            for cell, seed, success in _episodes(path):
                if ours.setdefault((cell, seed), success) != success:
                    raise ValueError(f"{path}: {', '.join(cell)}: another file has seed {seed} with another outcome")
            continue
        for cell, count in _read_table(path).items():
            _add(counts, path, cell, count)
    for cell, count in _tally((cell, success) for (cell, _), success in ours.items()).items():
        _add(counts, "the results.json", cell, count)
    return counts


def _add(counts: dict[Cell, Count], where: Path | str, cell: Cell, count: Count) -> None:
    if cell in counts:
        raise ValueError(f"{where}: {', '.join(cell)} is in another file, too; give each cell once")
    counts[cell] = count


def totals(counts: Counts) -> dict[tuple[str, str], Count]:
    """Over the families, each with as many episodes as it has; variants as they come, conditions in their order."""
    successes: Counter[tuple[str, str]] = Counter()
    n: Counter[tuple[str, str]] = Counter()
    for (_, variant, condition), count in counts.items():
        successes[variant, condition] += count.successes
        n[variant, condition] += count.n
    variants = list(dict.fromkeys(variant for variant, _ in n))
    order = sorted(n, key=lambda cell: (variants.index(cell[0]), condition_key(cell[1])))
    return {cell: Count(successes[cell], n[cell]) for cell in order}


def effects(of: Totals) -> Iterator[Effect]:
    """For each variant the lift over no history of every condition, and the erosion from k0 to every other one.

    An erosion is told as its baseline minus the condition is in the paper: k0 - k7, positive where success falls.
    """
    for variant in dict.fromkeys(variant for variant, _ in of):
        conditions = [condition for v, condition in of if v == variant and of[v, condition].n]
        pairs = [(c, NO_HISTORY) for c in conditions if c != NO_HISTORY]
        pairs += [(LESSON_ALONE, c) for c in conditions if c not in (NO_HISTORY, LESSON_ALONE)]
        for condition, baseline in pairs:
            if condition in conditions and baseline in conditions:
                yield _effect(variant, condition, baseline, of[variant, condition], of[variant, baseline])


def condition_key(condition: str) -> tuple[float, str]:
    """Sorts conditions: no history, then by the kind of distractor and their number."""
    if condition == NO_HISTORY:
        return (-1.0, "")
    found = re.fullmatch(r"k(\d+)(-.+)?", condition)
    if found is None:
        return (float("inf"), condition)
    return (float(found[1]) + (1e6 if found[2] else 0.0), found[2] or "")


def _effect(variant: str, condition: str, baseline: str, one: Count, other: Count) -> Effect:
    difference, (low, high), (other_low, other_high) = one.rate - other.rate, one.interval, other.interval
    below = ((one.rate - low) ** 2 + (other_high - other.rate) ** 2) ** 0.5
    above = ((high - one.rate) ** 2 + (other.rate - other_low) ** 2) ** 0.5
    return Effect(variant, condition, baseline, difference, difference - below, difference + above)


def _read_table(path: Path) -> dict[Cell, Count]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = set(rows[0]) if rows else set()
    try:
        if columns >= {"family", "variant", "condition", "successes", "n"}:
            return _counted(rows)
        if columns >= {"family", "condition", "success"}:
            return _tally(_rollouts(rows, path.stem))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
    raise ValueError(
        f"{path}: expected a CSV with the columns family, variant, condition, successes, n (counts) or family, "
        f"condition, success (rollouts), or a results.json; got the columns {', '.join(sorted(columns)) or 'none'}"
    )


def _counted(rows: Iterable[Mapping[str, str]]) -> dict[Cell, Count]:
    counts: dict[Cell, Count] = {}
    for row in rows:
        cell = Cell(row["family"], row["variant"], row["condition"])
        if cell in counts:
            raise ValueError(f"{', '.join(cell)} is there twice")
        counts[cell] = Count(int(row["successes"]), int(row["n"]))
    return counts


def _rollouts(rows: Iterable[Mapping[str, str]], stem: str) -> Iterator[tuple[Cell, bool | None]]:
    for row in rows:
        if row["success"] not in ("0", "1"):
            raise ValueError(f"success has to be 0 or 1, got {row['success']!r}")
        variant = row.get("variant") or row.get("retrieval_model") or stem
        success = None if row.get("status") in ERRORS else row["success"] == "1"
        yield Cell(row["family"], variant, row["condition"]), success


def _episodes(path: Path) -> Iterator[tuple[Cell, int, bool | None]]:
    """(cell, seed, success or None for an error)"""
    for record in episodes_of(read_json_results(path)):
        family, _, condition = record["task"].partition("-")
        if not condition:
            raise ValueError(
                f"{path}: task {record['task']!r} is not `<family>-<condition>`; expected results of "
                "`predimem eval --benchmark interference`"
            )
        success = None if record["status"] in ERRORS else record["status"] == "success"
        yield Cell(family, record["agent"], condition), int(record["seed"]), success


def _tally(episodes: Iterable[tuple[Cell, bool | None]]) -> dict[Cell, Count]:
    successes: Counter[Cell] = Counter()
    n: Counter[Cell] = Counter()
    for cell, success in episodes:
        successes[cell] += success is True
        n[cell] += success is not None
    return {cell: Count(successes[cell], n[cell]) for cell in n}
