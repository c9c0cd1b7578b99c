"""The conditions in which a task can be played, by name: `plain` is as trained, each other one changes one thing.

Training data may vary several of these things at once (`vary`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from predimem.core.suggestions import did_you_mean
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen import camera, colours, distractors, instructions, lights, positions, textures
from predimem.envs.arena.unseen.setting import Setting, as_trained

PLAIN = "plain"
TRAINABLE = ("positions", "colours", "distractors", "lights", "camera")  # the others are kept for evaluation
VARIED = 1  # tells the random numbers of varied training data from those of the conditions; never to be changed


@dataclass(frozen=True)
class Condition:
    """what: what it changes, for people.

    stream: tells its random numbers from those of the others; never to be changed.
    apply: from a setting as trained, its task and a generator to the changed setting.
    """

    name: str
    what: str
    stream: int
    apply: Callable[[Setting, Task, np.random.Generator], Setting]


CONDITIONS: dict[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition(PLAIN, "nothing", 0, lambda setting, task, rng: setting),
        Condition("positions", "where loose things and containers stand", 1, positions.apply),
        Condition("colours", "the colours of objects and furniture", 2, colours.apply),
        Condition("textures", "the patterns of table, walls, floor and furniture", 3, textures.apply),
        Condition("distractors", "two more objects on the table", 4, distractors.apply),
        Condition("lights", "brightness, colour and direction of the light", 5, lights.apply),
        Condition("camera", "where the camera stands and looks", 6, camera.apply),
        Condition("instructions", "the words of the instruction", 7, instructions.apply),
    )
}


def condition_of(name: str) -> Condition:
    """Raises ValueError for a name that is none."""
    if name not in CONDITIONS:
        meant = did_you_mean(name, CONDITIONS)
        raise ValueError(f"unknown condition {name!r}{meant}; the arena has: {', '.join(CONDITIONS)}")
    return CONDITIONS[name]


def draw_setting(task: Task, seed: int, condition: str = PLAIN) -> Setting:
    """The setting of an episode: the same (task, seed, condition) always gives the same one.

    What a condition does not change is as in `plain` with the same seed. Raises ValueError for an unknown condition,
    and where a task cannot be played in it.
    """
    chosen = condition_of(condition)
    rng = np.random.default_rng([seed, task.task_id, chosen.stream])
    return chosen.apply(as_trained(task, seed), task, rng)


def check_shares(shares: Mapping[str, float]) -> None:
    """Raises ValueError unless these are shares of episodes, by conditions that training may show."""
    for name, share in shares.items():
        if name not in TRAINABLE:
            held = "is kept for evaluation" if name in CONDITIONS else "is no condition"
            raise ValueError(f"{name} {held}: training data may vary {', '.join(TRAINABLE)}")
        if not 0 <= share <= 1:
            raise ValueError(f"{name}: expected the share of episodes that it varies, in [0, 1], got {share}")


def vary(task: Task, seed: int, shares: Mapping[str, float]) -> Setting:
    """A setting for training, in which each condition is applied with its share, several of them at once.

    shares: condition (of `TRAINABLE`) -> the share of episodes. The same (task, seed, shares) always gives the same
    setting. Raises ValueError as `check_shares` does.
    """
    check_shares(shares)
    setting = as_trained(task, seed)
    for name in TRAINABLE:
        condition = CONDITIONS[name]
        rng = np.random.default_rng([seed, task.task_id, condition.stream, VARIED])
        if rng.random() < shares.get(name, 0.0):
            setting = condition.apply(setting, task, rng)
    return setting


def drawing(condition: str, variation: Mapping[str, float]) -> Callable[[Task, int], Setting]:
    """How the settings of a task are drawn by seed: in a condition, or with the shares of a variation (`vary`).

    Raises ValueError where both are given, and as `condition_of` and `check_shares` do.
    """
    if not variation:
        return partial(draw_setting, condition=condition_of(condition).name)
    check_shares(variation)
    if condition != PLAIN:
        raise ValueError(f"either a condition or a variation, got {condition!r} and {dict(variation)}")
    return partial(vary, shares=dict(variation))
