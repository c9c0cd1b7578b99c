"""Makes one demonstration after the other: it is decomposed, executed from perception, recorded, and kept or not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from datagen.decompose import rules
from datagen.decompose.steps import Step
from datagen.decompose.vlm import DecompositionError, VlmDecomposer
from datagen.decompose.vocabulary import vocabulary_of
from datagen.decompose.waiting import OnScreen
from datagen.demos.config import GenerationConfig
from datagen.demos.recorder import Recorder
from datagen.demos.task_labels import DisagreementError, subtask_of_each
from datagen.environments import arena_environment, varied
from datagen.execution.executor import Executor, GiveUp
from datagen.execution.timing import Stopwatch
from datagen.grasp.make import make_detector
from predimem.core.episode_folder import episode_path
from predimem.jobs.tasks import Job, Outcome


class ArenaWorker:
    """A `predimem.jobs.tasks.Worker`. It keeps its environment, its grasp detector and its client of a model."""

    def __init__(self, config: GenerationConfig):
        import torch

        torch.set_num_threads(1)
        self._config = config
        self._environment = arena_environment(config, config.control_mode, config.depth_px)
        self._detector = make_detector(config.grasp)
        vlm = config.decomposition.vlm
        self._model = VlmDecomposer(vlm, OnScreen(terminal=False, at_once=False)) if vlm else None

    def close(self) -> None:
        self._environment.close()

    def play(self, job: Job) -> Outcome:
        """An episode is kept when its post-conditions hold and the simulator agrees that the task is done."""
        start, watch = time.perf_counter(), Stopwatch()
        with watch.stage("reset"):
            env = self._environment.of(job.task)
            env.reset(seed=job.seed)
        path = episode_path(self._config.out, job.task, job.seed)
        recorder = Recorder(env, path, job.seed, self._config.image_every, watch)
        report: dict[str, Any] = {}
        try:
            cause = self._make(env, recorder, watch, report)
        finally:
            recorder.close()
        seconds = time.perf_counter() - start
        rest = seconds - sum(watch.seconds.values())
        report["stage_seconds"] = {**{k: round(v, 3) for k, v in watch.seconds.items()}, "skills": round(rest, 3)}
        return Outcome(job.task, job.seed, not cause, cause, len(recorder), round(seconds, 3), report)

    def _make(self, env: Any, recorder: Recorder, watch: Stopwatch, report: dict[str, Any]) -> str:
        """Play and record; the cause for discarding the episode, "" if it is kept."""
        variant = env.variant()
        try:
            with watch.stage("decomposition"):
                steps = self._decompose(env, variant.instruction)
            subtasks = subtask_of_each(steps, variant)
        except (DecompositionError, DisagreementError) as error:
            report["decomposition"] = str(error)
            return "decomposition"
        executor = Executor(env, self._detector, self._config.execution, watch)
        try:
            cause = self._play(env, executor, steps, subtasks, recorder, watch)
        except GiveUp as error:
            cause = str(error)
        labels = [variant.subtasks[i].label for i in subtasks]
        report["retries"] = {labels[step]: count for step, count in sorted(executor.retries.items())}
        if not cause:
            recorder.finish(self._config.keyframes, self._metadata(steps, report) | varied(env))
        return cause

    def _play(
        self,
        env: Any,
        executor: Executor,
        steps: Sequence[Step],
        subtasks: Sequence[int],
        recorder: Recorder,
        watch: Stopwatch,
    ) -> str:
        """Step the environment until the task is done; why the simulator calls it no success, "" if it does."""
        for _ in executor.run(steps):
            action = executor.action()
            recorder.add(action, subtasks[executor.step])
            with watch.stage("physics"):
                _, _, terminated, _, info = env.step(action)
            if bool(terminated[0]):
                return "" if bool(info["success"][0]) else f"simulator: {env.failure()}"
            if len(recorder) >= env.task.horizon:
                return "out of time"
        standing = env.progress.stages(env.task, env.world())[0].tolist()
        return f"simulator: undone: {env.variant().subtasks[standing.index(False)].label}"

    def _decompose(self, env: Any, instruction: str) -> tuple[Step, ...]:
        vocabulary = vocabulary_of(env.task)
        if self._model is None:
            return rules.decompose(instruction, vocabulary)
        image = env.observe("rgb", ["agentview_depth"])["agentview_depth"]["rgb"][0].cpu().numpy()
        return self._model.decompose(instruction, image, vocabulary)

    def _metadata(self, steps: Sequence[Step], report: dict[str, Any]) -> dict[str, Any]:
        return {
            "control_mode": self._config.control_mode,
            "decomposition": self._config.decomposition.by,
            "steps": [{"subtask": s.subtask, "planner": s.planner.value, "target": s.target} for s in steps],
            "grasp_detector": self._config.grasp.detector,
            "retries": report["retries"],
        }
