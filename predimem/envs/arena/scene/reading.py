"""Reads the true `World` out of the simulation: a few microseconds a pose, since every control step does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.world import OnDemand, World

if TYPE_CHECKING:
    from torch import Tensor

    from predimem.envs.arena.scene.simulation import ArenaSimulation


def read_world(env: ArenaSimulation) -> World:
    """The state of all N worlds now. What is asked for later is read later: ask before the next step."""
    poses = OnDemand(lambda name: env.table_pose if name == "table" else raw_pose(_thing(env, name)))
    tcp = tcp_pose(env)
    return World(
        position_m=OnDemand(lambda name: poses[name][:, :3]),
        rotation=OnDemand(lambda name: poses[name][:, 3:]),
        speed_m_s=OnDemand(lambda name: env.objects[name].linear_velocity.norm(dim=-1)),
        joint=OnDemand(lambda name: _opening(env, name)),
        rest_bottom_m=OnDemand(lambda name: env.rest_bottom_m[:, env.task.objects.index(name)]),
        tcp_m=tcp[:, :3],
        finger_gap_m=env.agent.robot.qpos[:, 7:9].sum(dim=-1),
        pours=env.progress.pours,
    )


def tcp_pose(env: ArenaSimulation) -> Tensor:
    """[N, 7]: where the middle between the finger tips is, and how it is turned."""
    agent: Any = env.agent
    return raw_pose(agent.tcp)


def proprioception(env: ArenaSimulation) -> np.ndarray:
    """float32 [17], what the robot of the first world feels: TCP position [3] in m (world frame), its rotation
    [6] (the first two columns of the rotation matrix, world frame), opening of the gripper [1] in m, joint
    angles [7] in rad.
    """
    tcp, qpos = tcp_pose(env)[0].cpu().numpy(), env.agent.robot.qpos[0].cpu().numpy()
    return np.array([*tcp[:3], *rotation_6d(tcp[3:]), qpos[7:9].sum(), *qpos[:7]], np.float32)


def rotation_6d(quaternion: np.ndarray) -> np.ndarray:
    """[6]: the first two columns of the rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    first = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    second = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
    return np.array((*first, *second))


def raw_pose(thing: Any) -> Tensor:
    """[N, 7]: position and quaternion of an actor, a link or an articulation's root.

    The same as ManiSkill's `pose.raw_pose`, which takes five times as long on the CPU.
    """
    if thing.scene.gpu_sim_enabled:
        return thing.pose.raw_pose
    thing = getattr(thing, "root", thing)
    body = thing._objs[0]
    pose = body.entity_pose if hasattr(body, "entity_pose") else body.pose
    return torch.from_numpy(np.concatenate([pose.p, pose.q])[None])


def _thing(env: ArenaSimulation, name: str) -> Any:
    if name in env.objects:
        return env.objects[name]
    if name in f.DRAWERS:
        return env.fixtures["cabinet"].links_map[name]
    if name == "door":
        return env.fixtures["microwave"].links_map[name]
    return env.fixtures[name]


def _opening(env: ArenaSimulation, name: str) -> Tensor:
    """[N]: of one of `fixtures.JOINTS`."""
    fixture = env.fixtures["microwave" if name == f.DOOR else "cabinet"]
    names = [joint.name for joint in fixture.active_joints]
    return fixture.qpos[:, names.index("door" if name == f.DOOR else name)]
