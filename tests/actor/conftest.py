"""Hand-made episodes: coloured squares on a grey table, and the chunks that lead to each of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}
CAMERAS = ("base_camera", "hand_camera")
STEPS, HORIZON, APPEAR = 6, 4, 2
INSTRUCTION = "Observe the square's colour, wait, then touch the square of the same colour."


def make_episode(seed: int, size: int = 128) -> Episode:
    """Squares appear at step APPEAR; an action is the way from the gripper's (x, y) to the square."""
    rng = np.random.default_rng(seed)
    names = list(COLOURS)
    subtasks = ("wait", *(f"touch the {name} square" for name in names))
    cells = rng.choice(16, size=len(names), replace=False)
    places = (np.stack([cells % 4, cells // 4], -1) + rng.uniform(0.3, 0.7, (len(names), 2))) / 4
    gripper = rng.uniform(0.2, 0.8, size=(STEPS, 2)).astype(np.float32)
    images = np.full((STEPS, size, size, 3), 120, np.uint8)
    half = size // 16
    for name, (u, v) in zip(names, places, strict=True):
        x, y = int(u * size), int(v * size)
        images[APPEAR:, y - half : y + half, x - half : x + half] = COLOURS[name]
    state = np.zeros((STEPS, 7), np.float32)
    state[:, :2] = gripper
    hold = np.array([0, 0, 0, 0, 0, 0, -1], np.float32)
    chunks = np.tile(hold, (STEPS, len(subtasks), HORIZON, 1))
    chunks[APPEAR:, 1:, :, :2] = (places[None] - gripper[APPEAR:, None])[:, :, None]
    targets_m = np.full((STEPS, len(subtasks), 3), np.nan, np.float32)
    targets_m[APPEAR:, 1:] = np.concatenate([places, np.full((len(names), 1), 0.02)], -1)
    pixels = np.full((STEPS, len(subtasks), len(CAMERAS), 2), np.nan, np.float32)
    pixels[APPEAR:, 1:, 0] = places
    valid = np.ones((STEPS, len(subtasks)), bool)
    valid[:APPEAR, 1:] = False
    goal = int(rng.integers(len(names)))
    return Episode(
        benchmark="squares",
        task="Squares",
        seed=seed,
        instruction=INSTRUCTION,
        control_hz=20.0,
        success=True,
        images={"base_camera": images, "hand_camera": np.full_like(images, 60)},
        state=state,
        actions=np.where(np.arange(STEPS)[:, None] < APPEAR, hold, chunks[:, 1 + goal, 0]),
        subtasks=(SubtaskSpan(0, APPEAR, "wait"), SubtaskSpan(APPEAR, STEPS, subtasks[1 + goal])),
        keyframes=(0,),
        goal=subtasks[1 + goal],
        alternatives=Alternatives(subtasks, chunks, valid, targets_m, pixels),
    )


def save_episodes(root: Path, seeds: range) -> Path:
    for seed in seeds:
        save_episode(episode_path(root, "Squares", seed), make_episode(seed))
    return root


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_episodes(tmp_path_factory.mktemp("squares"), range(1000, 1012))
