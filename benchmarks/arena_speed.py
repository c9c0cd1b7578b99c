"""Measures speed and memory of the arena: one task of each category, without images and with both cameras.

    python benchmarks/arena_speed.py > docs/benchmarks/arena_speed.md

Every measurement has a process to itself; the figures are medians over `--repeats` of them. The arm moves
about with small random actions; with images, both cameras are rendered at every step. `make` is the
first environment of a process, with the libraries loaded; `reset` includes the first observation.
Memory is resident memory: of the process with its first environment, libraries included, and what each
further environment adds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

IMAGES_PX = (0, 128, 256)  # 0: no images
CONTROL_MODES = ("pd_joint_pos", "pd_ee_delta_pose")
HEADER = "| task | images | pd_joint_pos, steps/s | pd_ee_delta_pose, steps/s | make | reset | first | each further |"


def measure(task_id: int, px: int, steps: int) -> dict[str, float]:
    """Figures of one configuration, in this process."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    import predimem.envs.arena
    import predimem.envs.arena.scene.environment  # the libraries, outside the clock

    torch.set_num_threads(1)
    options: dict[str, Any] = {"obs_mode": "rgb", "image_px": px} if px else {"obs_mode": "none"}
    envs: list[Any] = []
    figures: dict[str, float] = {}
    for mode in (*CONTROL_MODES, *CONTROL_MODES):
        began = time.perf_counter()
        envs.append(predimem.envs.arena.make(task_id, control_mode=mode, **options))
        made_s = time.perf_counter() - began
        resets = [_timed(lambda: envs[-1].reset(seed=1)) for _ in range(5)]
        if len(envs) <= 2:
            figures[mode] = steps / _timed(lambda: _play(envs[-1], steps))
        if len(envs) == 1:
            figures |= {"make_s": made_s, "reset_s": statistics.median(resets), "first_mib": _resident_mib()}
    figures["further_mib"] = (_resident_mib() - figures["first_mib"]) / (len(envs) - 1)
    return figures


def _play(env: Any, steps: int) -> None:
    """Small movements about the rest pose."""
    import numpy as np

    rng = np.random.default_rng(0)
    rest = np.zeros(7)
    if env.unwrapped.control_mode == "pd_joint_pos":
        rest = np.append(env.unwrapped.agent.robot.qpos[0, :7].numpy(), 0.0)
    for _ in range(steps):
        env.step((rest + rng.uniform(-0.1, 0.1, rest.shape)).astype(np.float32))


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def in_a_fresh_process(task_id: int, px: int, steps: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(task_id), str(px), "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"task {task_id} at {px} px failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def report(tasks: list[int] | None, repeats: int, steps: int) -> None:
    from tqdm import tqdm

    from predimem.envs.arena.task import CATEGORIES
    from predimem.envs.arena.tasks import TASKS, task_of
    from predimem.evaluation.run.machine import machine, revision

    if tasks is None:
        chosen = [next(task for task in TASKS if task.category == category) for category in CATEGORIES]
    else:
        chosen = [task_of(number) for number in tasks]
    runs = [(task, px) for task in chosen for px in IMAGES_PX]
    found: dict[tuple[int, int], list[dict[str, float]]] = {(task.task_id, px): [] for task, px in runs}
    load_before = os.getloadavg()[0]
    for task, px in tqdm([run for _ in range(repeats) for run in runs], unit="process"):
        found[task.task_id, px].append(in_a_fresh_process(task.task_id, px, steps if px == 0 else steps // 10))
    commit, dirty = revision()
    here = machine()
    packages = ", ".join(f"{name} {here['packages'][name]}" for name in ("mani_skill", "sapien", "torch"))
    print("# Speed of the arena\n\nMade with `benchmarks/arena_speed.py`, which says what is measured.\n")
    print(f"{here['cpu']}, {here['cores']} cores, {here['system']}, Python {here['python']}, {packages}; ", end="")
    print(
        f"revision {commit}{' with changes' if dirty else ''}; medians of {repeats} processes, {steps} steps each ",
        end="",
    )
    print(f"({steps // 10} with images); load average {load_before:.1f} before, {os.getloadavg()[0]:.1f} after.\n")
    print(HEADER)
    print("| --- | --- " + "| ---: " * 6 + "|")
    for task, px in runs:
        results = found[task.task_id, px]
        figure = {name: statistics.median(result[name] for result in results) for name in results[0]}
        print(
            f"| {task.task_id} {task.name} ({task.category}) | {f'2 x {px} px' if px else 'none'} "
            f"| {figure['pd_joint_pos']:.0f} | {figure['pd_ee_delta_pose']:.0f} | {figure['make_s']:.2f} s "
            f"| {figure['reset_s'] * 1000:.0f} ms | {figure['first_mib']:.0f} MiB | {figure['further_mib']:.0f} MiB |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="+", help="task numbers (default: the first of each category)")
    parser.add_argument("--repeats", type=int, default=3, help="processes for each figure")
    parser.add_argument("--steps", type=int, default=1000, help="control steps without images; a tenth with")
    parser.add_argument("--one", type=int, nargs=2, metavar=("TASK", "PX"), help="measure one, print JSON")
    args = parser.parse_args()
    if min(args.repeats, args.steps // 10) < 1:
        parser.error("--repeats has to be 1 or more, --steps 10 or more")
    if args.one:
        task, px = args.one
        print(json.dumps(measure(task, px, args.steps)))
    else:
        report(args.tasks, args.repeats, args.steps)


if __name__ == "__main__":
    main()
