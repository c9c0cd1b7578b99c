"""The objects of the suite's tasks in words: "teal cube", "star", "blue t-shape"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from predimem.envs.mikasa.families.scene import position_m

HIDDEN_ABOVE_M = 100.0  # the suite parks hidden objects at a height of 1000 m

_COLOUR_NAMES: dict[tuple[int, ...], str] = {(1, 0, 0): "red", (0, 1, 0): "lime", (0, 0, 1): "blue"}
_SHAPE_NAMES = {"pyramide": "pyramid", "t_shape": "t-shape"}


def object_labels(environment: Any) -> tuple[str, ...]:
    """The words for the objects of a task in the order of their keys; environment: the suite's environment of the task,
    or its class."""
    if hasattr(environment, "BASE_SHAPES"):
        kinds = [(c, s) for s in environment.BASE_SHAPES.values() for c in environment.COLOR_PALETTE.values()]
        return tuple(f"{_COLOUR_NAMES[tuple(map(int, c[:3]))]} {_shape(s)}" for c, s in kinds[: environment.SHAPES])
    if hasattr(environment, "SHAPE_MAPPING"):
        return tuple(map(_shape, list(environment.SHAPE_MAPPING.values())[: environment.SHAPES]))
    return tuple(f"{name.lower()} cube" for name, _ in list(environment.COLOR_MAPPING.values())[: environment.COLORS])


def task_object_labels(task: str) -> tuple[str, ...]:
    """As `object_labels`, of a task by its id."""
    import mikasa_robo_suite.vla.memory_envs  # noqa: F401  (registers the ids)
    from mani_skill.utils.registration import REGISTERED_ENVS

    return object_labels(REGISTERED_ENVS[task].cls)


def object_actors(base: Any) -> Sequence[Any]:
    """The objects themselves, in the same order."""
    actors = base.shape_actors if hasattr(base, "shape_actors") else base.cubes
    return [actors[key] for key in sorted(actors)]


def shown_position_m(actor: Any) -> list[float]:
    """[3], world frame; NaN where the suite hides the actor."""
    position = position_m(actor)
    return [float("nan")] * 3 if position[2] > HIDDEN_ABOVE_M else position.tolist()


def _shape(name: str) -> str:
    return _SHAPE_NAMES.get(name, name)
