"""Measures how well the server tells tasks that a planner was trained on from those that it was not: two tables.

    python benchmarks/known_tasks.py --out docs/benchmarks/known_tasks.md

The prompts are compared with the instructions of the shipped planners, as `predimem serve` does it
(predimem/serving/known_tasks.py). No model is run: what a planner answers says little about what it has understood.

valid         100 prompts for each planner, those of its own tasks, drawn by seed: for the arena from all tasks and
              evaluation seeds, for RememberColor from its three tasks, which all say the same
valid, retyped    the same in lower case, without punctuation, or with "please"
foreign       benchmarks/prompts/foreign.txt: 50 tasks of other robots, and 50 that use the words of the arena
paraphrased   benchmarks/prompts/paraphrased.txt: tasks of the arena in other words, which the tiny planners have never
              read; a pretrained one would understand them
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from planner.checkpoint import read_spec
from planner.instructions import trained_on
from predimem.core.weight_files import weights_folder
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.tasks import TASKS
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.serving.known_tasks import FROM_SCRATCH, PRETRAINED, KnownTasks

PROMPTS = Path(__file__).parent / "prompts"
FIRST_SEED = 900_000
DRAWN = 100
COLOUR = "Observe the cube's color, wait, then touch the cube of the same color."
THRESHOLDS = (0.3, PRETRAINED, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, FROM_SCRATCH)
PLANNERS = {"arena-planner": "arena", "planner": "RememberColor"}


def listed(name: str) -> dict[str, list[str]]:
    """The prompts of a file by the comment above them."""
    groups: dict[str, list[str]] = {}
    for line in (PROMPTS / name).read_text().splitlines():
        if line.startswith("#"):
            groups[line.strip("# ")] = []
        elif line:
            groups[list(groups)[-1]].append(line)
    return groups


def drawn_instructions(seed: int) -> list[str]:
    """What the arena told its robots in `DRAWN` episodes of evaluation seeds."""
    rng = np.random.default_rng(seed)
    told = []
    for _ in range(DRAWN):
        task = TASKS[rng.integers(len(TASKS))]
        told.append(task.variants[draw_layout(task, FIRST_SEED + int(rng.integers(1000))).variant].instruction)
    return told


def retyped(prompts: Sequence[str]) -> list[str]:
    ways = (str.lower, lambda text: re.sub(r"[.,]", "", text), lambda text: f"Please {text[0].lower()}{text[1:]}")
    return [ways[i % len(ways)](prompt) for i, prompt in enumerate(prompts)]


def groups_of(benchmark: str, seed: int) -> dict[str, list[str]]:
    """Group -> prompts, as they are judged for the planner of one benchmark."""
    valid = drawn_instructions(seed) if benchmark == "arena" else [COLOUR] * DRAWN
    far, near = listed("foreign.txt").values()
    groups = {"valid": valid, "valid, retyped": retyped(valid), "foreign, other robots'": far, "foreign, near": near}
    if benchmark == "arena":
        (groups["paraphrased"],) = listed("paraphrased.txt").values()
    return groups


def unknown(similarities: Sequence[float], threshold: float) -> int:
    return sum(found < threshold for found in similarities)


def share(count: int, n: int) -> str:
    low, high = wilson_interval(count, n)
    return f"{count} of {n} [{100 * low:.0f}, {100 * high:.0f}] %"


def report(seed: int) -> str:
    lines = [
        "# Tasks that a planner was not trained on",
        "",
        "`python benchmarks/known_tasks.py --out docs/benchmarks/known_tasks.md` writes this page; the script says "
        "what the groups are. Counted are prompts that the server calls unknown: for valid prompts these are false "
        "alarms, and foreign prompts that are missing from the count are misses.",
        "",
        f"At the default for planners that were trained from scratch, a similarity of {FROM_SCRATCH:g}: a prompt that "
        "is known is an instruction of the training but for articles, courtesy, capitals and punctuation.",
        "",
        "| Planner | Prompts | Different ones | Called unknown, with its 95 % interval |",
        "| --- | --- | ---: | ---: |",
    ]
    sweep: dict[str, list[float]] = {}
    for name, benchmark in PLANNERS.items():
        folder = weights_folder(None, name)
        known = KnownTasks(*trained_on(folder, read_spec(folder)))
        for group, prompts in groups_of(benchmark, seed).items():
            similarities = [known.nearest(prompt)[0] for prompt in prompts]
            if benchmark == "arena":
                sweep[group] = similarities
            found = share(unknown(similarities, FROM_SCRATCH), len(prompts))
            lines.append(f"| `{name}` | {group} | {len(set(prompts))} | {found} |")
    lines += [
        "",
        "The share of each group that is called unknown for `arena-planner`, %, by the similarity below which prompts "
        f"are unknown. Both defaults were chosen on this table. Below {FROM_SCRATCH:g}, a long prompt that names one "
        f"other thing is taken for known. The default for pretrained planners, {PRETRAINED}, leaves most paraphrases "
        "alone; no such planner was trained here, so that nothing is known of what it makes of these prompts.",
        "",
        f"| Similarity | {' | '.join(sweep)} |",
        f"| ---: |{' ---: |' * len(sweep)}",
    ]
    for threshold in THRESHOLDS:
        cells = (f"{100 * unknown(found, threshold) / len(found):.0f}" for found in sweep.values())
        lines.append(f"| {threshold} | {' | '.join(cells)} |")
    return "\n".join(line if line.startswith("|") else fill(line, 120) for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the valid prompts that are drawn")
    parser.add_argument("--out", type=Path, help="Markdown file; default: print it")
    args = parser.parse_args()
    text = report(args.seed)
    print(text, end="")
    if args.out:
        args.out.write_text(text)


if __name__ == "__main__":
    main()
