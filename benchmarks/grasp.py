"""Measures the success of grasps found in point clouds, by object and cameras, and what finding them costs.

    python benchmarks/grasp.py [--seeds 50] [--control-mode pd_joint_pos] [--detector antipodal] [--out PATH]

Every trial is the start of an episode. The cameras look (`agentview` from the rest pose; with two views also the hand
camera, from above the place where agentview saw the thing), the detector finds grasps in the cloud, and the arm tries
the best one that it reaches, once, and lifts. The trial counts as a success when the simulator says that the thing has
gone up with the gripper. No pose of the simulator is used before that. Writes PATH.md and PATH.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from datagen.grasp.make import GraspConfig, make_detector
from datagen.grasp.types import Grasp, GraspDetector
from predimem.envs.arena.tasks import task_of
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.run.machine import machine, revision

# Every object once on the table, among others; then what starts elsewhere.
ON_TABLE = {1: ("cookies", "tomato_sauce", "butter"), 3: ("cream_cheese", "chocolate_pudding", "popcorn"),
            10: ("wine_bottle",), 16: ("milk", "orange_juice")}  # fmt: skip
ELSEWHERE = {18: ("chocolate_pudding", "butter"), 19: ("tomato_sauce", "milk", "orange_juice"),
             25: ("butter", "cream_cheese"), 26: ("chocolate_pudding", "cream_cheese")}  # fmt: skip
VIEWS = ("agentview", "agentview + hand")
LOOK_HEIGHT_M = 0.35  # of the TCP, straight above the thing
TRAVEL_M, BEFORE_M, SLOW_M_S, LIFT_M = 0.25, 0.08, 0.15, 0.18
LIFTED_M = 0.15
NEARLY_AS_GOOD = 0.8  # of the grasps with this share of the best score, the wrist decides


@dataclass(frozen=True)
class Trial:
    """cause: why it failed; empty for a success. milliseconds: of processor, for the detection; 0 without one."""

    task: int
    seed: int
    object: str
    start: str
    views: str
    cause: Literal["", "not seen", "no grasp", "out of reach", "not lifted"]
    milliseconds: float = 0.0
    score: float = 0.0


def attempt(env: Any, detector: GraspDetector, seed: int, name: str, views: str, at_first: list[Any]) -> Trial:
    """at_first: what agentview sees at this start; the same seed gives the same start."""
    from datagen.experts.scripted.execute import run
    from datagen.perception.cloud import point_cloud
    from datagen.perception.views import look
    from predimem.envs.arena.robot.arm import Arm

    env.reset(seed=seed)
    start = env.variant().start.get(name, "table").split("_")[0]
    arm = Arm(env)
    trial = partial(Trial, env.task.task_id, seed, name, start, views)
    seen = list(at_first)
    if views == VIEWS[1]:
        points = seen[0].world_m[seen[0].mask(name)]
        run(env, arm, look_from(arm, points.mean(axis=0) if len(points) else np.array([-0.2, 0.0, 0.0])))
        seen += look(env, ("eye_in_hand_depth",))
    try:
        cloud, rotation, position = point_cloud(seen, name)
    except ValueError:
        return trial("not seen")
    began = time.process_time()
    grasps = detector.detect(cloud)
    spent_ms = 1000 * (time.process_time() - began)
    if not grasps:
        return trial("no grasp", spent_ms)
    chosen = easiest(arm, grasps, rotation, position)
    if chosen is None:
        return trial("out of reach", spent_ms, grasps[0].score)
    before_m = float(env.objects[name].pose.p[0, 2])
    run(env, arm, grasp_and_lift(arm, *chosen))
    lifted = float(env.objects[name].pose.p[0, 2]) - before_m > LIFTED_M
    return trial("" if lifted else "not lifted", spent_ms, grasps[0].score)


def look_from(arm: Any, point_m: np.ndarray) -> Iterator[None]:
    """Move the gripper straight above a point."""
    yield from arm.rise(LOOK_HEIGHT_M)
    yield from arm.travel(np.array([*point_m[:2], LOOK_HEIGHT_M]), arm.rest_rotation)


def easiest(
    arm: Any, grasps: list[Grasp], rotation: np.ndarray, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The TCP's pose in the world of a good grasp that turns the wrist little; None where none is reached.

    rotation, position: of the camera in the world.
    """
    from datagen.experts.scripted.pick import wrist_rad
    from predimem.envs.arena.robot.rotations import FLIP, gripper_frame

    for worth in (NEARLY_AS_GOOD, 0.0):
        poses = []
        for grasp in grasps:
            if grasp.score >= worth * grasps[0].score:
                turned = gripper_frame(rotation @ grasp.rotation[:, 0], rotation @ grasp.rotation[:, 1])
                poses += [(rotation @ grasp.translation_m + position, frame) for frame in (turned, turned @ FLIP)]
        turns = [wrist_rad(arm, *pose) for pose in poses]
        if np.isfinite(min(turns)):
            return poses[int(np.argmin(turns))]
    return None


def grasp_and_lift(arm: Any, position: np.ndarray, rotation: np.ndarray) -> Iterator[None]:
    from predimem.envs.arena.robot.arm import CLOSED, OPEN

    before = position - BEFORE_M * rotation[:, 2]
    yield from arm.grip(OPEN, steps=2)
    yield from arm.rise(max(TRAVEL_M, before[2]))
    yield from arm.travel(np.array([*before[:2], arm.position[2]]), rotation)
    yield from arm.move(before)
    yield from arm.move(position, speed_m_s=SLOW_M_S)
    yield from arm.grip(CLOSED)
    yield from arm.rise(position[2] + LIFT_M, settle=4)


