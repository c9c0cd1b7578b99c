"""A server for RoboMME's robot, and the client of its challenge in our own words.

The planner remembers what it is shown: images of value 200 and more are keyframes, and its subtask says how many of
them it still sees, and at which steps. The actor's chunk tells what it was shown: (control step, value of the front
image, value of the wrist image, joint angle, finger, x of the end effector, 0, 1 if told a subtask with keyframes).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
from websockets.sync.client import connect

from memory_bank import MemoryConfig
from predimem.core.types import ActionChunk, MemorySnapshot, Observation, Plan
from predimem.serving.robot import RobotSpec, Served
from tests.serving.support import settings

CAMERAS = ("base_camera", "hand_camera")
ROBOT = RobotSpec(CAMERAS, (8, 8), 12, 8)
CHUNK = 4


class CountingPlanner:
    def plan(self, snapshot: MemorySnapshot) -> Plan:
        marks = {frame.step: int(frame.images[CAMERAS[0]][0, 0, 0]) for frame in snapshot.recent}
        kept = [frame.step for frame in snapshot.keyframes]
        nominated = tuple(step for step, mark in marks.items() if mark >= 200)
        return Plan(snapshot.episode_id, snapshot.step, f"keyframes {kept}", nominated, "{}")


class EchoPolicy:
    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        chunks = []
        for observation, subtask in zip(observations, subtasks, strict=True):
            front, wrist = (float(observation.images[name][0, 0, 0]) for name in CAMERAS)
            state = observation.state
            row = [0, front, wrist, state[0], state[7], state[9], 0, subtask != "keyframes []"]
            actions = np.tile(np.array(row, np.float32), (CHUNK, 1))
            actions[:, 0] = observation.step + np.arange(CHUNK)
            chunks.append(ActionChunk(observation.step, actions, subtask))
        return chunks


def command(**changes: Any) -> list[str]:
    """For `support.server_process`."""
    config = {"port": 0, "protocol": "robomme", "agent": {"execute_steps": CHUNK, "plan_every_steps": 2}, **changes}
    return ["-m", "tests.serving.robomme", json.dumps(config)]


class ChallengeClient:
    """RoboMME's client: metadata first, a reset that stands alone, then lists of all that was seen."""

    def __init__(self, port: int):
        self.socket = connect(f"ws://127.0.0.1:{port}", compression=None, max_size=None)
        self.metadata = self.receive()

    def reset(self) -> Any:
        return self.ask({"reset": True})

    def ask(self, message: dict[str, Any]) -> Any:
        self.socket.send(msgpack.packb(message, default=packed))
        return self.receive()

    def receive(self) -> Any:
        answer = self.socket.recv()
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return msgpack.unpackb(answer, object_hook=unpacked)


def seen(marks: Sequence[int], first: bool, **changes: Any) -> dict[str, Any]:
    """The message about frames whose images show `marks`; the front camera's are larger than the actor's."""
    return {
        "task_goal": ["put the cube down", "let the cube go"],
        "is_first_step": first,
        "front_rgb_list": [np.full((16, 16, 3), mark, np.uint8) for mark in marks],
        "wrist_rgb_list": [np.full((8, 8, 3), mark // 2, np.uint8) for mark in marks],
        "joint_state_list": [np.full(7, mark / 100, np.float32) for mark in marks],
        "eef_state_list": [np.full(6, mark / 1000, np.float64) for mark in marks],
        "gripper_state_list": [np.full(2, 0.04, np.float32) for _ in marks],
        **changes,
    }


def packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise TypeError(type(value))


def unpacked(found: dict[Any, Any]) -> Any:
    if b"__ndarray__" in found:
        return np.frombuffer(found[b"data"], found[b"dtype"]).reshape(found[b"shape"])
    return found


def main() -> None:
    from predimem.serving.command import run_server
    from tests.serving.robomme import CountingPlanner as make_planner  # by its importable name: it is pickled

    memory = MemoryConfig(recent_window=2, cluster_gap_steps=1)
    run_server(settings(json.loads(sys.argv[1])), Served(ROBOT, EchoPolicy(), make_planner, memory))


if __name__ == "__main__":
    main()
