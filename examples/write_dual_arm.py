"""Episodes of a made-up robot with two arms: `python examples/write_dual_arm.py runs/data/dual_arm`.

Like ALOHA it has six joints and a gripper on each arm, is told absolute positions 50 times a second, and has three
cameras. A lamp shows which arm has to reach out. docs/guides/own-robot.md goes on from here.
"""

import sys
from pathlib import Path

import numpy as np

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan

HZ, CUE, STEPS, SIZE_PX = 50.0, 20, 100, 64
CAMERAS = ("cam_high", "cam_left_wrist", "cam_right_wrist")
SIDES = ("left", "right")
REST = np.array([0.0, -0.9, 1.1, 0.0, -0.3, 0.0, 1.0], np.float32)  # six joints in rad, and the open gripper
REACHED = np.array([0.4, -0.2, 0.5, 0.1, 0.2, 0.0, 0.0], np.float32)


def pictures(lamp: int | None, reach: np.ndarray) -> dict[str, np.ndarray]:
    """Camera -> uint8 [H, W, 3]. lamp: the arm that it shows; reach: how far each arm has reached, from 0 to 1."""
    images = {name: np.full((SIZE_PX, SIZE_PX, 3), 40, np.uint8) for name in CAMERAS}
    for arm, name in enumerate(CAMERAS[1:]):
        bar = int(8 + 48 * reach[arm])
        images[name][SIZE_PX - bar :, 20:44] = (200, 200, 220)
        images["cam_high"][SIZE_PX - bar // 2 :, 8 + 32 * arm : 24 + 32 * arm] = (200, 200, 220)
    if lamp is not None:
        images["cam_high"][:10, 32 * lamp : 32 * lamp + 32] = (255, 200, 0)
    return images


def write_episode(folder: Path, seed: int) -> None:
    """The arms stand still while the lamp is lit, and then one of them reaches out and closes its gripper."""
    rng = np.random.default_rng(seed)
    arm = int(rng.integers(2))
    offset = rng.normal(0, 0.05, 14).astype(np.float32)
    cameras = {name: (SIZE_PX, SIZE_PX) for name in CAMERAS}
    label = f"reach out with the {SIDES[arm]} arm"
    state, reach = np.tile(REST, 2) + offset, np.zeros(2)
    with EpisodeWriter(episode_path(folder, "TwoArms", seed), "my-robot", "TwoArms", seed, HZ, cameras) as writer:
        for step in range(STEPS):
            images = pictures(arm if step < CUE else None, reach)
            reach[arm] = np.clip((step - CUE) / (STEPS - CUE - 20), 0, 1)
            target = np.tile(REST, 2) + offset
            target[7 * arm : 7 * arm + 7] += np.float32(reach[arm]) * (REACHED - REST)
            writer.add(images, state, target)
            state = target  # an arm of the real world would lag behind
        spans = (SubtaskSpan(0, CUE, "watch the lamp"), SubtaskSpan(CUE, STEPS, label))
        instruction = "Reach out with the arm that the lamp shows."
        writer.finish(instruction, success=True, subtasks=spans, keyframes=[CUE - 1], goal=label)


if __name__ == "__main__":
    for seed in range(1000, 1020):
        write_episode(Path(sys.argv[1]), seed)
