"""What the readers of a scene ask of the environment that owns it."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from predimem.envs.arena.progress import Progress
from predimem.envs.arena.task import Task


class ArenaSimulation(Protocol):
    """The parts of `ArenaEnv` that reading, saving and mats use, for N worlds.

    objects, fixtures, mats: name -> what ManiSkill built.
    table_pose: [N, 7].
    rest_bottom_m: [N, objects].
    agent, scene: ManiSkill's own.
    visitor: a `visitor.Visitor`, or None where nothing happens without the robot.
    """

    task: Task
    progress: Progress
    objects: dict[str, Any]
    fixtures: dict[str, Any]
    mats: dict[str, Any]
    table_pose: Tensor
    rest_bottom_m: Tensor
    agent: Any
    scene: Any
    visitor: Any

    @property
    def device(self) -> torch.device: ...

    @property
    def num_envs(self) -> int: ...

    @property
    def control_freq(self) -> int: ...

    @property
    def elapsed_steps(self) -> Tensor: ...

    @property
    def gpu_sim_enabled(self) -> bool: ...
