"""How often the scripted controllers of MIKASA's families succeed with the true subtask, without rendering.

    python -m benchmarks.mikasa_scripts --tasks InterceptMedium-VLA-v0 --episodes 20

Success is the suite's own, or the family's stricter one where it has one. A step costs about 5 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from predimem.envs.mikasa.expert import expert
from predimem.envs.mikasa.families.registry import FAMILIES
from predimem.envs.mikasa.suite import MikasaEnvironment

FIRST_SEED = 3000


def play(environment: MikasaEnvironment, seed: int) -> tuple[bool, int]:
    """Whether the script succeeds, and after how many control steps the episode ended."""
    environment.reset(seed)
    script = expert(environment)
    script.reset()
    for step in range(environment.horizon):
        result = environment.step(script.action())
        if result.success or result.terminated:
            return result.success, step + 1
    return False, environment.horizon


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [task for family in FAMILIES for task in family.tasks]
    parser.add_argument("--tasks", nargs="+", default=known, help="default: all that a family covers")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    args = parser.parse_args(arguments)
    print("| Task | Success | Steps, median | Failed seeds |\n| --- | --- | --- | --- |")
    for task in args.tasks:
        environment = MikasaEnvironment(task, images=False)
        seeds = range(args.first_seed, args.first_seed + args.episodes)
        played = [play(environment, seed) for seed in seeds]
        environment.close()
        lengths = sorted(steps for _, steps in played)
        failed = [str(seed) for seed, (success, _) in zip(seeds, played, strict=True) if not success]
        succeeded = f"{args.episodes - len(failed)}/{args.episodes}"
        print(f"| {task} | {succeeded} | {lengths[len(lengths) // 2]} | {', '.join(failed)} |", flush=True)


if __name__ == "__main__":
    main()
