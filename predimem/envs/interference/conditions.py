"""What the history before an episode holds: drawn from family, condition and seed alone, with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predimem.envs.interference.families import FAMILIES, Family

NO_HISTORY = "no-history"
PAPER = (NO_HISTORY, "k0", "k1", "k3", "k7")  # RoboMME-Interference (arXiv:2606.22338)
BEYOND = ("k15", "k31")
UNRELATED, OLDER, NEWER, OTHERS, ABSENT = "", "older", "newer", "others", "absent"
KINDS = {
    UNRELATED: "unrelated sessions after the lesson",
    OLDER: "sessions of the same family with another cue before the lesson",
    NEWER: "sessions of the same family after the lesson, of which the newest one has another cue, which counts",
    OTHERS: "sessions of the same family with another cue after the lesson, of another person or robot",
    ABSENT: "unrelated sessions, and no lesson",
}
CONTRADICTING = tuple(f"k{k}-{kind}" for kind in (OLDER, NEWER, OTHERS) for k in (1, 3))
CONDITIONS = (*PAPER, *BEYOND, *CONTRADICTING, f"k7-{ABSENT}")
ROBOTS, PERSONS = ("robot-1", "robot-2"), ("Anna", "Ben")
DAY_S = 86_400.0
OWN = -1  # the number of a lesson that is the episode's own video

Chosen = tuple[str, int, int]  # family, value, number


@dataclass(frozen=True)
class Condition:
    """k distractors of a kind; lesson: whether there is one at all."""

    name: str
    k: int
    kind: str
    lesson: bool


@dataclass(frozen=True)
class PlannedSession:
    """A session of a history. number: which of the recorded sessions of its family and value."""

    family: str
    value: int
    number: int
    age_s: float
    robot: str
    person: str
    relevant: bool


@dataclass(frozen=True)
class Draw:
    """An episode: the value that counts, the seed of its test, who plays it and what there was before."""

    value: int
    test_seed: int
    robot: str
    person: str
    sessions: tuple[PlannedSession, ...]


def condition_of(name: str) -> Condition:
    """Raises ValueError for a name that is none."""
    if name == NO_HISTORY:
        return Condition(name, 0, UNRELATED, lesson=False)
    found = re.fullmatch(r"k(\d+)(?:-(\w+))?", name)
    kind = found[2] or UNRELATED if found else ""
    if found is None or kind not in KINDS or (kind and found[1] == "0"):
        raise ValueError(
            f"unknown condition {name!r}; expected {NO_HISTORY}, k and a number, or that with one of "
            f"{', '.join(kind for kind in KINDS if kind)} behind, such as {', '.join(CONDITIONS)}"
        )
    return Condition(name, int(found[1]), kind, lesson=kind != ABSENT)


def draw(family: Family, condition: Condition, seed: int, pool: int) -> Draw:
    """pool: how many sessions of each value are recorded.

    What does not depend on the distractors (value, lesson, the layout of the test, who plays) is the same in all
    conditions of a seed, so that conditions are paired; but with `newer` distractors the last of them counts.
    """
    rng = np.random.default_rng([seed, list(FAMILIES).index(family.name)])
    value, number, test_seed = int(rng.integers(family.values)), int(rng.integers(pool)), int(rng.integers(2**31))
    robot, person, lesson_age_s = _who_and_when(rng)
    own = PlannedSession(family.name, value, number, lesson_age_s, robot, person, relevant=True)
    others = [f for f in FAMILIES.values() if f is not family]

    def unrelated(drawn: np.random.Generator) -> Chosen:
        other = others[int(drawn.integers(len(others)))]
        return other.name, int(drawn.integers(other.values)), int(drawn.integers(pool))

    def contrary(drawn: np.random.Generator) -> Chosen:
        wrong = (value + 1 + int(drawn.integers(family.values - 1))) % family.values
        return family.name, wrong, int(drawn.integers(pool))

    sessions = _sessions(condition, seed, own, unrelated, contrary)
    if condition.kind == NEWER:
        sessions = [replace(s, relevant=s is sessions[-1]) for s in sessions]
        value = sessions[-1].value
    return Draw(value, test_seed, robot, person, _aged(sessions, lesson_age_s))


def draw_videos(task: str, tasks: Sequence[str], condition: Condition, seed: int, pool: int) -> Draw:
    """As `draw`, of RoboMME's tasks with a conditioning video (`tasks`).

    The lesson is the video of the very episode, with the number OWN; distractors are videos of other episodes, numbered
    from 0.
    There is no `newer` kind: a test takes place in the scene of its own video, so that no other video counts.
    """
    rng = np.random.default_rng([seed, len(FAMILIES) + list(tasks).index(task)])
    robot, person, lesson_age_s = _who_and_when(rng)
    own = PlannedSession(task, 0, OWN, lesson_age_s, robot, person, relevant=True)
    others = [other for other in tasks if other != task]

    def unrelated(drawn: np.random.Generator) -> Chosen:
        return others[int(drawn.integers(len(others)))], 0, int(drawn.integers(pool))

    def contrary(drawn: np.random.Generator) -> Chosen:
        return task, 0, int(drawn.integers(pool))

    sessions = _sessions(condition, seed, own, unrelated, contrary)
    return Draw(0, seed, robot, person, _aged(sessions, lesson_age_s))


def _who_and_when(rng: np.random.Generator) -> tuple[str, str, float]:
    """(robot, person, age of the lesson in seconds)."""
    robot, person = int(rng.integers(len(ROBOTS))), int(rng.integers(len(PERSONS)))
    return ROBOTS[robot], PERSONS[person], float(rng.uniform(1, 5)) * DAY_S


def _sessions(
    condition: Condition,
    seed: int,
    own: PlannedSession,
    unrelated: Callable[[np.random.Generator], Chosen],
    contrary: Callable[[np.random.Generator], Chosen],
) -> list[PlannedSession]:
    """The lesson and its distractors, oldest first."""
    sessions = [own] if condition.lesson else []
    for index in range(condition.k):
        # Ages keep their order whatever k is: the i-th distractor is always the same session at the same rank.
        drawn = np.random.default_rng([seed, 7919, index])
        if condition.kind in (UNRELATED, ABSENT):
            chosen = unrelated(drawn)
            sessions.append(PlannedSession(*chosen, 0.0, *_same_or_other(drawn, own.robot, own.person), relevant=False))
            continue
        session = PlannedSession(*contrary(drawn), 0.0, own.robot, own.person, relevant=False)
        if condition.kind == OTHERS:
            session = _of_somebody_else(session, drawn)
        sessions.insert(index, session) if condition.kind == OLDER else sessions.append(session)
    return sessions


def _aged(sessions: list[PlannedSession], oldest_after_s: float) -> tuple[PlannedSession, ...]:
    """The sessions, oldest first, evenly apart in time, the newest an hour ago at least."""
    count = len(sessions)
    return tuple(replace(s, age_s=oldest_after_s * (count - i) / count + 3600.0) for i, s in enumerate(sessions))


def _same_or_other(rng: np.random.Generator, robot: str, person: str) -> tuple[str, str]:
    """Unrelated sessions are of whoever: half of them of the same robot and person."""
    if rng.random() < 0.5:
        return robot, person
    return ROBOTS[int(rng.integers(len(ROBOTS)))], PERSONS[int(rng.integers(len(PERSONS)))]


def _of_somebody_else(session: PlannedSession, rng: np.random.Generator) -> PlannedSession:
    if rng.random() < 0.5:
        return replace(session, robot=next(robot for robot in ROBOTS if robot != session.robot))
    return replace(session, person=next(person for person in PERSONS if person != session.person))
