"""The arena as a benchmark of vla-eval, which `benchmarks/clients.py` has vla-eval's own runner play.

    python -m benchmarks.vla_eval_arena ws://127.0.0.1:8100 1 900000

Plays an episode of task 1 through the model server at that address, and prints how it ended.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from vla_eval.api import run
from vla_eval.benchmarks.base import StepBenchmark, StepResult
from vla_eval.specs import IMAGE_RGB, LANGUAGE, RAW, DimSpec
from vla_eval.types import Action, EpisodeResult, Observation, Task

from benchmarks.arena_world import ArenaWorld


class ArenaForVlaEval(StepBenchmark):
    """One task at one seed."""

    def __init__(self, task: str, seed: int) -> None:
        super().__init__()
        self._world = ArenaWorld(task, seed)

    def get_tasks(self) -> list[Task]:
        return [{"name": self._world.instruction}]

    def reset(self, task: Task) -> Any:
        return self._world.reset()

    def step(self, action: Action) -> StepResult:
        obs, done = self._world.step(np.asarray(action["actions"], np.float32))
        return StepResult(obs, 0.0, done, {"success": self._world.success})

    def make_obs(self, raw_obs: Any, task: Task) -> Observation:
        return {"images": dict(raw_obs.images), "states": raw_obs.state, "task_description": self._world.instruction}

    def get_step_result(self, step_result: StepResult) -> EpisodeResult:
        return {"success": step_result.info["success"]}

    def get_metadata(self) -> dict[str, Any]:
        return {"max_steps": self._world.horizon}

    def get_action_spec(self) -> dict[str, DimSpec]:
        return {"actions": DimSpec("actions", self._world.action_dim, "raw")}

    def get_observation_spec(self) -> dict[str, DimSpec]:
        return {"agentview_rgb": IMAGE_RGB, "eye_in_hand_rgb": IMAGE_RGB, "state": RAW, "language": LANGUAGE}

    def cleanup(self) -> None:
        self._world.close()


def main() -> None:
    url, task, seed = sys.argv[1:]
    entry = {"benchmark": "benchmarks.vla_eval_arena:ArenaForVlaEval", "params": {"task": task, "seed": int(seed)}}
    config = {"server": {"url": url, "timeout": 120.0}, "benchmarks": [entry]}
    [result] = run(config, no_save=True, docker=False)
    [episode] = result["tasks"][0]["episodes"]
    if "failure_reason" in episode:
        raise SystemExit(f"vla-eval: {episode['failure_reason']}: {episode['failure_detail']}")
    print(f"{'success' if episode['metrics']['success'] else 'failure'} after {episode['steps']} steps")


if __name__ == "__main__":
    main()
