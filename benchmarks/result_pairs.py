"""Compares two agents of different results files of a benchmark, on the seeds that both have: a Markdown table.

    python -m benchmarks.result_pairs results/arena_planners.json:predimem-skills \\
        results/arena_memories.json:native-video-skills
    python -m benchmarks.result_pairs runs/stock/results.json:predimem runs/light/results.json:predimem

The table has McNemar's exact test of TSR, and the first agent's CSR minus the second's with its 95 % interval, as in
results.json. If the second agent was played under other conditions, they are printed.
"""

from __future__ import annotations

import argparse
from typing import Any

from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.report.summary import compare
from predimem.evaluation.run.config import read_results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="FILE:AGENT")
    parser.add_argument("second", help="FILE:AGENT")
    args = parser.parse_args()
    records: list[dict[str, Any]] = []
    conditions, benchmarks = [], []
    for which in (args.first, args.second):
        path, _, agent = which.rpartition(":")
        results = read_results(path)
        own = [record for record in episodes_of(results) if record["agent"] == agent]
        if not own:
            known = ", ".join(dict.fromkeys(record["agent"] for record in episodes_of(results)))
            parser.error(f"{which}: expected FILE:AGENT with an agent of that file; it has {known}")
        records += [record | {"agent": which, "metrics": {}} for record in own]
        benchmarks.append(results["benchmark"])
        conditions.append({**results["provenance"]["play"], "version": results["benchmark_version"]})
    if benchmarks[0] != benchmarks[1]:
        parser.error(f"expected results of one benchmark, got {benchmarks[0]} and {benchmarks[1]}")
    for name in conditions[0].keys() | conditions[1].keys():
        a, b = (each.get(name) for each in conditions)
        if a != b and name != "weights":
            print(f"other conditions: {name} {a} and {b}")
    tasks = list(dict.fromkeys(record["task"] for record in records))
    categories = load_benchmark(benchmarks[0]).categories(tasks)
    found = compare(records, tasks, [args.first, args.second], categories=categories)["results"]
    print("| | pairs | first alone | second alone | p | CSR, first minus second |\n|---|---:|---:|---:|---:|---|")
    for name in found:
        pair = found[name].get(args.second)
        if pair and (categories is None or name not in tasks):
            low, high = pair["csr_difference_ci_low"], pair["csr_difference_ci_high"]
            interval = f"{pair['csr_difference']:.3f} [{low:.3f}, {high:.3f}]" if pair["n"] else ""
            cells = (name, pair["n"], pair["only_reference"], pair["only_other"], f"{pair['p_value']:.2g}", interval)
            print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
