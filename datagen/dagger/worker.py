"""Makes one DAgger episode after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from datagen.dagger.agent import make_agent
from datagen.dagger.came_out import CameOut
from datagen.dagger.config import DisturbanceConfig, PlannerDaggerConfig
from datagen.dagger.faulty_policy import FaultyPolicy
from datagen.dagger.labels import SubtaskLabeller
from datagen.dagger.low_level_policy import make_low_level_policy
from datagen.dagger.perturbed_planner import PerturbedOracle, PlannerOrOracle, SubtaskSource
from datagen.dagger.recorder import DaggerRecorder
from datagen.dagger.visits import SeenVisits
from datagen.environments import arena_environment, varied
from datagen.execution.timing import Stopwatch
from predimem.agent.config import NO_MEMORY, SKILLS
from predimem.core.episode_folder import episode_path
from predimem.core.interfaces import Policy
from predimem.core.types import Observation, Tick
from predimem.envs.arena.scene.environment import CONTROL_HZ
from predimem.jobs.tasks import Job, Outcome

CALM = DisturbanceConfig(
    late_share=0.0, waits_on_share=0.0, premature_share=0.0, wrong_per_minute=0.0, pauses_per_minute=0.0,
    missed_share=0.0, dropped_share=0.0, came_out_share=0.0,
)  # fmt: skip
STREAM = 37  # of random numbers, for what comes out again
MOST_HORIZONS = 3  # an episode in which things come undone again and again ends after so many times the task's horizon


class DaggerWorker:
    """A `predimem.jobs.tasks.Worker`. It keeps its environment and its models."""

    def __init__(self, config: PlannerDaggerConfig, planner: Any = None, policy: Policy | None = None):
        """planner: the one that drives, with a `spec`, as `load_planner` gives it; None for the oracle planner.
        policy: the learned low-level policy that acts; None for a scripted one.
        """
        import torch

        torch.set_num_threads(1)
        self._config, self._planner, self._policy = config, planner, policy
        self._environment = arena_environment(config, config.control_mode)

    def close(self) -> None:
        self._environment.close()

    def play(self, job: Job) -> Outcome:
        """Every episode is kept, because its labels are right, however it ended."""
        start, watch = time.perf_counter(), Stopwatch()
        with watch.stage("reset"):
            env = self._environment.of(job.task)
            env.reset(seed=job.seed)
        recorder = DaggerRecorder(env, episode_path(self._config.out, job.task, job.seed), job.seed)
        try:
            report = _Episode(self._config, env, self._planner, self._policy, job, watch).play(recorder)
        finally:
            recorder.close()
        seconds = time.perf_counter() - start
        rest = seconds - sum(watch.seconds.values())
        report["stage_seconds"] = {**{k: round(v, 3) for k, v in watch.seconds.items()}, "rest": round(rest, 3)}
        return Outcome(job.task, job.seed, True, "", len(recorder), round(seconds, 3), report)


class _Episode:
    """One episode in an environment that has been reset."""

    def __init__(
        self,
        config: PlannerDaggerConfig,
        env: Any,
        planner: Any,
        policy: Policy | None,
        job: Job,
        watch: Stopwatch,
    ):
        self._config, self._env, self._watch = config, env, watch
        self._episode_id = f"{job.task}/{job.seed}/dagger"
        rng = np.random.default_rng([job.seed, env.task.task_id])
        disturbed = bool(rng.random() >= config.disturbances.undisturbed_share)
        disturbances = config.disturbances if disturbed else CALM
        tracked = make_low_level_policy(env, config, policy)
        if config.low_level_policy != SKILLS:  # the expert would wait for fingers that do not close
            disturbances = replace(disturbances, missed_share=0.0)
        self._faulty = FaultyPolicy(env, tracked, disturbances, rng.spawn(1)[0])
        self._came_out = CameOut(env, disturbances, np.random.default_rng([job.seed, env.task.task_id, STREAM]))
        self._visits = SeenVisits(env)
        self._labeller = SubtaskLabeller(env, tracked)
        self._labels = tuple(subtask.label for subtask in env.variant().subtasks)
        self._learned = planner is not None
        self._source: SubtaskSource
        if planner is None:
            self._source = PerturbedOracle(env, tracked, disturbances, rng)
        else:
            self._source = PlannerOrOracle(planner, self._labels, config.oracle_spells, rng)
        memory = NO_MEMORY if planner is None else planner.spec.memory
        self._agent = make_agent(config, self._source, self._faulty, memory, tracked.arm.action())
        self._look_every = config.image_every
        if policy is not None:
            self._look_every = math.gcd(config.image_every, config.actor_camera_every)
        self._images: Mapping[str, np.ndarray] = {}
        self._spoken: list[tuple[int, str]] = []
        self._nominated: list[tuple[int, int]] = []  # (when the planner's answer arrived, which step it nominated)

    def play(self, recorder: DaggerRecorder) -> dict[str, Any]:
        """To its end; what became of it, as JSON data."""
        try:
            ended, success = self._run(recorder)
        finally:
            self._agent.close()
        happened = (*self._source.events, *self._faulty.events, *self._came_out.events, *self._visits.events)
        events = [asdict(event) for event in happened]
        report = {"ended": ended, "stages": int(self._env.progress.stage[0]), "events": len(events)}
        metadata = {
            "control_mode": self._config.control_mode,
            "driver": self._config.driver,
            "low_level_policy": self._config.low_level_policy,
            "ended": ended,
            "events": sorted(events, key=lambda event: event["start"]),
            "spoken": self._spoken,
            **varied(self._env),
        }
        if self._learned:
            metadata["nominated_steps"] = [step for _, step in self._nominated]
            metadata["nominated_at"] = [at for at, _ in self._nominated]
        with self._watch.stage("writing"):
            recorder.finish(success, self._config.keyframes, metadata)
        return report

    def _run(self, recorder: DaggerRecorder) -> tuple[str, bool]:
        """(how the episode ended, whether the task is done)."""
        env = self._env
        self._agent.reset(env.variant().instruction, self._episode_id)
        stage, began = 0, 0  # the stage that is due, and since when
        budgets = env.variant().budgets_steps
        step = 0
        while True:
            self._came_out.before_step(step)
            overtime = step - began - budgets[min(stage, env.task.stages - 1)]
            if overtime > self._config.max_overtime_s * CONTROL_HZ or step >= MOST_HORIZONS * env.task.horizon:
                return "no progress", False
            label = self._labeller.label()
            self._source.update(step, label, overtime)
            observation, fresh = self._observe(step)
            action = self._agent.act(observation)
            self._note(self._agent.last_tick)
            with self._watch.stage("writing"):
                recorder.add(observation, fresh, action, label)
            with self._watch.stage("physics"):
                _, _, terminated, _, info = env.step(action)
            step += 1
            self._visits.after_step(step)
            if bool(terminated[0]):
                return ("success", True) if bool(info["success"][0]) else (env.failure(), False)
            if env.due.stage + env.waiting != stage:  # the budget of a stage holds the pause before it
                stage, began = env.due.stage + env.waiting, step

    def _observe(self, step: int) -> tuple[Observation, bool]:
        if step % self._look_every == 0:
            with self._watch.stage("images"):
                seen = self._env.observe("rgb")
                self._images = {name: data["rgb"][0].cpu().numpy().copy() for name, data in seen.items()}
        fresh = step % self._config.image_every == 0
        return Observation(step, self._images, self._env.proprioception(), step / CONTROL_HZ), fresh

    def _note(self, tick: Tick | None) -> None:
        assert tick is not None
        if not self._spoken or self._spoken[-1][1] != tick.subtask:
            self._spoken.append((tick.step, tick.subtask))
        if tick.plan_arrived and isinstance(self._source, PlannerOrOracle):
            self._nominated += [(tick.step, step) for step in self._source.arrived()]
