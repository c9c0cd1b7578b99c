"""What a control step of MIKASA-Robo costs, by how often images are taken: a Markdown table.

    python -m benchmarks.mikasa_speed [--task RememberColor9-VLA-v0] [--episodes 2]

The script plays with the true subtask, in one process with one thread. All columns play the same episodes in turn.
"""

from __future__ import annotations

import argparse
import time

import torch

from predimem.envs.mikasa.expert import expert
from predimem.envs.mikasa.suite import MikasaEnvironment
from predimem.evaluation.run.machine import machine, revision

EVERY = (1, 2, 4, None)
FIRST_SEED = 3000


def cpu_s_per_step(environment: MikasaEnvironment, episodes: int) -> float:
    spent, steps = 0.0, 0
    for seed in range(FIRST_SEED, FIRST_SEED + episodes):
        environment.reset(seed)
        script = expert(environment)
        script.reset()
        began = time.process_time()
        for _ in range(environment.horizon):
            environment.step(script.action())
        spent, steps = spent + time.process_time() - began, steps + environment.horizon
    return spent / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="RememberColor9-VLA-v0")
    parser.add_argument("--episodes", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{args.task}, {args.episodes} episodes, {machine()['cpu']}, revision {(revision()[0] or 'unknown')[:7]}\n")
    print("| Meshes | an image at each step | every 2nd | every 4th | none |\n| --- | ---: | ---: | ---: | ---: |")
    for name, rendering in (("stock", "stock"), ("light (`--rendering fast`)", "fast")):
        environment = MikasaEnvironment(args.task, rendering)  # type: ignore[arg-type]
        cells = []
        for every in EVERY:
            environment.camera_every = every
            cells.append(f"{cpu_s_per_step(environment, args.episodes):.3f}")
        environment.close()
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
