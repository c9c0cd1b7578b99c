"""Measures the success of every scripted skill, by what it is done to: a Markdown table.

    python benchmarks/arena_skills.py [--seeds 50] [--control-mode pd_joint_pos] [--workers 1]

Plays the true subtasks of tasks that together have every skill on every kind of target, each subtask once
and without another attempt. A subtask counts when its own condition holds within `SETTLE_STEPS` of the
motion's end; the episode goes on only while all of them have held, so that each begins in a proper state.
Physics only.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from tqdm import tqdm

from predimem.envs.arena.fixtures import DOOR, DRAWERS, FIXTURES, PLACES
from predimem.envs.arena.subtasks import Skill, Subtask
from predimem.evaluation.analysis.metrics import wilson_interval

TASKS = (1, 2, 4, 6, 8, 10, 13, 16, 19, 20, 25)
SETTLE_STEPS = 10
Case = tuple[str, str]  # skill, target
Trial = tuple[Case, bool, int]  # done, control steps


def case(subtask: Subtask) -> Case:
    """Picks by object, the others by the kind of furniture."""
    target = subtask.target
    if subtask.skill is Skill.MOVE:
        return "pick", target.replace("_", " ")
    if subtask.skill is Skill.PLACE:
        frame = PLACES[target].frame
        kind = FIXTURES[frame].kind if frame in FIXTURES else frame
        return "place", ("drawer" if frame in DRAWERS else kind).replace("_", " ")
    if subtask.skill is Skill.POUR:
        return "pour", (FIXTURES[target].kind if target in FIXTURES else target).replace("_", " ")
    return subtask.skill.lower(), "door" if target == DOOR else target.replace("_", " ")


def play(task_and_mode_and_seeds: tuple[int, str, Iterable[int]]) -> list[Trial]:
    """Every subtask of some episodes of one task, up to the first of each episode that fails."""
    import torch

    from datagen.experts.scripted.execute import run, skill
    from datagen.experts.scripted.pick import holds, pick
    from datagen.experts.scripted.true_scene import TrueScene
    from predimem.envs.arena.robot.arm import Arm
    from predimem.envs.arena.scene.environment import ArenaEnv

    torch.set_num_threads(1)
    task, control_mode, seeds = task_and_mode_and_seeds
    env = ArenaEnv(
        task=task, obs_mode="none", control_mode=control_mode, sim_backend="cpu", render_backend="none"
    )  # fmt: skip
    trials: list[Trial] = []
    for seed in seeds:
        env.reset(seed=seed)
        arm, scene = Arm(env), TrueScene(env)
        for stage, subtask in enumerate(env.variant().subtasks):
            if subtask.skill is Skill.PLACE and not holds(arm, scene, subtask.object):
                run(env, arm, pick(arm, scene, subtask.object))  # this one is not counted
            steps = run(env, arm, skill(arm, scene, subtask))
            for _ in range(SETTLE_STEPS):
                if env.progress.stage[0] <= stage:
                    run(env, arm, arm.wait(1))
            done = bool(env.progress.stage[0] > stage) and env.failure() == ""
            trials.append((case(subtask), done, steps))
            if not done:
                break
    env.close()
    return trials


def table(trials: Iterable[Trial]) -> str:
    by_case: dict[Case, list[tuple[bool, int]]] = defaultdict(list)
    for which, done, steps in trials:
        by_case[which].append((done, steps))
    order = ("pick", "place", "pour", "open", "close")
    lines = ["| skill | target | done | 95 % interval | mean steps |", "| --- | --- | ---: | ---: | ---: |"]
    for (skill, target), results in sorted(by_case.items(), key=lambda item: (order.index(item[0][0]), item[0])):
        n, done = len(results), sum(result[0] for result in results)
        low, high = wilson_interval(done, n)
        steps = np.mean([result[1] for result in results])
        lines.append(f"| {skill} | {target} | {done}/{n} | {low:.2f} to {high:.2f} | {steps:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="episodes of each task")
    parser.add_argument("--control-mode", choices=("pd_joint_pos", "pd_ee_delta_pose"), default="pd_joint_pos")
    parser.add_argument("--tasks", type=int, nargs="+", default=TASKS)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    args = parser.parse_args()
    if args.seeds < 1 or args.workers < 1:
        parser.error("--seeds and --workers are at least 1")
    jobs = [(task, args.control_mode, [seed]) for task in args.tasks for seed in range(args.seeds)]
    trials: list[Trial] = []
    with ProcessPoolExecutor(args.workers) as pool:
        for some in tqdm(pool.map(play, jobs, chunksize=2), total=len(jobs), unit="episode"):
            trials += some
    print(f"\n{args.control_mode}, {args.seeds} seeds of each of the tasks {', '.join(map(str, args.tasks))}\n")
    print(table(trials))


if __name__ == "__main__":
    main()
