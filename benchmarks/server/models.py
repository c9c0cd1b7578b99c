"""Starts a server of either kind around one policy, in a process.

    python -m benchmarks.server.models '{"server": "predimem", ...}'

server: `predimem`, or `openpi` (its loop, see openpi_loop.py; one policy, no planner). models: `shipped`, the actor
that comes with PrediMem, or `none`: a policy and a planner that answer at once, so that the server is left. timed: the
last number of each action is the time of the policy's pass in milliseconds, for it is hidden in what either server
calls its inference, and that is what they differ in.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from memory_bank import MemoryConfig
from predimem.core.interfaces import Planner, Policy
from predimem.core.types import ActionChunk, MemorySnapshot, Observation, Plan
from predimem.serving.robot import RobotSpec, Served

ROBOT = RobotSpec(("base_camera", "hand_camera"), (128, 128), 7, 7)
HORIZON = 8


class NoPlanner:
    """Plans at once, and remembers an image every 20 steps."""

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        steps = (snapshot.step,) if snapshot.step % 20 == 0 else ()
        return Plan(snapshot.episode_id, snapshot.step, "go on", steps, "{}")


class NoPolicy:
    """Stands still, at once."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return ActionChunk(observation.step, np.zeros((HORIZON, ROBOT.action_dim), np.float32), subtask)


class TimedPolicy:
    """Another policy, whose actions end with the milliseconds that they took."""

    def __init__(self, policy: Policy):
        self._policy = policy

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        began_s = time.perf_counter()
        chunk = self._policy.infer(observation, subtask)
        actions = chunk.actions.copy()
        actions[:, -1] = 1000 * (time.perf_counter() - began_s)
        return ActionChunk(chunk.start_step, actions, subtask)


class OpenpiPolicy:
    """A policy as openpi's server calls it: a message in, a map with actions out."""

    def __init__(self, policy: Policy, robot: RobotSpec):
        self._policy, self._robot = policy, robot
        self._step = 0

    def infer(self, message: dict[str, Any]) -> dict[str, Any]:
        self._step += 1
        images = {name: message[name] for name in self._robot.cameras}
        observation = Observation(self._step, images, message["state"])
        return {"actions": self._policy.infer(observation, message["prompt"]).actions}


def make(models: str, timed: bool) -> Served:
    """Raises ValueError for models of another name."""
    from predimem.serving.config import ModelsConfig
    from predimem.serving.models import make_served

    if models == "none":
        # by its importable name, since it is unpickled in another process
        from benchmarks.server.models import NoPlanner as planner

        make_planner: type[Planner] | None = None if timed else planner
        served = Served(ROBOT, NoPolicy(), make_planner, MemoryConfig(recent_window=2))
    elif models == "shipped":
        served = make_served(ModelsConfig(planner="instruction"))
    else:
        raise ValueError(f"models: expected `shipped` or `none`, got {models!r}")
    if not timed:
        return served
    return Served(served.robot, TimedPolicy(served.policy), None, served.memory)


def main() -> None:
    wanted = json.loads(sys.argv[1])
    served = make(wanted["models"], wanted.get("timed", False))
    if wanted["server"] == "openpi":
        from benchmarks.server.openpi_loop import serve_policy

        robot = served.robot
        told = {"cameras": list(robot.cameras), "image_size": list(robot.image_size), "state_dim": robot.state_dim}
        serve_policy(OpenpiPolicy(served.policy, robot), told | {"example_prompt": "pick it up"})
    else:
        from predimem.serving.command import run_server, serve_config

        run_server(serve_config("configs/serve.yaml", {"port": 0, **wanted["config"]}), served)


if __name__ == "__main__":
    main()
