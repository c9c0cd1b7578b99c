"""Measures what an image of the arena costs, by camera, and what each part of that is due to.

    python benchmarks/render_cost.py [--task 4] [--images 30]

CPU time, all threads together, is what counts where several workers share the cores; wall time is beside
it. Medians over `--images`, of which every variant takes one in turn, so that a busy machine is equally
busy for all. Each variant changes one thing that a user can switch (named by the option of `predimem.envs.arena.make`)
and is otherwise the arena as it is. A variant has environments of its own in the one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

COLOURS = ("agentview_rgb", "eye_in_hand_rgb")
DEPTHS = ("agentview_depth", "eye_in_hand_depth")
Cost = tuple[float, float]  # milliseconds of CPU and of wall time


def one(action: Callable[[], Any]) -> Cost:
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    action()
    return 1000 * (time.process_time() - cpu_s), 1000 * (time.perf_counter() - wall_s)


def medians(actions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Cost]:
    for action in actions.values():  # the first image compiles
        action()
    found: dict[str, list[Cost]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            found[name].append(one(action))
    return {name: (statistics.median(c for c, _ in costs), statistics.median(w for _, w in costs))
            for name, costs in found.items()}  # fmt: skip


def observing(env: Any, cameras: Sequence[str], mode: str = "rgb") -> Callable[[], Any]:
    return lambda: env.observe(mode, cameras)


def as_stock(env: Any, cameras: Sequence[str]) -> Callable[[], Any]:
    """Images for which nothing is left out, as ManiSkill takes them."""
    from mani_skill.sensors.camera import Camera

    capture: Any = getattr(Camera.capture, "stock", Camera.capture)

    def observe() -> None:
        env.scene.update_render(update_sensors=True, update_human_render_cameras=False)
        for name in cameras:
            capture(env._sensors[name])
            env._sensors[name].get_obs(rgb=True, depth=False, position=False, segmentation=False)

    return observe


def report(task: int, rounds: int) -> None:
    import torch

    import predimem.envs.arena
    from predimem.evaluation.run.machine import machine

    torch.set_num_threads(1)

    def made(**options: Any) -> Any:
        settings: dict[str, Any] = {"obs_mode": "none", "render_backend": "auto", "depth_px": 256} | options
        env: Any = predimem.envs.arena.make(task, **settings).unwrapped
        env.reset(seed=0)
        return env

    arena = made()
    variants: dict[str, Callable[[Sequence[str]], Callable[[], Any]]] = {
        "the arena as it is": partial(observing, arena),
        "bodies out of view not left out": partial(as_stock, arena),
    }
    for name, options in (
        ('robot_meshes="stock"', {"robot_meshes": "stock"}),
        ('sensor_configs={"shader_pack": "default"}', {"sensor_configs": {"shader_pack": "default"}}),
        ("enable_shadow=True", {"enable_shadow": True}),
        ("image_px=64", {"image_px": 64}),
        ("image_px=256", {"image_px": 256}),
    ):
        variants[name] = partial(observing, made(**options))

    here = machine()
    print(f"{here['cpu']}, {here['cores']} cores; task {task}, medians of {rounds}; CPU (wall) in ms for an image\n")
    print(f"| variant | {' | '.join(COLOURS)} | both |\n| --- {'| ---: ' * 3}|")
    columns: list[Sequence[str]] = [[COLOURS[0]], [COLOURS[1]], COLOURS]
    costs = [medians({name: act(cameras) for name, act in variants.items()}, rounds) for cameras in columns]
    for name in variants:
        print(f"| {name} | {' | '.join(f'{cost[name][0]:.1f} ({cost[name][1]:.1f})' for cost in costs)} |")

    both: dict[str, Callable[[], Any]] = {
        f"2 x 256 px, {mode}": observing(arena, DEPTHS, mode) for mode in ("rgb", "rgb+depth+segmentation")
    }
    update: dict[str, Callable[[], Any]] = {
        "poses to the renderer": lambda: arena.scene.update_render(update_sensors=True),
        "fetching 2 x 128 px, rgb": lambda: [
            arena._sensors[name].get_obs(rgb=True, depth=False, position=False, segmentation=False) for name in COLOURS
        ],
    }
    print(f"\n| besides | CPU (wall) |\n| --- {'| ---: '}|")
    for name, (cpu_ms, wall_ms) in medians(both | update, rounds).items():
        print(f"| {name} | {cpu_ms:.1f} ({wall_ms:.1f}) |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--task", type=int, default=4, help="task number")
    parser.add_argument("--images", type=int, default=30, help="images for each figure")
    args = parser.parse_args()
    if args.images < 1:
        parser.error("--images has to be 1 or more")
    os.environ["OMP_NUM_THREADS"] = "1"
    report(args.task, args.images)


if __name__ == "__main__":
    main()
