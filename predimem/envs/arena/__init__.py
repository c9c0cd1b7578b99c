"""The arena: 26 long-horizon memory tasks in ManiSkill.

Importing this package registers them with Gymnasium (`predimem/Arena-<Name>-v0`), without loading the
simulator:

    import gymnasium
    import predimem.envs.arena

    env = gymnasium.make("predimem/Arena-ButterInOccupiedDrawer-v0", obs_mode="rgb")
    env = predimem.envs.arena.make(4, obs_mode="rgb")  # the same

`environment.ArenaEnv` says what such an environment takes and gives.
"""

from __future__ import annotations

from predimem.envs.arena.registration import make, register_tasks

__all__ = ["make", "register_tasks"]

register_tasks()
