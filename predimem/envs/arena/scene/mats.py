"""Mats in drawers: a mat is an image, held by nothing, so it has to be carried along when its drawer moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from mani_skill.utils.structs import Pose

from predimem.envs.arena.fixtures import DRAWERS, PLACES, mat_offset_m
from predimem.envs.arena.scene.reading import raw_pose

if TYPE_CHECKING:
    from predimem.envs.arena.scene.simulation import ArenaSimulation


def carry_mats(env: ArenaSimulation) -> None:
    """Put the mats that mark a place in a drawer to where that drawer is now, in all N worlds."""
    carried = [place for place in env.mats if PLACES[place].frame in DRAWERS]
    for place in carried:
        spec, mat = PLACES[place], env.mats[place]
        marked = torch.tensor([place in v.mats for v in env.task.variants], device=env.device)[env.progress.variant]
        drawer = raw_pose(env.fixtures["cabinet"].links_map[spec.frame])[:, :3]
        point = drawer + torch.tensor([*mat_offset_m(place), 0.0], device=env.device)
        point += torch.tensor(spec.centre_m, device=env.device)
        now = raw_pose(mat)
        mat.set_pose(Pose.create_from_pq(torch.where(marked[:, None], point, now[:, :3]), now[:, 3:]))
    if carried and env.gpu_sim_enabled:
        physics: Any = env.scene.px
        physics.gpu_apply_rigid_dynamic_data()  # not the joints' data, which would undo this step's targets
