"""What becomes of a motion for which no path is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from predimem.envs.robomme.motions import NO_SPEEDS, _with_retries


class NoPath(Exception):
    """As RoboMME's own `ScrewPlanFailure`."""


def moved(straight: object, around: object) -> Any:
    """What the motion gives where the two planners give, or raise, these."""
    tried: list[str] = []

    def planner(name: str, outcome: object) -> Any:
        def plan(pose: str) -> object:
            tried.append(name)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return plan

    solver = SimpleNamespace(
        move_to_pose_with_screw=planner("straight", straight), move_to_pose_with_RRTStar=planner("around", around)
    )
    return _with_retries(solver, NoPath)("there"), tried


@pytest.mark.parametrize("straight", [NoPath(), RuntimeError(NO_SPEEDS), -1])
def test_where_there_is_no_straight_path_one_around_is_looked_for(straight: object) -> None:
    assert moved(straight, "a path") == ("a path", ["straight", "around"])
    assert moved(straight, RuntimeError(NO_SPEEDS)) == (-1, ["straight", "around", "around", "around"])
    assert moved("a path", None) == ("a path", ["straight"])


def test_other_errors_are_errors() -> None:
    with pytest.raises(RuntimeError, match="the simulation is gone"):
        moved(RuntimeError("the simulation is gone"), "a path")
