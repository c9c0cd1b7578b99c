"""Measures how many episodes an hour 1 and 2 workers make, with images at 20 and 10 Hz, and where the time goes.

    .venv/bin/python benchmarks/datagen_throughput.py [--tasks 6,18,25,12] [--seeds 2] [--out throughput.md]

Each way makes the same episodes, in a folder of its own that is deleted afterwards. The time is that of the episodes
themselves, over the workers: what a worker needs before its first one (loading the simulator, about 15 s) and the end,
where one has nothing left to do, are left out. Nothing else should run meanwhile; ratios of one run can be compared,
seconds of two machines cannot.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from datagen.demos.config import GenerationConfig
from datagen.demos.worker import ArenaWorker
from datagen.generation import run_generation
from predimem.evaluation.run.machine import machine, revision
from predimem.jobs.runner import BackendConfig

WAYS = (  # name, workers, an image every so many control steps
    ("1 worker, images at 20 Hz", 1, 1),
    ("1 worker, images at 10 Hz", 1, 2),
    ("2 workers, images at 10 Hz", 2, 2),
)
STAGES = ("images", "physics", "skills", "look", "writing", "reset")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", default="6,18,25,12")
    parser.add_argument("--seeds", type=int, default=2, help="of each task")
    parser.add_argument("--out", type=Path, help="Markdown file; default: standard output")
    given = parser.parse_args()
    rows = []
    for name, workers, every in tqdm(WAYS, unit="way", file=sys.stderr):
        with tempfile.TemporaryDirectory() as folder:
            config = GenerationConfig(
                out=folder, tasks=tuple(given.tasks.split(",")), episodes=given.seeds, image_every=every
            )
            rows.append(_row(name, config, workers))
    commit, dirty = revision()
    state = " with changes" if dirty else ""
    made = f"{machine()['cpu']}, {machine()['cores']} cores, revision {str(commit)[:7]}{state}"
    head = ["", "kept", "episodes/hour", "kept control steps/s", "images/s"]
    head += [f"{stage}, ms/step" for stage in STAGES]
    table = "\n".join(
        [
            f"{made}; tasks {given.tasks}, {given.seeds} seeds each from {GenerationConfig().first_seed} on.",
            "",
            f"| {' | '.join(head)} |",
            "|" + "---|" * len(head),
            *rows,
        ]
    )
    if given.out:
        given.out.write_text(table + "\n")
    print(table)


def _row(name: str, config: GenerationConfig, workers: int) -> str:
    outcomes = run_generation(config, ArenaWorker, BackendConfig(workers=workers), progress=False)
    seconds = sum(outcome.seconds for outcome in outcomes) / workers
    kept = [outcome for outcome in outcomes if outcome.kept]
    steps, played = sum(outcome.steps for outcome in kept), sum(outcome.steps for outcome in outcomes)
    stages: Counter[str] = Counter()
    for outcome in outcomes:
        stages.update(outcome.report["stage_seconds"])
    cells = " | ".join(f"{stages[stage] / played * 1e3:.1f}" for stage in STAGES)
    images = 2 * steps / config.image_every
    return (
        f"| {name} | {len(kept)}/{len(outcomes)} | {len(kept) / seconds * 3600:.0f} | {steps / seconds:.1f} "
        f"| {images / seconds:.1f} | {cells} |"
    )


if __name__ == "__main__":
    main()
