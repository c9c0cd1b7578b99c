"""Counts what planners named first that was not due, in failed episodes of RoboMME, from a results file.

    python -m benchmarks.robomme_mistakes results/robomme_learned.json --by agent

A label is wrong if it has not been the true subtask up to then; one that comes too late is not. It is another place
if only the cell differs from that of the label that was due, still the video if the planner waits for more of it,
placed too early if a thing is to be put somewhere before it was picked up, and else another subtask. Where a planner
named nothing wrong, the actor failed, or the planner went on too late.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.mikasa_table import right_aligned
from predimem.envs.robomme.labels import WATCH, without_cell
from predimem.evaluation.analysis.compact import episodes_of
from predimem.evaluation.run.config import read_results

PLACE, VIDEO, EARLY, SUBTASK = "another place", "still the video", "placed too early", "another subtask"
NOTHING = "nothing wrong"
KINDS = (PLACE, VIDEO, EARLY, SUBTASK, NOTHING)


def kind(mistake: Mapping[str, Any] | None) -> str:
    """mistake: as `mistakes.Mistake.to_dict` gives it, or None where nothing wrong was named."""
    if mistake is None:
        return NOTHING
    named = mistake["text"].partition("\u201c")[2].rpartition("\u201d")[0]
    if named == WATCH:
        return VIDEO
    if named.startswith(("place ", "put ")) and mistake["due"].startswith("pick up "):
        return EARLY
    return PLACE if without_cell(named) == without_cell(mistake["due"]) else SUBTASK


def table(records: Iterable[Mapping[str, Any]], by: str) -> str:
    """by: the field of an episode's record that has a line, `task` or `agent`.

    Raises ValueError if a record does not have its first mistake, as in older files.
    """
    failed: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        if "mistake" not in record:
            raise ValueError("expected each episode's first mistake, which older files do not have: play it again")
        if record["status"] == "failure":
            failed[record[by]][kind(record["mistake"])] += 1
    lines = [
        [name if by == "task" else f"`{name}`", str(found.total()), *(str(found[each]) for each in KINDS)]
        for name, found in failed.items()
    ]
    return right_aligned([by, "failed", *KINDS], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a results file of `predimem eval --benchmark robomme`")
    parser.add_argument("--by", choices=["task", "agent"], default="task")
    parser.add_argument("--agent", help="count this agent alone")
    args = parser.parse_args()
    records = episodes_of(read_results(args.results))
    agents = list(dict.fromkeys(record["agent"] for record in records))
    if args.agent and args.agent not in agents:
        parser.error(f"expected an agent of this file, {', '.join(agents)}; got {args.agent!r}")
    try:
        print(table((record for record in records if args.agent in (None, record["agent"])), args.by))
    except ValueError as error:
        parser.error(f"{args.results}: {error}")


if __name__ == "__main__":
    main()
