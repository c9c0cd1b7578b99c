"""Makes images of scenes with what they show: one episode of independent frames for each task and seed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from datagen.actor_data.starts import draw_gripper, write
from datagen.environments import arena_environment, varied
from datagen.experts.scripted.snapshot import Snapshot
from datagen.vision_data.config import VisionDataConfig
from datagen.vision_data.ghost import GhostArm
from datagen.vision_data.show import Shown, facts_of, show
from datagen.vision_data.states import as_left, of_motion, scramble
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.scene_facts import KEY
from predimem.jobs.tasks import Job, Outcome

DRAWS = 6  # for each frame, at most: some cannot be reached


class VisionDataWorker:
    """A `predimem.jobs.tasks.Worker`."""

    def __init__(self, config: VisionDataConfig):
        import torch

        torch.set_num_threads(1)
        self._config = config
        self._environment = arena_environment(config)

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        env = self._environment.of(job.task)
        env.reset(seed=job.seed)
        shown = draw_scenes(env, self._config, np.random.default_rng([job.seed, env.task.task_id]))
        cause = "" if shown else "nothing within reach"
        if shown:
            save_episode(episode_path(self._config.out, job.task, job.seed), episode_of(shown, env, job))
        return Outcome(job.task, job.seed, bool(shown), cause, len(shown), round(time.perf_counter() - began_s, 3))

    def close(self) -> None:
        self._environment.close()


def draw_scenes(env: Any, config: VisionDataConfig, rng: np.random.Generator) -> list[Shown]:
    """`config.frames` independent states of the scene of an `ArenaEnv` that was reset; fewer if few are reached."""
    arm, fresh, subtasks = GhostArm(env), Snapshot.of(env), env.variant().subtasks
    shown: list[Shown] = []
    for _ in range(DRAWS * config.frames):
        if len(shown) >= config.frames:
            break
        kind, stage, scene = rng.random(), int(rng.integers(len(subtasks) + 1)), fresh.copy()
        before = subtasks[stage - 1] if stage else None
        held = as_left(scene, subtasks[:stage], rng)
        if kind < config.motion_share and stage < len(subtasks):
            states = of_motion(scene, arm, held, before, subtasks[stage], rng)
        else:
            if kind > 1 - config.scramble_share:
                held, before = "", None
                scramble(scene, env.task, rng)
            states = [(scene, draw_gripper(scene, arm, held, before, rng))]
        fresh.adopt_grasps(scene)  # finding them takes long
        label = subtasks[min(stage, len(subtasks) - 1)].label
        for state, gripper in states[: config.frames - len(shown)]:
            if write(env, arm, state, gripper):
                shown.append(show(env, state, gripper, label))
    return shown


def episode_of(shown: list[Shown], env: Any, job: Job) -> Episode:
    """An episode whose steps are independent frames; its control rate is 0."""
    return Episode(
        benchmark="arena",
        task=job.task,
        seed=job.seed,
        instruction=env.variant().instruction,
        control_hz=0.0,
        success=True,
        images={name: np.stack([s.images[name] for s in shown]) for name in shown[0].images},  # type: ignore[arg-type]
        state=np.stack([s.state for s in shown]),
        actions=np.zeros((len(shown), 7), np.float32),
        subtasks=tuple(SubtaskSpan(t, t + 1, s.subtask) for t, s in enumerate(shown)),
        keyframes=(),
        metadata={"kind": "scenes", KEY: facts_of(shown, env.task.objects).as_json(), **varied(env)},
    )
