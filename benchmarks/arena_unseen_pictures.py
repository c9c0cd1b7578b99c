"""Makes the pictures of docs/guides/arena-unseen.md: the first image of an episode in each condition.

    python -m benchmarks.arena_unseen_pictures [--task 7] [--seed 900003]

One small JPEG for each condition that is seen goes to docs/images/arena-unseen/; about ten seconds each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from predimem.envs.arena import make
from predimem.envs.arena.unseen.conditions import CONDITIONS

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "arena-unseen"
DRAWN_PX, SHOWN_PX = 384, 192  # drawn larger, which smooths the edges
QUALITY = 80
UNSEEN_BY_CAMERAS = ("instructions",)


def take_picture(task: str, condition: str, seed: int) -> Path:
    env = make(task, condition=condition, obs_mode="none", render_backend="auto", image_px=DRAWN_PX)
    try:
        env.reset(seed=seed)
        pixels = env.unwrapped.observe(cameras=["agentview_rgb"])["agentview_rgb"]["rgb"][0].numpy()  # type: ignore[attr-defined]
    finally:
        env.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{condition}.jpg"
    small = Image.fromarray(pixels).resize((SHOWN_PX, SHOWN_PX), Image.Resampling.LANCZOS)
    small.save(path, quality=QUALITY, optimize=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="7", help="number or name")
    parser.add_argument("--seed", type=int, default=900_003)
    arguments = parser.parse_args()
    for condition in CONDITIONS:
        if condition not in UNSEEN_BY_CAMERAS:
            print(take_picture(arguments.task, condition, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
