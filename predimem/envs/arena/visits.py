"""What happens in an episode without the robot: pauses, and visits of somebody who moves things.

A stage is called by its number, from 0. The simulator plays this (`scene.visitor`); no demonstration of the 26 tasks
has any of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from predimem.envs.arena.fixtures import CABINET, DRAWERS, PLACES

PULLED_M = 0.18  # how far somebody pulls a drawer out
SHUT_M = 0.0


@dataclass(frozen=True)
class Pause:
    """The robot has to wait before a stage: for so many control steps (20 a second) that stage does not pass."""

    stage: int
    steps: int


@dataclass(frozen=True)
class Slide:
    """Somebody moves a drawer until it is so far open, m."""

    drawer: str
    opening_m: float


@dataclass(frozen=True)
class Carry:
    """Somebody takes an object to a place: into a free slot of it, or to a free point of the table."""

    object: str
    place: str


Act = Slide | Carry


@dataclass(frozen=True)
class Visit:
    """Somebody does something: one act after the other, from `delay_steps` control steps after `stage` became due.

    It does not take place if the stage passes before; a pause does not end before its visits.
    """

    stage: int
    delay_steps: int
    acts: tuple[Act, ...]


def check_visits(pauses: tuple[Pause, ...], visits: tuple[Visit, ...], objects: tuple[str, ...], stages: int) -> None:
    """Raises ValueError for objects, drawers, openings, places or stages that there are not."""
    for pause in pauses:
        if not 1 <= pause.stage < stages or pause.steps < 1:
            raise ValueError(f"a pause is before a stage from 1 to {stages - 1} and has 1 step or more; got {pause}")
    if len({pause.stage for pause in pauses}) < len(pauses):
        raise ValueError(f"there is at most one pause before a stage; got {pauses}: put them together")
    for visit in visits:
        if not 0 <= visit.stage < stages or visit.delay_steps < 0 or not visit.acts:
            raise ValueError(f"a visit has a stage from 0 to {stages - 1}, a delay of 0 or more, and acts; got {visit}")
        for act in visit.acts:
            known, name = (DRAWERS, act.drawer) if isinstance(act, Slide) else (objects, act.object)
            if name not in known:
                raise ValueError(f"somebody moves {name!r}; there are: {', '.join(known)}")
            if isinstance(act, Slide) and not 0 <= act.opening_m <= CABINET.travel_m:
                raise ValueError(
                    f"a drawer opens by 0 to {CABINET.travel_m:g} m; somebody moves it to {act.opening_m:g} m"
                )
            if isinstance(act, Carry) and act.place not in PLACES:
                raise ValueError(f"somebody takes {name} to {act.place!r}; there are: {', '.join(PLACES)}")
