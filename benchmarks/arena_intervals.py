"""Work the means, intervals and comparisons of shipped results out anew from their episodes, in place.

    python benchmarks/arena_intervals.py results/*.json

For after a change of how they are worked out. Episodes, rates and p-values must come out as they were: a file in which
one does not is left as it is, and named.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.evaluation.analysis.categories import summarise_categories
from predimem.evaluation.analysis.compact import compact_json, episodes_of
from predimem.evaluation.report.summary import compare, summarise_means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        before = path.read_text()
        after = anew(json.loads(before))
        old, new = (dict(figures(json.loads(text))) for text in (before, after))
        if old != new:
            parser.error(f"{path}: more than intervals would change: {differences(old, new)[0]}")
        print(f"{path}: {'as it was' if after == before else 'new intervals'}")
        path.write_text(after)


def anew(results: dict[str, Any]) -> str:
    """The compact file with what follows from its episodes worked out again."""
    config, episodes = results["config"], episodes_of(results)
    tasks, agents = config["tasks"], config["agents"]
    rows = [row | {"metrics": {}} for row in episodes]
    categories = {name: entry["tasks"] for name, entry in results["categories"].items()}
    follows = {
        "mean": summarise_means(rows, agents, tasks),
        "categories": summarise_categories(rows, agents, tasks, categories),
        "comparisons": compare(rows, tasks, agents, config["references"], categories) if len(agents) > 1 else None,
    }
    return compact_json(results | follows | {"episodes": episodes, "results": dict.fromkeys(tasks)})


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
