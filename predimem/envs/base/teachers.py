"""Teachers of packaged environments: they say the right action and know no more than what could be observed so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from predimem.envs.base.game import Seen
from predimem.envs.base.packages import PackagedGame

WATCH = 1  # POPGym's Autoencode shows cards in this mode
LEFT, RIGHT, FORWARD = range(3)  # Minigrid's actions
EAST, SOUTH, WEST, NORTH = range(4)  # Minigrid's directions
ROOM_COLUMN = 3  # from here on the object in Minigrid's first room is in sight


@dataclass
class Watched:
    """An episode as its teacher knows it. seen: all observations, as the package gives them. notes: the teacher's."""

    env: Any
    seen: list[Any] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)


Teacher = Callable[[Watched], int | None]


def repeat_first(watched: Watched) -> int | None:
    return int(watched.seen[0])


def repeat_previous(watched: Watched) -> int | None:
    k = watched.env.k
    return int(watched.seen[-k]) if len(watched.seen) >= k else None


def autoencode(watched: Watched) -> int | None:
    """Cards are shown until the mode changes, the last of them in the new mode; then they are asked for backwards."""
    if watched.seen[-1][0] == WATCH:
        return None
    shown = 1 + sum(mode == WATCH for mode, _ in watched.seen)
    return int(watched.seen[2 * shown - 1 - len(watched.seen)][1])


def count_recall(watched: Watched) -> int | None:
    query = watched.seen[-1][1]
    return sum(int(card == query) for card, _ in watched.seen)


def minigrid_memory(watched: Watched) -> int | None:
    """Goes back to where the first room can be seen, then to the junction, and turns to the matching object."""
    env = watched.env
    column, heading = int(env.agent_pos[0]), int(env.agent_dir)
    goal_column, goal_row = (int(n) for n in env.success_pos)
    if column <= ROOM_COLUMN and heading == WEST:
        watched.notes.add("looked")
    if "looked" not in watched.notes:
        to = WEST
    elif column < goal_column:
        to = EAST
    else:
        to = NORTH if goal_row < env.height // 2 else SOUTH
    if heading == to:
        return FORWARD
    return RIGHT if (heading + 1) % 4 == to else LEFT


TEACHERS: dict[str, Teacher] = {
    "popgym-RepeatFirst": repeat_first,
    "popgym-RepeatPrevious": repeat_previous,
    "popgym-Autoencode": autoencode,
    "popgym-CountRecall": count_recall,
    "MiniGrid-Memory": minigrid_memory,
}


def teacher_of(env_id: str) -> Teacher | None:
    """The teacher of an environment, None where there is none."""
    return next((teacher for name, teacher in TEACHERS.items() if env_id.startswith(name)), None)


class TaughtGame(PackagedGame):
    """A packaged environment with a teacher. Implements `predimem.envs.base.game.Solved`."""

    def __init__(self, env_id: str, teacher: Teacher, **arguments: Any):
        super().__init__(env_id, **arguments)
        self._teacher = teacher

    def reset(self, seed: int) -> Seen:
        self._watched = Watched(self._env.unwrapped)
        return super().reset(seed)

    def solve(self) -> int | None:
        return self._teacher(self._watched)

    def _seen(self, seen: Any) -> Seen:
        self._watched.seen.append(seen.copy() if isinstance(seen, np.ndarray) else seen)
        return super()._seen(seen)
