"""Perception in real images: the arena with a renderer and cameras for depth."""

from predimem.envs.arena.registration import create
from predimem.envs.arena.scene.environment import ArenaEnv


def seeing_arena(task: int, seed: int, control_mode: str = "pd_joint_pos", depth_px: int = 256) -> ArenaEnv:
    """The start of one episode."""
    env = create(
        task=task,
        obs_mode="none",
        control_mode=control_mode,
        sim_backend="cpu",
        render_backend="auto",
        image_px=32,
        depth_px=depth_px,
    )
    env.reset(seed=seed)
    return env
