"""The Panda's open gripper as boxes, and whether points are in the way of it."""

from __future__ import annotations

import numpy as np

MAX_WIDTH_M = 0.08  # between the open fingers
TIP_M = 0.0095  # from the TCP to the ends of the fingers
SWEPT_M = 0.20  # the gripper comes along its approach: what is up to here behind the TCP is in its way
HALF_ACROSS_M = 0.032  # of the widest part, the palm
HALF_ALONG_M = 0.104  # of the palm, in the closing direction

# How far each part goes along the approach (from the TCP), where it is in the closing direction (from the middle, on
# both sides), and half of it across both. As the collision shapes of the robot's model.
PARTS = (
    (TIP_M, (0.040, 0.0555), 0.009),  # the ends of the fingers
    (-0.008, (0.042, 0.061), 0.009),  # where they bend outwards
    (-0.021, (0.045, 0.0665), 0.011),  # their roots
    (-0.037, (0.0, HALF_ALONG_M), HALF_ACROSS_M),
)


def in_the_way(points: np.ndarray, room_m: float) -> int:
    """How many of the points [P, 3] the open gripper would hit, or miss by less than `room_m`.

    points: from the TCP, in the frame of a `Grasp`: approach, closing direction, across.
    """
    along, closing, across = points[:, 0], np.abs(points[:, 1]), np.abs(points[:, 2])
    hit = np.zeros(len(points), bool)
    for far, (inner, outer), half in PARTS:
        hit |= (
            (along < far + room_m) & (closing >= inner - room_m) & (closing < outer + room_m) & (across < half + room_m)
        )
    return int((hit & (along > -SWEPT_M)).sum())
