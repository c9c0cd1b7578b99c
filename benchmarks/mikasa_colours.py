"""The success on BunchOfColors, SeqOfColors and ChainOfColors, with intervals over seeds.

    python -m benchmarks.mikasa_colours results/mikasa_sequences.json results/mikasa_sequences_oracle.json

With the same seed these tasks show much the same cubes and colours, so that their episodes do not count as independent
ones. `benchmarks/results_page.py` writes the same table into docs/results.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.analysis.metrics import mean_interval
from predimem.evaluation.run.config import read_results

FAMILIES = ("BunchOfColors", "SeqOfColors", "ChainOfColors")
TOGETHER = 10  # seeds of a row


def shares_of(records: Sequence[Mapping[str, Any]], agent: str) -> dict[int, float]:
    """Seed -> the share of the tasks that an agent solved with it. Episodes that crashed count in none."""
    solved: dict[int, list[bool]] = {}
    for record in records:
        if record["agent"] == agent and record["task"].startswith(FAMILIES) and record["status"] != "error":
            solved.setdefault(record["seed"], []).append(record["status"] == "success")
    return {seed: mean(solved[seed]) for seed in sorted(solved)}


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """A line for each ten seeds of each agent, and one for all of its seeds where there are more."""
    lines = ["| agent | seeds | success, % |", "| --- | --- | ---: |"]
    for agent in dict.fromkeys(record["agent"] for record in records):
        shares = shares_of(records, agent)
        seeds = list(shares)
        parts = [seeds[first : first + TOGETHER] for first in range(0, len(seeds), TOGETHER)]
        for part in [*parts, seeds] if len(parts) > 1 else parts:
            lines.append(f"| `{agent}` | {part[0]} to {part[-1]} | {_success([shares[seed] for seed in part])} |")
    return "\n".join(lines)


def _success(shares: Sequence[float]) -> str:
    low, high = mean_interval({"": shares})
    return f"{100 * mean(shares):.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="results files with other agents each")
    files = parser.parse_args().files
    print(table([record for path in files for record in episodes_of(read_results(path))]))


if __name__ == "__main__":
    main()
