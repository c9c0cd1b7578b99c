"""Makes docs/gallery.md: one image of every task of the arena, from the middle of an episode of the oracle.

    python benchmarks/arena_gallery.py [--seed 0] [--tasks 4,10]

Images go to docs/images/arena/ (both cameras side by side, JPEG). With --tasks only their images are
made anew; the page is always written for all tasks. About ten seconds a task.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from predimem.core.types import EpisodeResult, Observation, StepResult, Tick
from predimem.envs.arena.task import CATEGORIES, Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig

DOCS = Path(__file__).parents[1] / "docs"
IMAGE_PX = 256
QUALITY = 80

HEAD = """# Gallery of the arena

Both cameras in the middle of an episode of the oracle agent, seed {seed}; made by
`python benchmarks/arena_gallery.py`. What there is to remember in each task: [the tasks](arena-tasks.md); how to
play one and film it: [the arena](guides/arena.md).
"""


class Snapshots:
    """A Subscriber. `images`: what the cameras saw every so many steps, in order."""

    every_steps = 40

    def __init__(self) -> None:
        self.images: list[np.ndarray] = []

    def on_reset(self, observation: Observation, instruction: str, episode_id: str) -> None:
        pass

    def on_step(self, observation: Observation, action: np.ndarray, tick: Tick, result: StepResult) -> None:
        if observation.step % self.every_steps == 0:
            self.images.append(np.concatenate(list(observation.images.values()), axis=1))

    def on_end(self, result: EpisodeResult) -> None:
        pass


def image_path(task: Task) -> Path:
    return DOCS / "images" / "arena" / f"{task.task_id:02d}.jpg"


def take_picture(player: BenchmarkPlayer, task: Task, seed: int) -> None:
    """Raises RuntimeError for an episode that crashed; one that failed is an image like any other."""
    snapshots = Snapshots()
    result = player.play(task.name, "oracle", seed, [snapshots])
    if result.status == "error":
        raise RuntimeError(f"{task.name}: {result.message}")
    middle = snapshots.images[len(snapshots.images) // 2]
    image_path(task).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(middle).save(image_path(task), quality=QUALITY, optimize=True)


def page(seed: int) -> str:
    parts = [HEAD.format(seed=seed)]
    for category in CATEGORIES:
        parts.append(f"## {category.capitalize()}\n")
        for task in TASKS:
            if task.category == category:
                image = image_path(task).relative_to(DOCS).as_posix()
                parts.append(f"**{task.task_id} {task.title}** (`{task.name}`)\n\n![{task.title}]({image})\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", default="", help="numbers or names, comma-separated; default: all")
    arguments = parser.parse_args()
    tasks = [task_of(key) for key in arguments.tasks.split(",") if key] or TASKS
    with closing(BenchmarkPlayer(PlayConfig("arena", {"image_px": IMAGE_PX}))) as player:
        for task in tqdm(tasks, unit="task"):
            take_picture(player, task, arguments.seed)
    (DOCS / "gallery.md").write_text(page(arguments.seed))
    size = sum(path.stat().st_size for path in image_path(TASKS[0]).parent.glob("*.jpg"))
    print(f"{DOCS / 'gallery.md'}: images of {size / 1024:.0f} KiB in all")


if __name__ == "__main__":
    main()
