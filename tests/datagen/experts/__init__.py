"""Skills in real physics: environments without a renderer, one world each."""

from predimem.envs.arena.scene.environment import ArenaEnv


def arena(task: int | str, seed: int, control_mode: str = "pd_joint_pos") -> ArenaEnv:
    """The start of one episode."""
    env = ArenaEnv(task=task, obs_mode="none", control_mode=control_mode, sim_backend="cpu", render_backend="none")
    env.reset(seed=seed)
    return env
