"""How often a planner names the right place on recorded episodes of RoboMME, trained ones and held-out ones.

    python -m benchmarks.robomme_places --planner runs/train/planner-robomme/export --episodes runs/data/robomme/skills

The planner sees the recorded frames and keeps its own memory. Counted are its answers within 1.5 s of the moment when
the first label with a place is due, before the recorded arm shows where it is going. A planner that is right on trained
episodes alone has learned the scenes by heart.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from memory_bank import make_memory
from planner.decoding import load_planner
from planner.evaluate import replay_plans
from planner.split import split_episodes
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode
from predimem.core.progress import Bar
from predimem.envs.robomme.labels import cell_in

WITHIN_STEPS = 30  # of the first label with a place
LATENCY_STEPS = 10
WRONG = 99.0  # cells: no place was named

HEAD = "| Task | Episodes | Answers | Right cell, % | At most one cell off, % |\n| --- | --- | ---: | ---: | ---: |"


def errors(planner, memory, episode: Episode) -> Iterator[float]:
    """How many cells each answer is off, in rows or columns, whichever is more."""
    due = next(span for span in episode.subtasks if cell_in(span.label) is not None)
    bank = make_memory(memory)
    bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
    for step, plan, _ in replay_plans(planner, bank, episode, LATENCY_STEPS):
        if step >= due.start + WITHIN_STEPS:
            return
        if step >= due.start and (right := cell_in(episode.subtask_at(step))) is not None:
            said = cell_in(plan.subtask or "")
            yield WRONG if said is None else float(np.abs(np.subtract(said, right)).max())


def row(task: str, which: str, off: Sequence[float]) -> str:
    found = np.array(off)
    return f"| {task} | {which} | {len(found)} | {100 * (found == 0).mean():.0f} | {100 * (found <= 1).mean():.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planner", type=Path, required=True, help="folder of an exported planner")
    parser.add_argument("--episodes", type=Path, default=Path("runs/data/robomme/skills"))
    parser.add_argument("--most", type=int, default=20, help="so many trained episodes of each task, drawn at random")
    args = parser.parse_args()
    planner = load_planner(args.planner, threads=1)
    fraction = planner.spec.training["config"]["dataset"]["validation_fraction"]
    episodes = [e for e in load_episodes(args.episodes) if any(cell_in(span.label) for span in e.subtasks)]
    trained, held_out = split_episodes(episodes, fraction)
    lines = []
    for task in dict.fromkeys(episode.task for episode in episodes):
        for which, group in (("trained", trained), ("held out", held_out)):
            own = [episode for episode in group if episode.task == task]
            own = random.Random(0).sample(own, min(args.most, len(own)))
            off: list[float] = []
            with Bar(len(own), "episodes", f"{task}, {which}") as bar:
                for episode in own:
                    off += errors(planner, planner.spec.memory, episode)
                    bar.add()
            lines.append(row(task, which, off))
    print(HEAD, *lines, sep="\n")


if __name__ == "__main__":
    main()
