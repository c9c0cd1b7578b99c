"""The worlds that agents are played in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from predimem.agent.config import SCRIPTED, AgentConfig
from predimem.agent.dual_system import HoldAction
from predimem.core.types import StepResult


def arena_control_mode(agent: str, row: AgentConfig | None) -> str:
    """Skills command joint angles, which is three times as fast to simulate; whatever was learned or is random
    gives the actions of the demonstrations."""
    scripted = agent in ("oracle", "script") if row is None else row.actor in SCRIPTED
    return "pd_joint_pos" if scripted else "pd_ee_delta_pose"


def make_arena_environment(task: str, control_mode: str, image_px: int, pictures: bool, inverse_kinematics: str) -> Any:
    """One world of the arena, of a task's name or file. inverse_kinematics: of pd_ee_delta_pose, see `PlayConfig`."""
    import predimem.envs.arena
    from predimem.envs.arena.suite import ArenaEnvironment

    driven = control_mode == "pd_ee_delta_pose" and inverse_kinematics == "predimem"
    env = predimem.envs.arena.make(
        task,
        obs_mode="none",
        control_mode="pd_joint_pos" if driven else control_mode,
        image_px=image_px,
        sim_backend="cpu",
        render_backend="auto" if pictures else None,
    )
    if driven:
        from predimem.envs.arena.scene.delta_pose_env import DeltaPoseEnv

        env = DeltaPoseEnv(env)
    return ArenaEnvironment(env, camera_every=None)


def make_training_environment(task: str) -> Any:
    """The environment that demonstrations are collected in: decimated meshes."""
    from predimem.envs.mikasa.suite import MikasaEnvironment

    return MikasaEnvironment(task, "fast")


@dataclass(frozen=True)
class BareRobot:
    """What a learned agent needs to know of an environment that somebody else steps."""

    hold_action: HoldAction
    action_dim: int
    control_hz: float


class StopAtSuccess:
    """Ends an episode at its first success, for suites in which a success cannot be lost again."""

    def __init__(self, environment: Any):
        self._environment = environment

    def step(self, action: Any) -> StepResult:
        result = self._environment.step(action)
        return replace(result, terminated=result.terminated or result.success)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)
