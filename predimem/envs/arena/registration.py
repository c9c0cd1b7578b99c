"""The arena's Gymnasium ids, and how an environment is made from one."""

from __future__ import annotations

import importlib.util
from os import PathLike
from typing import TYPE_CHECKING, Any

from predimem.envs.arena.task import Task
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.rendering.maniskill import starting

if TYPE_CHECKING:
    import gymnasium

    from predimem.envs.arena.scene.environment import ArenaEnv


def register_tasks() -> None:
    """Register all tasks with Gymnasium, as ManiSkill's `register_env` would. Idempotent; nothing heavy is loaded.

    Without Gymnasium, which belongs to the extra `sim`, the tasks can be read and not played.
    """
    if importlib.util.find_spec("gymnasium") is None:
        return
    import gymnasium

    for task in TASKS:
        if task.env_id not in gymnasium.registry:
            _register(task, task.name)


def _register(task: Task, key: str | Task) -> None:
    """key: what the environment finds its task by."""
    import gymnasium
    from gymnasium.envs.registration import WrapperSpec

    gymnasium.register(
        task.env_id,
        entry_point="predimem.envs.arena.registration:create",
        max_episode_steps=task.horizon,
        disable_env_checker=True,  # it knows no batches
        kwargs={"task": key},
        additional_wrappers=(WrapperSpec("ArenaTimeLimit", "predimem.envs.arena.scene.time_limit:ArenaTimeLimit", {}),),
    )


def make(task: int | str | PathLike[str] | Task, horizon: int | None = None, **kwargs: Any) -> gymnasium.Env:
    """The environment of a task: `gymnasium.make` for a task's number, name, Gymnasium id or file.

    horizon: control steps after which an episode is truncated, instead of the task's own. kwargs: see
    `environment.ArenaEnv`. A task of a file is registered with Gymnasium too, from here on in this process.
    Raises ValueError for an unknown or faulty task or a bad option, and `predimem.rendering.vulkan.VulkanError` where
    images are wanted and nothing can render them.
    """
    import gymnasium

    found = task_of(task)
    if found not in TASKS:
        gymnasium.registry.pop(found.env_id, None)  # the file may have changed
        _register(found, found)
    return gymnasium.make(found.env_id, max_episode_steps=horizon, **kwargs)


def create(**kwargs: Any) -> ArenaEnv:
    """The entry point: only here is the simulator loaded."""
    with starting():
        from predimem.envs.arena.scene.environment import ArenaEnv

        return ArenaEnv(**kwargs)
