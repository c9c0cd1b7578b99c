"""The arena's Gymnasium ids, and how an environment is made from one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datagen.arena.tasks import TASKS, task_of

if TYPE_CHECKING:
    import gymnasium

    from datagen.arena.environment import ArenaEnv


def register_tasks() -> None:
    """Register all tasks with Gymnasium, as ManiSkill's `register_env` would. Idempotent; nothing heavy is loaded."""
    import gymnasium
    from gymnasium.envs.registration import WrapperSpec

    for task in TASKS:
        if task.env_id not in gymnasium.registry:
            gymnasium.register(
                task.env_id,
                entry_point="datagen.arena.registration:create",
                max_episode_steps=task.horizon,
                disable_env_checker=True,  # it knows no batches
                kwargs={"task": task.name},
                additional_wrappers=(WrapperSpec("ArenaTimeLimit", "datagen.arena.time_limit:ArenaTimeLimit", {}),),
            )


def make(task: int | str, horizon: int | None = None, **kwargs: Any) -> gymnasium.Env:
    """The environment of a task: `gymnasium.make` for a task's number, name or Gymnasium id.

    horizon: control steps after which an episode is truncated, instead of the task's own. kwargs: see
    `environment.ArenaEnv`. Raises ValueError for an unknown task or a bad option, and
    `predimem.vulkan.VulkanError` where pictures are wanted and nothing can render them.
    """
    import gymnasium

    return gymnasium.make(task_of(task).env_id, max_episode_steps=horizon, **kwargs)


def create(**kwargs: Any) -> ArenaEnv:
    """The entry point: only here is the simulator loaded."""
    from datagen.arena.environment import ArenaEnv

    return ArenaEnv(**kwargs)
