"""Checks that the actor's labels mean what they say: label chunks alone play whole tasks in physics. A Markdown table.

    python benchmarks/arena_labels.py [--seeds 2] [--first-seed 910000] [--steps 4]

Every `--steps` control steps the expert without memory is asked for a chunk, which is played as it is. A subtask is
followed by the next one some steps after its condition holds, as in an arena that is told what is due. No images.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections import defaultdict

from tqdm import tqdm

from predimem.envs.arena.tasks import TASKS
from predimem.evaluation.analysis.metrics import wilson_interval

AFTER_STEPS, MOST_STEPS = 8, 400


def play(task: str, seeds: range, steps: int, tried: dict[str, list[bool]]) -> int:
    """How many of the episodes were solved; attempts at subtasks go to `tried`."""
    from datagen.actor_data.evaluate import kind_of
    from datagen.experts.scripted.action_labels import chunk
    from datagen.experts.scripted.snapshot import Gripper, Snapshot
    from predimem.envs.arena.robot.delta_pose import Driver
    from predimem.envs.arena.scene.environment import ArenaEnv

    env = ArenaEnv(
        task=task, obs_mode="none", control_mode="pd_joint_pos", sim_backend="cpu", render_backend="none"
    )  # fmt: skip
    solved = 0
    for seed in seeds:
        env.reset(seed=seed)
        driver, known = Driver(env), Snapshot.of(env)
        for subtask in env.variant().subtasks:
            played, after = 0, 0
            while played < MOST_STEPS and after < AFTER_STEPS:
                scene = Snapshot.of(env)
                scene.adopt_grasps(known)
                actions = chunk(driver.arm, Gripper.of(driver.arm), scene, subtask, steps)
                known.adopt_grasps(scene)
                for action in actions:
                    driver.step(action)
                    after += bool(after or subtask.done(env.world())[0])
                played += steps
            kind = kind_of({"skill": subtask.skill.value, "target": subtask.target})
            tried[kind].append(after > 0)
            if not after or env.failure():
                break
        passed = int(env.progress.stage[0]) == len(env.variant().subtasks)
        solved += passed and bool(env.progress.stages(env.task, env.world())[0].all())
    env.close()
    return solved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=910_000)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    tried: dict[str, list[bool]] = defaultdict(list)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    solved = [play(task.name, seeds, args.steps, tried) for task in tqdm(TASKS)]
    print("| skill | done | 95 % interval |\n| --- | ---: | ---: |")
    for kind, done in sorted(tried.items()):
        low, high = wilson_interval(sum(done), len(done))
        print(f"| {kind} | {sum(done)}/{len(done)} | {low:.2f} to {high:.2f} |")
    print(f"\nEpisodes: {sum(solved)} of {len(solved) * args.seeds}")


if __name__ == "__main__":
    main()
