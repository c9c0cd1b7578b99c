"""Things that come out again: what was put where it belongs lies on the table once more, as if it had fallen out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from datagen.dagger.config import DisturbanceConfig
from datagen.dagger.faulty_policy import Event, steps_of
from predimem.envs.arena.fixtures import JOINTS, PLACES
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.predicates import Opened
from predimem.envs.arena.scene.path import free_table_point_m
from predimem.envs.arena.subtasks import Skill

AFTER_S = (0.5, 3.0)  # of its being placed
GIVE_UP_STEPS = 40  # later it stays where it is
ROOM_M = 0.15  # from the gripper, both where it was and where it comes to lie
ABOVE_M = 0.002


class CameOut:
    """Moves things in one episode. Nothing comes out of what is shut, and nothing that is in the gripper's reach.

    events: what came out so far.
    """

    def __init__(self, env: Any, config: DisturbanceConfig, rng: np.random.Generator):
        """env: an `ArenaEnv` of one world that has been reset."""
        self._env, self._share, self._rng = env, config.came_out_share, rng
        self._stage = 0
        self._pending: tuple[int, int] | None = None  # (from which control step on, the stage that is undone)
        self.events: list[Event] = []

    def before_step(self, step: int) -> None:
        """To be called before each control step."""
        stage = int(self._env.progress.stage[0])
        passed, self._stage = self._stage, stage
        if stage > passed and self._comes_out(stage - 1):
            self._pending = step + steps_of(AFTER_S, self._rng), stage - 1
        if self._pending is None or step < self._pending[0]:
            return
        moved = self._move(self._pending[1])
        if moved:
            self.events.append(Event("came out", step, step + 1))
        if moved or step >= self._pending[0] + GIVE_UP_STEPS:
            self._pending = None

    def _comes_out(self, stage: int) -> bool:
        variant = self._env.variant()
        subtask, lasts = variant.subtasks[stage], variant.lasting[stage] is not None
        can = lasts and subtask.skill is Skill.PLACE and subtask.target != "table"
        return bool(self._share) and can and bool(self._rng.random() < self._share)

    def _move(self, stage: int) -> bool:
        """False where it cannot be done now."""
        import sapien
        import torch

        env, subtask, world = self._env, self._env.variant().subtasks[stage], self._env.world()
        tcp_m = world.tcp_m[0].numpy()
        at = {name: world.position_m[name][0].numpy() for name in env.task.objects}
        joint = PLACES[subtask.target].frame
        if joint in JOINTS and not bool(Opened(joint)(world)[0]):
            return False
        if float(np.linalg.norm(at[subtask.object] - tcp_m)) < ROOM_M:
            return False
        others = [point[:2] for name, point in at.items() if name != subtask.object]

        def clear(point: np.ndarray) -> bool:
            return float(np.linalg.norm(point[:2] - tcp_m[:2])) >= ROOM_M

        floor = free_table_point_m(others, env.settings[0].layout.fixtures, clear, self._rng)
        if floor is None:
            return False
        half_turn = self._rng.uniform(-math.pi, math.pi) / 2
        position_m = np.add(floor, [0.0, 0.0, OBJECTS[subtask.object].half_height_m + ABOVE_M])
        thing = env.objects[subtask.object]
        thing.set_pose(sapien.Pose(list(position_m), [math.cos(half_turn), 0.0, 0.0, math.sin(half_turn)]))
        thing.set_linear_velocity(torch.zeros(1, 3))
        thing.set_angular_velocity(torch.zeros(1, 3))
        return True
