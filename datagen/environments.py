"""The environments of workers that make data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datagen.generation import ArenaDataConfig


class KeptEnvironment:
    """The environment of the last task: a worker is given the jobs of one task after the other."""

    def __init__(self, make: Callable[[str], Any]):
        """make: task -> its environment."""
        self._make, self._task, self._environment = make, "", None

    def of(self, task: str) -> Any:
        if self._environment is None or task != self._task:
            self.close()
            self._environment, self._task = self._make(task), task
        return self._environment

    def close(self) -> None:
        if self._environment is not None:
            self._environment.close()
            self._environment = None


def arena_environment(
    config: ArenaDataConfig, control_mode: str = "pd_joint_pos", depth_px: int | None = None
) -> KeptEnvironment:
    """`ArenaEnv`s of one world, with a renderer but without observations of their own."""
    tasks = config.tasks_by_name()

    def make(task: str) -> Any:
        from predimem.envs.arena.registration import create

        return create(
            task=tasks[task],
            obs_mode="none",
            control_mode=control_mode,
            sim_backend="cpu",
            render_backend="auto",
            image_px=config.image_px,
            depth_px=depth_px,
            variation=config.variation,
        )

    return KeptEnvironment(make)


def varied(env: Any) -> dict[str, Any]:
    """For an episode's metadata: what the config's `variation` changed in its scene; nothing where it is as always."""
    changed = env.settings[0].changed
    return {"changed": dict(changed)} if changed else {}
