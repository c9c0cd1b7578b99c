"""The horizon of an episode, for batched environments."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from gymnasium.wrappers.time_limit import TimeLimit
from mani_skill.utils.registration import TimeLimitWrapper


class ArenaTimeLimit(TimeLimitWrapper):
    """ManiSkill's time limit in the place of Gymnasium's, which knows no batches, with the same limit.

    It goes onto what `gymnasium.make` has just wrapped in its own time limit; raises ValueError unless
    that limit (`max_episode_steps`) is a whole number, 1 or more. `spec` can make the environment again.
    """

    def __init__(self, env: gymnasium.Env):
        if not isinstance(env, TimeLimit):
            raise ValueError("autoreset knows no batches: take mani_skill.vector.wrappers.gymnasium.ManiSkillVectorEnv")
        steps: Any = env._max_episode_steps
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            env.close()
            raise ValueError(
                f"the horizon (max_episode_steps) is a whole number of control steps, 1 or more, not {steps!r}"
            )
        super().__init__(env.env, steps)

    @property
    def spec(self) -> EnvSpec | None:
        spec = deepcopy(self.env.spec)
        if spec is not None:
            spec.max_episode_steps = self._max_episode_steps
            entry_point = "predimem.envs.arena.scene.time_limit:ArenaTimeLimit"
            spec.additional_wrappers += (WrapperSpec("ArenaTimeLimit", entry_point, {}),)
        return spec
