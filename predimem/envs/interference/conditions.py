"""What the history before an episode holds: drawn from family, condition and seed alone, with NumPy."""

from __future__ import annotations

import re
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
    who = int(rng.integers(len(ROBOTS))), int(rng.integers(len(PERSONS)))
    lesson_age_s = float(rng.uniform(1, 5)) * DAY_S
    robot, person = ROBOTS[who[0]], PERSONS[who[1]]
    own = PlannedSession(family.name, value, number, lesson_age_s, robot, person, relevant=True)
    sessions = [own] if condition.lesson else []
    others = [f for f in FAMILIES.values() if f is not family]
    for index in range(condition.k):
        # Ages keep their order whatever k is: the i-th distractor is always the same session at the same rank.
        drawn = np.random.default_rng([seed, 7919, index])
        if condition.kind in (UNRELATED, ABSENT):
            other = others[int(drawn.integers(len(others)))]
            planned = (other.name, int(drawn.integers(other.values)), int(drawn.integers(pool)))
            sessions.append(PlannedSession(*planned, 0.0, *_same_or_other(drawn, robot, person), relevant=False))
            continue
        wrong = (value + 1 + int(drawn.integers(family.values - 1))) % family.values
        session = PlannedSession(family.name, wrong, int(drawn.integers(pool)), 0.0, robot, person, relevant=False)
        if condition.kind == OTHERS:
            session = _of_somebody_else(session, drawn)
        sessions.insert(index, session) if condition.kind == OLDER else sessions.append(session)
    if condition.kind == NEWER:
        sessions = [replace(s, relevant=s is sessions[-1]) for s in sessions]
        value = sessions[-1].value
    return Draw(value, test_seed, robot, person, _aged(sessions, lesson_age_s))


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
