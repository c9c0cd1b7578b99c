"""A whole episode of the arena, played by the oracle in the real simulator, with few images."""

from __future__ import annotations

from typing import Any

import numpy as np

import predimem.envs.arena
from datagen.demos.record import spans
from datagen.experts.scripted.solver import OracleSolver
from datagen.export.arena_state import OPENING, POSITION
from datagen.keyframes import extract_keyframes
from predimem.core.episodes import Episode
from predimem.core.frames import Frames
from predimem.envs.arena.suite import CONTROL_HZ, ArenaEnvironment
from predimem.envs.arena.tasks import task_of


def play_oracle(task: int | str = 18, seed: int = 1000, px: int = 96, look_every: int = 20) -> Episode:
    """Until the task is done, in `pd_joint_pos`; the subtask spans are those of the stages."""
    options: dict[str, Any] = {
        "obs_mode": "none",
        "control_mode": "pd_joint_pos",
        "sim_backend": "cpu",
        "render_backend": "auto",
    }
    environment = ArenaEnvironment(predimem.envs.arena.make(task, image_px=px, **options), camera_every=look_every)
    observation = environment.reset(seed)
    variant = environment.simulation.variant()
    solver = OracleSolver(environment.simulation)
    observations, actions, stages, success = [], [], [], False
    while not success:
        stages.append(int(environment.simulation.progress.stage[0]))
        observations.append(observation)
        actions.append(solver.action())
        result = environment.step(actions[-1])
        observation, success = result.observation, result.success
        assert not (result.terminated or result.truncated) or success
    environment.close()
    state = np.stack([o.state for o in observations])
    return Episode(
        benchmark="arena",
        task=task_of(task).name,
        seed=seed,
        instruction=variant.instruction,
        control_hz=CONTROL_HZ,
        success=success,
        images={name: Frames(np.stack([o.images[name] for o in observations])) for name in observations[0].images},
        state=state,
        actions=np.stack(actions),
        subtasks=spans([variant.subtasks[min(k, len(variant.subtasks) - 1)].label for k in stages]),
        keyframes=extract_keyframes(state[:, POSITION], state[:, OPENING], CONTROL_HZ),
        metadata={"spans_memory": [subtask.memory or "" for subtask in variant.subtasks]},
    )
