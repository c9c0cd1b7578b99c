"""Labels for the actor: what a family's controller would do next for each subtask, done or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predimem.core.episodes import Alternatives
from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.motion import ACTION_DIM

CHUNK_STEPS = 8


def chunk(family: Family, state: State, subtask: str) -> np.ndarray:
    """float32 [8, 7]: the next actions for a subtask, rolled out in the family's kinematic model."""
    actions = []
    for _ in range(CHUNK_STEPS):
        action = family.act(state, subtask)
        actions.append(action)
        state = family.advance(state, action)
    return np.stack(actions).astype(np.float32)


def alternatives(family: Family, states: Sequence[State], subtasks: Sequence[str]) -> Alternatives:
    """What the controller would do at each of T states for each of K subtasks; states: with their cameras.

    Where a subtask is not valid, its chunk is nevertheless what `act` says.
    """
    cameras = tuple(states[0]["cameras"])
    shape = (len(states), len(subtasks))
    chunks = np.zeros((*shape, CHUNK_STEPS, ACTION_DIM), np.float32)
    valid = np.zeros(shape, bool)
    targets_m = np.full((*shape, 3), np.nan, np.float32)
    pixels = np.full((*shape, len(cameras), 2), np.nan, np.float32)
    for t, state in enumerate(states):
        for k, subtask in enumerate(subtasks):
            chunks[t, k] = chunk(family, state, subtask)
            valid[t, k] = family.valid(state, subtask)
            target = family.target_m(state, subtask) if valid[t, k] else None
            if target is None:
                continue
            targets_m[t, k] = target - state["base_m"]
            for c, name in enumerate(cameras):
                pixels[t, k, c] = project(target, state["cameras"][name], state["image_size"][name])
    return Alternatives(tuple(subtasks), chunks, valid, targets_m, pixels)


def project(point_m: np.ndarray, matrix: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(u, v) of a world point as fractions of width and height, NaN where it is not in the image.

    matrix: [3, 4] from world metres to pixels. What hides the point is not looked at.
    """
    u, v, depth = matrix @ np.append(point_m, 1.0)
    if not depth > 0:
        return np.full(2, np.nan)
    fraction = np.array([u, v]) / depth / np.asarray(size)
    return fraction if bool(((fraction >= 0) & (fraction < 1)).all()) else np.full(2, np.nan)
