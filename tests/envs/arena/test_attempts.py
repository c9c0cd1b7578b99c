"""Failed attempts at a joint, in true states that are set by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from predimem.envs.arena.achievements import LOOK_STEPS
from predimem.envs.arena.attempts import STILL_LOOKS, STOPPED, FailedAttempts
from predimem.envs.arena.fixtures import DOOR
from predimem.envs.arena.subtasks import Subtask, close_joint, open_joint
from tests.envs.arena.worlds import made


def attempts(subtask: Subtask, joint: list[float]) -> list[tuple[str, ...]]:
    """What failed at each look, while the subtask's joint goes through these openings and stays at the last one."""
    opening = joint[0]
    simulation = SimpleNamespace(
        progress=SimpleNamespace(stage=torch.tensor([0])),
        variant=lambda: SimpleNamespace(subtasks=(subtask,)),
        world=lambda: made(1, {}, joint={subtask.target: opening}),
    )
    watch, found = FailedAttempts(simulation), []
    for look, opening in enumerate(joint + [joint[-1]] * (STILL_LOOKS + 1)):  # noqa: B007 (`world` reads it)
        found.append(watch.look(look * LOOK_STEPS))
    return found


@pytest.mark.parametrize(
    ("subtask", "opening", "failed"),
    [
        (open_joint("open", "top_drawer"), 0.05, True),  # m
        (open_joint("open", "top_drawer"), 0.01, False),
        (open_joint("open", DOOR), 0.3, True),  # rad
        (open_joint("open", DOOR), 0.05, False),  # a door that was only touched
        (close_joint("close", DOOR), -0.3, True),
        (close_joint("close", DOOR), -0.05, False),
    ],
)
def test_a_joint_that_was_moved_and_left_is_an_attempt_that_stopped_short(
    subtask: Subtask, opening: float, failed: bool
) -> None:
    start = 0.0 if opening > 0 else 1.0
    found = attempts(subtask, [start, start + opening])
    assert [kinds for kinds in found if kinds] == ([(STOPPED,)] if failed else [])
