"""Makes states and roll-outs with the expert's labels: one episode for each task and seed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.labelled import Labelled, episode_of, look
from datagen.actor_data.own_chunks import OwnChunks, load_actors
from datagen.actor_data.rollouts import MakePolicy, Relabel, Rollout, play, start
from datagen.actor_data.starts import draw_gripper, draw_stage, hold_askew, leave, miss, try_before, wander, write
from datagen.environments import arena_environment, varied
from datagen.experts.scripted.snapshot import Snapshot
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.types import Observation
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.envs.arena.subtasks import Subtask
from predimem.jobs.tasks import Job, Outcome


class ActorDataWorker:
    """A `predimem.jobs.tasks.Worker`."""

    def __init__(self, config: ActorDataConfig, make_policy: MakePolicy | None = None):
        """make_policy: of the actor that plays roll-outs; None for the expert."""
        import torch

        torch.set_num_threads(1)
        self._config = config
        self._policy = make_policy() if make_policy else None
        self._relabel: Relabel | None = None
        if config.policy is not None:
            self._policy, own = load_actors(config.policy)
            self._relabel = OwnChunks(own, config.expert_labels, config.chunk_steps)
        self._environment = arena_environment(config)

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        report: dict[str, Any] = {}
        rng = np.random.default_rng([job.seed, self._environment.of(job.task).task.task_id])
        if self._config.sampling == "frames":
            frames = self.frames(job, rng)
        else:
            rollout = self.rollout(job, rng)
            frames, report["attempts"] = rollout.frames, attempts_of(rollout)
        if frames:
            env = self._environment.of(job.task)
            metadata = {"kind": self._config.sampling, "learned": self._policy is not None, **report, **varied(env)}
            hz = CONTROL_HZ / self._config.execute_steps if self._config.sampling == "rollouts" else 0.0
            episode = episode_of(frames, job.task, job.seed, env.variant().instruction, hz, metadata)
            save_episode(episode_path(self._config.out, job.task, job.seed), episode)
        cause = "the actor failed at what it labels itself" if report.get("attempts") else "no subtask to start with"
        seconds = round(time.perf_counter() - began_s, 3)
        return Outcome(job.task, job.seed, bool(frames), "" if frames else cause, len(frames), seconds, report)

    def close(self) -> None:
        self._environment.close()

    def frames(self, job: Job, rng: np.random.Generator) -> list[Labelled]:
        """Independent states of the scene of a job."""
        env, arm = self._reset(job)
        subtasks = env.variant().subtasks
        fresh, frames = Snapshot.of(env), []
        for _ in range(3 * self._config.frames):
            stage = self._stage(subtasks, rng)
            if stage is None:
                break
            scene = fresh.copy()
            held = leave(scene, subtasks[:stage], rng)
            gripper = draw_gripper(scene, arm, held, subtasks[stage - 1] if stage else None, rng)
            try_before(scene, gripper, subtasks[stage], rng)
            gripper = wander(gripper, scene, arm, subtasks[stage], rng)
            hold_askew(gripper, scene, rng)
            miss(gripper, scene, subtasks[stage], rng)
            if write(env, arm, scene, gripper):
                fresh.adopt_grasps(scene)
                frame = look(env, arm, subtasks[stage], self._config.chunk_steps, fresh, rng)
                if self._relabel is not None:
                    frame.chunks.update(self._relabel(Observation(0, frame.images, frame.state, 0.0), frame.motions))
                frames.append(frame)
            if len(frames) == self._config.frames:
                break
        return frames

    def _stage(self, subtasks: Sequence[Subtask], rng: np.random.Generator) -> int | None:
        config = self._config
        if config.hard_share and rng.random() < config.hard_share:
            stage = draw_stage(subtasks, config.hard_skills, rng)
            if stage is not None:
                return stage
        return draw_stage(subtasks, config.skills, rng)

    def rollout(self, job: Job, rng: np.random.Generator) -> Rollout:
        """One short episode in physics."""
        env, _ = self._reset(job)
        config = self._config
        driver = self._driver
        stage = start(env, driver, config.skills, rng)
        if stage is None:
            return Rollout()
        return play(
            env,
            driver,
            stage,
            env.variant().subtasks,
            self._policy,
            rng,
            chunk_steps=config.chunk_steps,
            execute_steps=config.execute_steps,
            latency_steps=config.latency_steps,
            subtask_steps=config.subtask_steps,
            after_steps=config.after_steps,
            chain=bool(rng.random() < config.chain_share),
            noise=config.noise,
            expert_share=config.expert_share,
            relabel=self._relabel,
        )

    def _reset(self, job: Job) -> tuple[Any, Any]:
        from predimem.envs.arena.robot.delta_pose import Driver

        env = self._environment.of(job.task)
        env.reset(seed=job.seed)
        self._driver = Driver(env)
        return env, self._driver.arm


def attempts_of(rollout: Rollout) -> list[dict[str, Any]]:
    """What was tried, as JSON data."""
    return [
        {"subtask": a.subtask.label, "skill": a.subtask.skill.value, "target": a.subtask.target, "done": a.done,
         "steps": a.steps}
        for a in rollout.attempts
    ]  # fmt: skip
