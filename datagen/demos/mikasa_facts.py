"""What the images of a demonstration of MIKASA show, for the training of the planner's tower."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predimem.core.scene_facts import SceneFacts
from predimem.envs.mikasa.families.family import Family, State
from predimem.envs.mikasa.families.rollout import project

ON_TABLE = "table"
GRIPPER = "gripper"
GRIPPER_MAX_M = 0.08


def facts_of(family: Family, states: Sequence[State]) -> SceneFacts:
    """The facts of T states with their cameras, those of which there are images. What the arm hides counts as seen."""
    shown = [family.things(state) for state in states]
    names = tuple(sorted({name for things in shown for name in things}))
    cameras = tuple(states[0]["cameras"])
    pixels = np.full((len(states), len(names), len(cameras), 2), np.nan, np.float32)
    for t, (state, things) in enumerate(zip(states, shown, strict=True)):
        for name, position in things.items():
            for c, camera in enumerate(cameras):
                matrix, size = state["cameras"][camera], state["image_size"][camera]
                pixels[t, names.index(name), c] = project(position, matrix, size)
    return SceneFacts(
        objects=names,
        places=((ON_TABLE,) * len(names),) * len(states),
        pixels=pixels,
        mats=("",) * len(states),
        mat_pixels=np.full((len(states), len(cameras), 2), np.nan, np.float32),
        held=("",) * len(states),
        joints=(GRIPPER,),
        openings=np.array([[state["gripper_m"] / GRIPPER_MAX_M] for state in states], np.float32),
    )
