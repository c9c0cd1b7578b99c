"""Episodes of one's own robot as PrediMem's files: `python examples/write_episodes.py runs/data/lamp`.

The robot here is made up: its gripper slides to the drawer that a lamp shows for half a second. docs/guides/own-data.md
says what the parts mean.
"""

import sys
from pathlib import Path

import numpy as np

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import EpisodeWriter
from predimem.core.episodes import SubtaskSpan

HZ, CUE, STEPS, SIZE_PX = 20.0, 10, 40, 64
SUBTASKS = ("open left drawer", "open right drawer")


def picture(lamp: int | None, x: float) -> np.ndarray:
    """uint8 [H, W, 3]: the lamp (0 left, 1 right, None off) and the gripper at x in [0, 1]."""
    image = np.zeros((SIZE_PX, SIZE_PX, 3), np.uint8)
    if lamp is not None:
        image[:12, lamp * SIZE_PX // 2 : (lamp + 1) * SIZE_PX // 2] = (255, 200, 0)
    column = int(x * (SIZE_PX - 6))
    image[44:50, column : column + 6] = 255
    return image


def write_episode(folder: Path, seed: int) -> None:
    """One episode. Seeds from 900,000 are for evaluation, and are refused when a training reads them."""
    side = int(np.random.default_rng(seed).integers(2))
    path, x = episode_path(folder, "LampDrawer", seed), 0.5
    with EpisodeWriter(path, "my-robot", "LampDrawer", seed, HZ, {"front": (SIZE_PX, SIZE_PX)}) as writer:
        for step in range(STEPS):
            speed = 0.0 if step < CUE else 0.012 * (2 * side - 1)
            image = picture(side if step < CUE else None, x)
            writer.add({"front": image}, state=np.array([x]), action=np.array([speed]))
            x += speed
        spans = (SubtaskSpan(0, CUE, "watch"), SubtaskSpan(CUE, STEPS, SUBTASKS[side]))
        instruction = "Open the drawer that the lamp shows."
        writer.finish(instruction, success=True, subtasks=spans, keyframes=[CUE - 1], goal=SUBTASKS[side])


if __name__ == "__main__":
    for seed in range(1000, 1012):
        write_episode(Path(sys.argv[1]), seed)
