"""The result of a run in a few lines for the terminal; `predimem data stats` tells everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from predimem.jobs.tasks import Outcome


def summary(outcomes: Sequence[Outcome], out: str | Path) -> str:
    """Yield, how episodes ended, causes of discards, and where the time went."""
    kept = [outcome for outcome in outcomes if outcome.kept]
    lines = [f"{len(kept)} of {len(outcomes)} episodes kept in {out} ({sum(o.steps for o in kept)} control steps)"]
    ends = Counter(outcome.report["ended"] for outcome in kept if "ended" in outcome.report)
    lines += [f"  ended {count:4d}  {end}" for end, count in ends.most_common()]
    causes = Counter(outcome.cause for outcome in outcomes if not outcome.kept)
    lines += [f"  discarded {count:4d}  {cause}" for cause, count in causes.most_common()]
    stages: Counter[str] = Counter()
    for outcome in outcomes:
        stages.update(outcome.report.get("stage_seconds", {}))
    total = sum(stages.values())
    if total:
        shares = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in stages.most_common())
        lines.append(f"time of workers, {total:.0f} s: {shares}")
    return "\n".join(lines)
