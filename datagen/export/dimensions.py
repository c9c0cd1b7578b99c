"""What the numbers of an episode's state and actions are called, one name for each.

Names end with their unit. Those of `pd_ee_delta_pose` have none: they are fractions of the controller's range.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datagen.export.arena_state import NAMES
from predimem.core.episodes import Episode
from predimem.core.frames import EpisodeError

STATE_KEY, ACTION_KEY = "state_names", "action_names"  # in an episode's metadata
DELTA_POSE = (*(f"tcp_delta_{axis}" for axis in "xyz"), *(f"tcp_delta_rotation_{axis}" for axis in "xyz"), "gripper")
JOINTS = (*(f"joint{n}_rad" for n in range(1, 8)), "gripper")
MIKASA_STATE = (*(f"tcp_{axis}_m" for axis in "xyz"), "tcp_roll_rad", "tcp_pitch_rad", "tcp_yaw_rad")
MIKASA = (*MIKASA_STATE, "gripper_opening_m")

STATES = {"arena": (NAMES,), "robomemarena": (NAMES,), "mikasa": (MIKASA,)}
ACTIONS = {"arena": (DELTA_POSE, JOINTS), "robomemarena": (DELTA_POSE,), "mikasa": (DELTA_POSE,)}


def dimension_names(episode: Episode, path: str | Path) -> tuple[list[str], list[str]]:
    """Names of the state's and of the actions' numbers.

    They are those of the episode's metadata (`state_names`, `action_names`), else those of its benchmark where their
    number fits, else `state_0`, `state_1`, ... Raises EpisodeError for metadata that does not fit.
    """
    return (
        _names(episode, path, STATE_KEY, STATES.get(episode.benchmark, ()), episode.state.shape[1]),
        _names(episode, path, ACTION_KEY, ACTIONS.get(episode.benchmark, ()), episode.actions.shape[1]),
    )


def _names(episode: Episode, path: str | Path, key: str, known: Sequence[Sequence[str]], dim: int) -> list[str]:
    if key in episode.metadata:
        names = episode.metadata[key]
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise EpisodeError(f"{path}: the metadata {key} have to be a list of names, they are {names!r}")
        if len(names) != dim or len(set(names)) != dim:
            raise EpisodeError(f"{path}: the metadata {key} have to be {dim} different names, they are {names}")
        return names
    kind = key.removesuffix("_names")
    return next((list(names) for names in known if len(names) == dim), [f"{kind}_{i}" for i in range(dim)])
