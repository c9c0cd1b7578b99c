"""A benchmark of one's own: a light flashes on the left or on the right, and later the dot has to be moved there.

    predimem eval --benchmark examples/remember_the_light.py --agent oracle,random --episodes 20
    predimem eval --benchmark examples/remember_the_light.py --agent memory,no-memory --episodes 20

Any Gymnasium environment with images and a box of actions will do. docs/guides/own-simulator.md explains the parts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from memory_bank import MemoryConfig
from predimem.core.types import ActionChunk, MemorySnapshot, Observation, Plan
from predimem.envs.benchmark import Benchmark, EnvironmentRequest, Experts
from predimem.envs.gymnasium_env import CAMERA, GymnasiumEnvironment

CUE_STEPS, HORIZON, SIZE_PX = 3, 20, 64
SIDES = {"go left": -1.0, "go right": 1.0}


class RememberTheLight(gymnasium.Env):
    """The action [1] moves the dot by up to 0.1; nothing moves during the cue. x is in [-1, 1]."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.side, self.x, self.steps = int(self.np_random.choice([-1, 1])), 0.0, 0
        return np.array([self.x], np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.steps += 1
        if self.steps > CUE_STEPS:
            self.x = float(np.clip(self.x + 0.1 * action[0], -1, 1))
        success = self.x * self.side > 0.9
        return np.array([self.x], np.float32), float(success), abs(self.x) > 0.9, False, {"success": success}

    def render(self) -> np.ndarray:
        image = np.zeros((SIZE_PX, SIZE_PX, 3), np.uint8)
        if self.steps < CUE_STEPS:
            half = slice(0, SIZE_PX // 2) if self.side < 0 else slice(SIZE_PX // 2, SIZE_PX)
            image[:8, half] = (255, 200, 0)
        column = int((self.x + 1) / 2 * (SIZE_PX - 5))
        image[40:44, column : column + 4] = 255
        return image


class LightPlanner:
    """A `Planner` that nominates the images in which the light is on, and names the side that they show."""

    memory = MemoryConfig(recent_window=1)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        lit = [f for f in (*snapshot.keyframes, *snapshot.recent) if f.images[CAMERA][:8].any()]
        if not lit:
            return Plan(snapshot.episode_id, snapshot.step, "wait")
        on_the_left = lit[0].images[CAMERA][:8, : SIZE_PX // 2].any()
        subtask = "go left" if on_the_left else "go right"
        still_on = lit[-1].step == snapshot.recent[-1].step
        return Plan(snapshot.episode_id, snapshot.step, "wait" if still_on else subtask, tuple(f.step for f in lit))


class Walk:
    """A `Policy`: four steps to the side that the subtask names."""

    def __init__(self, environment: GymnasiumEnvironment, config: Any):
        """An agent config comes with it; nothing in this benchmark depends on either."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return ActionChunk(observation.step, np.full((4, 1), SIDES.get(subtask, 0.0), np.float32), subtask)


class Oracle:
    """An `Expert`, which knows the side."""

    subtask = "go to the side where the light was"

    def __init__(self, environment: GymnasiumEnvironment):
        self._light: Any = environment.env

    def reset(self) -> None:
        """It has no state."""

    def action(self) -> np.ndarray:
        return np.array([self._light.side], np.float32)


class LightBenchmark(Benchmark):
    name = "remember-the-light"
    config = str(Path(__file__).with_suffix(".yaml"))
    experts = Experts(agents={"oracle": f"{__name__}:Oracle"}, policies={"skills": f"{__name__}:Walk"})

    def version(self) -> str:
        return "1"

    def all_tasks(self) -> tuple[str, ...]:
        return ("RememberTheLight",)

    def task_name(self, task: str) -> str:
        if task not in self.all_tasks():
            raise ValueError(f"unknown task {task!r}; there is: {', '.join(self.all_tasks())}")
        return task

    def make_environment(self, task: str, options: Any, request: EnvironmentRequest) -> GymnasiumEnvironment:
        return GymnasiumEnvironment(RememberTheLight(), "Move the dot to the side where the light was.", HORIZON)


BENCHMARK = LightBenchmark()
