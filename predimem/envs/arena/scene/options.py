"""What an environment of the arena can be asked for; each fault as one sentence."""

from __future__ import annotations

from typing import Any

import torch
from mani_skill.envs.utils.observations import parse_obs_mode_to_struct
from mani_skill.envs.utils.system.backend import CPU_SIM_BACKENDS

from predimem.envs.arena.scene import backends

CONTROL_MODES = ("pd_ee_delta_pose", "pd_joint_pos")


def check_options(obs_mode: str, control_mode: str, image_px: int, num_envs: int, sim_backend: str) -> None:
    """Raises ValueError for the first option that cannot be had."""
    if control_mode not in CONTROL_MODES:
        raise ValueError(f"control_mode is one of {', '.join(CONTROL_MODES)}, not {control_mode!r}")
    if obs_mode not in (*backends.BLIND_OBS_MODES, "sensor_data"):
        textures(obs_mode)
    if image_px < 1:
        raise ValueError(f"image_px is the cameras' width and height in pixels, 1 or more, not {image_px!r}")
    if num_envs < 1:
        raise ValueError(f"num_envs is the number of worlds, 1 or more, not {num_envs!r}")
    if num_envs > 1 and (sim_backend in CPU_SIM_BACKENDS or not torch.cuda.is_available()):
        raise ValueError(
            f"num_envs={num_envs} needs PhysX on a CUDA GPU (sim_backend 'auto' or 'gpu'), and this is sim_backend "
            f"{sim_backend!r} with{'' if torch.cuda.is_available() else 'out'} such a GPU: on a CPU take one process "
            "for each environment, such as gymnasium.vector.AsyncVectorEnv"
        )


def textures(mode: str) -> Any:
    """What of a camera's images a mode asks for. Raises ValueError if it is none."""
    try:
        visual = parse_obs_mode_to_struct(mode).visual
    except AssertionError:
        visual = None
    if visual is None or not any(vars(visual).values()):
        raise ValueError(
            f"unknown mode {mode!r}: there are {', '.join(backends.BLIND_OBS_MODES)} (no images), rgb, rgbd, "
            "pointcloud, and rgb, depth, segmentation, position, normal, albedo joined by '+'"
        )
    return visual
