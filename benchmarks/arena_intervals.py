"""Works the means, intervals and comparisons of shipped results out anew from their episodes, in place.

    python benchmarks/arena_intervals.py results/*.json

Run it after a change of how they are worked out. Episodes, rates and p-values must come out as they were: a file in
which one does not is left as it is, and named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.evaluation.analysis.categories import summarise_categories
from predimem.evaluation.analysis.compact import as_line, episodes_of, overall
from predimem.evaluation.report.summary import compare, summarise_means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        before = path.read_text()
        after = anew(before)
        old, new = (dict(figures(json.loads(text))) for text in (before, after))
        if old != new:
            parser.error(f"{path}: more than intervals would change: {differences(old, new)[0]}")
        print(f"{path}: {'as it was' if after == before else 'new intervals'}")
        path.write_text(after)


def anew(text: str) -> str:
    """The compact file with what follows from its episodes worked out again."""
    results = json.loads(text)
    tasks, agents, references = (results["config"][name] for name in ("tasks", "agents", "references"))
    records = [record | {"metrics": {}} for record in episodes_of(results)]
    categories = {name: entry["tasks"] for name, entry in results["categories"].items()}
    follows: dict[str, Any] = {
        "mean": summarise_means(records, agents, tasks),
        "categories": summarise_categories(records, agents, tasks, categories),
    }
    if len(agents) > 1:
        follows["comparisons"] = overall(compare(records, tasks, agents, references, categories), tasks)
    lines = text.splitlines(keepends=True)
    for name, value in follows.items():
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f'"{name}": '))
        lines[place] = f'"{name}": {as_line(value)},\n'
    return "".join(lines)


def figures(data: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a results file that is no interval and says nothing of how one was made, by its place."""
    if isinstance(data, dict):
        for name, value in data.items():
            if not name.endswith(("ci_low", "ci_high")) and name not in ("interval", "csr_test"):
                yield from figures(value, f"{where}.{name}")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from figures(value, f"{where}[{number}]")
    else:
        yield where, data


if __name__ == "__main__":
    main()
