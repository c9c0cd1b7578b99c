"""Counts how often each kind of subtask was done in the end, from a results file of the arena: a Markdown table.

    python benchmarks/arena_subtasks.py results/arena_oracle_memory.json [--agent oracle-memory]

A subtask counts as begun once it is due; attempts after failures are included. The one that was due when an episode
failed counts as not done, whatever ended the episode: time, a pour too many, a thing that fell off the table.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from datagen.actor_data.evaluate import kind_of
from predimem.envs.arena.scene.environment import ArenaEnv
from predimem.evaluation.analysis.metrics import wilson_interval


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--agent", default="oracle-memory")
    args = parser.parse_args()
    done: Counter[str] = Counter()
    begun: Counter[str] = Counter()
    results = json.loads(args.results.read_text())
    for group in results["groups"]:
        if group["agent"] != args.agent:
            continue
        env = ArenaEnv(task=group["task"], obs_mode="none", sim_backend="cpu", render_backend="none")
        for row in group["rows"]:
            episode = dict(zip(results["columns"], row, strict=True))
            if episode["status"] == "error":
                continue
            env.reset(seed=episode["seed"])
            for stage, subtask in enumerate(env.variant().subtasks):
                kind = kind_of({"skill": subtask.skill.value, "target": subtask.target})
                begun[kind] += 1
                _, timed_out, due = episode["message"].partition("out of time: ")
                here = due == subtask.label if timed_out else stage == episode["stages_passed"]
                if episode["status"] == "failure" and here:
                    break
                done[kind] += 1
        env.close()
    print("| subtask | done | 95 % interval |\n| --- | ---: | ---: |")
    for kind in sorted(begun):
        low, high = wilson_interval(done[kind], begun[kind])
        print(f"| {kind} | {done[kind]}/{begun[kind]} | {low:.2f} to {high:.2f} |")
    print(f"\nAll: {done.total()} of {begun.total()}")


if __name__ == "__main__":
    main()