def play(job: tuple[int, tuple[str, ...], int, str, str, int]) -> list[Trial]:
    """All objects of one task's start, with each set of views."""
    import torch

    import predimem.envs.arena
    from datagen.perception.views import look

    torch.set_num_threads(1)
    task, objects, seed, control_mode, detector, depth_px = job
    if task not in _MADE:
        env = predimem.envs.arena.make(
            task, obs_mode="none", control_mode=control_mode, render_backend="auto", depth_px=depth_px
        ).unwrapped
        _MADE[task] = env, make_detector(GraspConfig(detector=detector))  # type: ignore[arg-type]
    env, found = _MADE[task]
    env.reset(seed=seed)
    at_first = look(env, ("agentview_depth",))
    return [attempt(env, found, seed, name, views, at_first) for name in objects for views in VIEWS]


_MADE: dict[int, tuple[Any, GraspDetector]] = {}  # of this process, by task


def table(trials: Iterable[Trial]) -> str:
    groups: dict[tuple[str, str], dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        groups[trial.start, trial.object][trial.views].append(trial)
        groups["" if trial.start == "table" else "elsewhere", "all"][trial.views].append(trial)
    head = "| start | object | " + " | ".join(f"{views} | 95 % | ms" for views in VIEWS) + " | failures |"
    lines = [head, "| --- | --- |" + " ---: |" * 3 * len(VIEWS) + " --- |"]
    for start, name in sorted(groups, key=lambda key: (key[0] not in ("table", ""), key[1] == "all", key)):
        cells, causes = [], []
        for views in VIEWS:
            some = groups[start, name][views]
            done = sum(trial.cause == "" for trial in some)
            low, high = wilson_interval(done, len(some))
            ms = float(np.median([trial.milliseconds for trial in some if trial.milliseconds] or [0.0]))
            cells += [f"{done}/{len(some)}", f"{low:.2f} to {high:.2f}", f"{ms:.0f}"]
            bad = [trial for trial in some if trial.cause]
            for cause in sorted({trial.cause for trial in bad}):
                seeds = [f"{trial.task}:{trial.seed}" for trial in bad if trial.cause == cause]
                causes.append(f"{views}: {cause} ({', '.join(seeds) if len(seeds) <= 6 else len(seeds)})")
        title = (start or "table", f"**{name}**" if name == "all" else name.replace("_", " "))
        lines.append(f"| {' | '.join((*title, *cells, '; '.join(causes) if name != 'all' else ''))} |")
    return "\n".join(lines)


def heading(args: argparse.Namespace) -> str:
    commit, dirty = revision()
    here = machine()
    packages = ", ".join(f"{name} {here['packages'][name]}" for name in ("mani_skill", "sapien"))
    return (
        "# Grasps from point clouds\n\nMade with `benchmarks/grasp.py`, which says what is counted: "
        f"{args.seeds} seeds from {args.first_seed} on, `{args.detector}`, `{args.control_mode}`, cameras of "
        f"{args.depth_px} px. ms: processor time of one detection (one thread, without images), median. "
        "Failures: task:seed.\n\n"
        f"{here['cpu']}, {here['cores']} cores, {here['system']}, Python {here['python']}, {packages}; "
        f"revision {commit}{' with changes' if dirty else ''}; load average {os.getloadavg()[0]:.1f} at the end.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50, help="episodes of each task")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tasks", type=int, nargs="+", default=[*ON_TABLE, *ELSEWHERE])
    parser.add_argument("--control-mode", choices=("pd_joint_pos", "pd_ee_delta_pose"), default="pd_joint_pos")
    parser.add_argument("--detector", choices=("antipodal", "anygrasp"), default="antipodal")
    parser.add_argument("--depth-px", type=int, default=256, help="width and height of the depth cameras")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("runs/grasp"), help="writes OUT.md and OUT.json")
    args = parser.parse_args()
    if args.seeds < 1 or args.workers < 1:
        parser.error("--seeds and --workers are at least 1")
    wanted = ON_TABLE | ELSEWHERE
    jobs = [
        (task, wanted.get(task, task_of(task).objects), seed, args.control_mode, args.detector, args.depth_px)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for task in args.tasks
    ]
    trials: list[Trial] = []
    with ProcessPoolExecutor(args.workers) as pool:
        for some in tqdm(pool.map(play, jobs), total=len(jobs), unit="episode"):
            trials += some
            for trial in some:
                if trial.cause:
                    about = f"task {trial.task}, seed {trial.seed}, {trial.object}, {trial.views}"
                    tqdm.write(f"{about}: {trial.cause}, score {trial.score:.2f}", file=sys.stderr)
    report = f"{heading(args)}\n{table(trials)}\n"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_suffix(".md").write_text(report)
    commit, dirty = revision()
    found = {
        "revision": commit,
        "dirty": dirty,
        "machine": machine(),
        "settings": {key: value for key, value in vars(args).items() if key != "out"},
        "trials": [asdict(trial) for trial in trials],
    }
    args.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"\n{report}")


if __name__ == "__main__":
    main()
