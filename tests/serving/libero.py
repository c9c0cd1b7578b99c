"""A server for a robot with LIBERO's 8-D state, and RoboMemArena's evaluation loops in our own words.

The actions of the server's actor tell what it was shown: (control step, red of the top row and of the bottom row of
the first camera, red of the second camera, state [8]).

`play_raw` is the loop of May 2026 (revision 9833a7d): the policy gets LIBERO's raw observation whenever the actions
run out. `play_observed` is the one of later scripts (revision 8b77109). Both take every `Exception` for a failed
episode, as they do there.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from memory_bank import MemoryConfig
from predimem.core.types import ActionChunk, Observation
from predimem.serving.robot import RobotSpec, Served
from tests.serving.support import CAMERAS, HORIZON, SIDE, settings, small_config

STATE_DIM, ACTION_DIM = 8, 12
HOLD = [-1.0] * ACTION_DIM


class EchoPolicy:
    """slow_at: the first pass from this control step on takes a second."""

    def __init__(self, slow_at: int | None = None):
        self._slow_at = slow_at

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        if self._slow_at is not None and observation.step >= self._slow_at:
            self._slow_at = None
            time.sleep(1.0)
        first, second = (observation.images[name][..., 0] for name in CAMERAS)
        seen = [0.0, first[0, 0], first[-1, 0], second[0, 0], *observation.state]
        actions = np.tile(np.array(seen, np.float32), (HORIZON, 1))
        actions[:, 0] = observation.step + np.arange(HORIZON)
        return ActionChunk(observation.step, actions, subtask)

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        return [self.infer(*asked) for asked in zip(observations, subtasks, strict=True)]


def libero_command(state_dir: Path | None = None, slow_at: int | None = None, **changes: Any) -> list[str]:
    """For `support.server_process`. Its time is simulated, so that a busy machine is never late."""
    simulated = {"mode": "simulated", "s1_latency_steps": 0, "s2_latency_steps": 1}
    config = small_config(**{"time": simulated, **changes})
    config["robot"]["hold"] = HOLD
    if state_dir is not None:
        config["state"] = {"dir": str(state_dir)}
    return ["-m", "tests.serving.libero", json.dumps([config, slow_at])]


class LiberoWorld:
    """Steps as robosuite gives them: images upside down, the step in the rows; the state is always the same."""

    def __init__(self) -> None:
        self.acted: list[np.ndarray] = []

    def reset(self) -> dict[str, Any]:
        self.acted = []
        return self.observe()

    def step(self, action: Sequence[float]) -> tuple[dict[str, Any], bool]:
        """(observation, done)"""
        self.acted.append(np.array(action))
        return self.observe(), False

    def observe(self) -> dict[str, Any]:
        step = len(self.acted)
        view = np.zeros((3 * SIDE, 4 * SIDE, 3), np.uint8)
        view[: view.shape[0] // 2], view[view.shape[0] // 2 :] = step, 100 + step  # the lower half is shown on top
        return {
            "agentview_image": view,
            "robot0_eye_in_hand_image": np.full_like(view, 200),
            "robot0_eef_pos": np.array([0.1, 0.2, 0.3]),
            "robot0_eef_quat": np.array([0.0, 0.0, -np.sin(0.25), -np.cos(0.25)]),  # 0.5 rad about z, the long way
            "robot0_gripper_qpos": np.array([0.04, -0.04]),
        }


class Adapter(Protocol):
    def infer_actions(self, obs: dict[str, Any], prompt: str, resize_size: int) -> np.ndarray: ...


def play_raw(
    adapter: Adapter, world: Any, prompt: str, steps: int, replan_steps: int = 5, as_published: bool = False
) -> float:
    """The score of an episode, in %: here the share of its steps that were acted.

    as_published: with the fault of revision 9833a7d, which asks whether an image is true before it asks the policy.
    """

    def film(obs: dict[str, Any]) -> None:
        _ = as_published and (obs["agentview_image"] or obs["agentview_rgb"])

    return _play(world, steps, replan_steps, lambda obs: adapter.infer_actions(obs, prompt, 256), film)


def play_observed(
    adapter: Any,
    world: Any,
    prompt: str,
    steps: int,
    replan_steps: int = 10,
    make_ready: Callable[[Any], dict[str, Any]] | None = None,
) -> float:
    """As `play_raw`. make_ready: from the world's observation to the policy's, `policy_input` for LIBERO's."""
    ready: dict[str, Any] = {}

    def show(obs: dict[str, Any]) -> None:
        ready.update((make_ready or policy_input)(obs))
        adapter.observe(ready, prompt, 256)

    return _play(world, steps, replan_steps, lambda obs: adapter.infer_actions(ready, prompt, 256), show)


def policy_input(obs: dict[str, Any]) -> dict[str, Any]:
    """The part of `build_eval26_policy_input` that adapters look at; of this world's observation, 256 px."""
    from PIL import Image

    ready = {}
    for name, theirs in (("image", "agentview_image"), ("wrist_image", "robot0_eye_in_hand_image")):
        ready[f"observation/{name}"] = np.asarray(Image.fromarray(obs[theirs][::-1]).resize((256, 256)))
    pose = [*obs["robot0_eef_pos"], 0.0, 0.0, 0.5, *obs["robot0_gripper_qpos"]]
    return {**obs, **ready, "observation/state": np.array(pose, np.float32)}


def _play(
    world: Any,
    steps: int,
    replan_steps: int,
    ask: Callable[[dict[str, Any]], np.ndarray],
    show: Callable[[dict[str, Any]], None],
) -> float:
    obs, plan, acted, done = world.reset(), deque(), 0, False
    try:
        while acted < steps and not done:
            show(obs)
            if not plan:
                actions = np.asarray(ask(obs), np.float32)
                if actions.ndim != 2 or not actions.size:
                    raise ValueError(f"expected actions [n, A], got {actions.shape}")
                plan.extend(actions[:replan_steps])
            obs, done = world.step(plan.popleft().tolist())
            acted += 1
    except Exception as error:
        print(f"Episode failed: {error}")
    return 100.0 * acted / steps


def main() -> None:
    from predimem.serving.command import run_server

    robot = RobotSpec(CAMERAS, (SIDE, SIDE), STATE_DIM, ACTION_DIM)
    config, slow_at = json.loads(sys.argv[1])
    served = Served(robot, EchoPolicy(slow_at), None, MemoryConfig(recent_window=2), {"actor": "0" * 16})
    run_server(settings(config), served)


if __name__ == "__main__":
    main()
