"""Which tasks MIKASA-Base has here, and how their environments are made.

A task that has a delay is called after it: `TMaze1000`, `MemoryLength30`, `VisualMatch100`. Any delay can be played;
those of `DELAYS` are listed. Environments that come in packages keep their ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from predimem.core.suggestions import did_you_mean
from predimem.envs.base.game import Game
from predimem.envs.base.memory_length import MemoryLength
from predimem.envs.base.numpad import Numpad
from predimem.envs.base.packages import MEMORY_GYM, MINIGRID, POPGYM, Package, PackagedGame, check_installed
from predimem.envs.base.teachers import TaughtGame, teacher_of
from predimem.envs.base.tmaze import TMaze
from predimem.envs.base.visual_match import VisualMatch

DELAYS = (10, 30, 100, 300, 1_000)
LEVELS = ("Easy", "Medium", "Hard")
POPGYM_SUCCESS = 0.9  # POPGym scales returns to [-1, 1]; 1 is a perfect episode
ANY_REWARD = 1e-6


@dataclass(frozen=True)
class Delayed:
    """A family of tasks that differ in their delay."""

    make: Callable[[int], Game]
    description: str


@dataclass(frozen=True)
class Packaged:
    """An environment of a package. success_return: see `PackagedGame`."""

    package: Package
    env_id: str
    description: str
    success_return: float = ANY_REWARD


FAMILIES: dict[str, Delayed] = {
    "TMaze": Delayed(TMaze, "go down a corridor of {} steps and into the arm that was shown first"),
    "MemoryLength": Delayed(MemoryLength, "repeat a bit that was shown {} steps ago"),
    "VisualMatch": Delayed(VisualMatch, "step on the pad of the colour that was shown before {} steps of distraction"),
}
NUMPADS = {
    f"Numpad{size}x{size}-{length}": (size, length, f"find a hidden path of {length} tiles, and go it three times")
    for size, length in ((2, 3), (3, 4), (3, 6), (4, 6))
}
_POPGYM = {
    "Autoencode": "repeat the cards that were shown, backwards",
    "RepeatPrevious": "repeat the card of k steps ago",
    "RepeatFirst": "repeat the first card at every step",
    "CountRecall": "say how often the card that is asked for was shown",
    "PositionOnlyCartPole": "balance a pole without being shown velocities",
    "PositionOnlyPendulum": "swing a pendulum up without being shown its velocity",
    "VelocityOnlyCartpole": "balance a pole without being shown positions",
    "NoisyPositionOnlyCartPole": "balance a pole from noisy positions",
    "NoisyPositionOnlyPendulum": "swing a pendulum up from noisy positions",
    "MultiarmedBandit": "find the best of several slot machines",
    "HigherLower": "guess whether the next card is higher, by counting cards",
    "Battleship": "sink ships without shooting twice at a place",
    "Concentration": "turn cards over in matching pairs",
    "MineSweeper": "find mines from the numbers that were uncovered",
}
_MINIGRID = ("S7", "S9", "S11", "S13", "S13Random", "S17Random")
_MEMORY_GYM = {
    "MysteryPath": "go along an invisible path, off which one falls",
    "MortarMayhem": "carry out a sequence of commands that was shown",
    "SearingSpotlights": "collect coins in the dark and stay out of the spotlights",
}
PACKAGED: dict[str, Packaged] = {
    **{
        f"popgym-{name}{level}-v0": Packaged(POPGYM, f"popgym-{name}{level}-v0", text, POPGYM_SUCCESS)
        for name, text in _POPGYM.items()
        for level in LEVELS
    },
    **{
        f"MiniGrid-Memory{size}-v0": Packaged(
            MINIGRID, f"MiniGrid-Memory{size}-v0", "find at a junction the object that lay in the first room"
        )
        for size in _MINIGRID
    },
    **{
        env_id: Packaged(MEMORY_GYM, env_id, text)
        for name, text in _MEMORY_GYM.items()
        for env_id in (f"{name}-v0", *([f"{name}-Grid-v0"] if name != "SearingSpotlights" else []))
    },
}


def all_tasks() -> tuple[str, ...]:
    """The tasks that need no package besides PrediMem's own."""
    return (*(f"{family}{delay}" for family in FAMILIES for delay in DELAYS), *NUMPADS)


def listed_tasks() -> tuple[str, ...]:
    return (*all_tasks(), *PACKAGED)


def family_of(task: str) -> tuple[str, int] | None:
    """(family, delay) of a task that has a delay, None of any other."""
    parts = re.fullmatch(rf"({'|'.join(FAMILIES)})([1-9]\d{{0,5}})", task)
    return (parts[1], int(parts[2])) if parts else None


def family_name(task: str) -> str:
    """What tasks that differ in their delay, size or level have in common: what one agent is trained for."""
    found = family_of(task)
    return found[0] if found else re.sub(r"(Easy|Medium|Hard|S\d+(Random)?)?(-v0)?$", "", task)


def check_task(task: str) -> str:
    """The task itself. Raises ValueError for one that there is not."""
    if family_of(task) is None and task not in NUMPADS and task not in PACKAGED:
        raise ValueError(
            f"base: unknown task {task!r}; there are {', '.join(f'{name}<delay>' for name in FAMILIES)}, "
            f"{', '.join(NUMPADS)}, and those of the packages: `predimem tasks --benchmark base` lists them"
            f"{did_you_mean(task, listed_tasks())}"
        )
    return task


def describe(task: str) -> str:
    """A line that says what has to be done."""
    if (found := family_of(check_task(task))) is not None:
        return FAMILIES[found[0]].description.format(found[1])
    return NUMPADS[task][2] if task in NUMPADS else PACKAGED[task].description


def make_game(task: str) -> Game:
    """Raises ValueError for an unknown task, and MissingPackage where the task's package is not installed."""
    if (found := family_of(check_task(task))) is not None:
        return FAMILIES[found[0]].make(found[1])
    if task in NUMPADS:
        size, length, _ = NUMPADS[task]
        return Numpad(size, length)
    packaged, teacher = PACKAGED[task], teacher_of(task)
    check_installed(packaged.package, task)
    instruction = f"{packaged.description[:1].upper()}{packaged.description[1:]}."
    if teacher is None:
        return PackagedGame(packaged.env_id, instruction, packaged.success_return)
    return TaughtGame(packaged.env_id, teacher, instruction=instruction, success_return=packaged.success_return)
