"""The boxes of the gripper, against points whose places in it are known."""

from __future__ import annotations

import numpy as np
import pytest

from datagen.grasp.gripper import in_the_way


@pytest.mark.parametrize(
    ("point", "hit"),
    [
        ((0.0, 0.0, 0.0), False),  # between the pads
        ((0.0, 0.048, 0.0), True),  # in a finger
        ((0.0, -0.048, 0.0), True),  # in the other
        ((0.015, 0.048, 0.0), False),  # below its end
        ((0.0, 0.048, 0.02), False),  # beside it
        ((0.0, 0.063, 0.0), False),  # outside of its end
        ((-0.03, 0.063, 0.0), True),  # the root is further out
        ((-0.05, 0.0, 0.0), True),  # in the palm
        ((-0.05, 0.10, 0.03), True),  # at its corner
        ((-0.05, 0.10, 0.04), False),
        ((-0.03, 0.0, 0.0), False),  # between the fingers, under the palm
        ((-0.30, 0.0, 0.0), False),  # behind where the gripper comes from
    ],
)
def test_points(point: tuple[float, float, float], hit: bool) -> None:
    assert in_the_way(np.array([point]), 0.0) == int(hit)


def test_room_makes_it_larger() -> None:
    near = np.array([[0.0, 0.038, 0.0]])
    assert in_the_way(near, 0.0) == 0
    assert in_the_way(near, 0.003) == 1
