"""What a prompt says of the robot's state at the timesteps of the recent window, in millimetres.

Two images hardly show whether a slow hand rests, or whether fingers hold something thin.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predimem.core.types import Frame

# The rules of the system prompt that explain what is said.
MOVES = "- Its timesteps but the first say how far the hand moved since the one before."
OPENINGS = "- Its timesteps say how far the gripper is open."


def proprioception(frames: Sequence[Frame], hand_position: Sequence[int], gripper_opening: Sequence[int]) -> list[str]:
    """What is said of each frame, oldest first: "" where its state was not kept, or both options are empty.

    hand_position, gripper_opening: entries of the state, as in `planner.prompt.PromptConfig`. Raises ValueError where a
        state lacks one of them.
    """
    moves = [""] * len(frames)
    if hand_position:
        hands = [_entries(frame, hand_position, "hand_position") for frame in frames]
        pairs = zip((None, *hands), hands, strict=False)
        moves = ["" if a is None or b is None else moved(1000 * float(np.linalg.norm(b - a))) for a, b in pairs]
    openings = [""] * len(frames)
    if gripper_opening:
        gaps = [_entries(frame, gripper_opening, "gripper_opening") for frame in frames]
        openings = ["" if gap is None else opened(1000 * float(gap.sum())) for gap in gaps]
    return [move + opening for move, opening in zip(moves, openings, strict=True)]


def moved(distance_mm: float) -> str:
    """What is said of a hand that moved so far since the timestep before."""
    return f" The hand moved {round(distance_mm)} mm."


def opened(opening_mm: float) -> str:
    """What is said of a gripper that is open so far."""
    return f" The gripper is open by {max(0, round(opening_mm))} mm."


def _entries(frame: Frame, entries: Sequence[int], name: str) -> np.ndarray | None:
    if frame.state is None:
        return None
    try:
        return frame.state[list(entries)]
    except IndexError:
        raise ValueError(
            f"prompt.{name}: the state of step {frame.step} has {len(frame.state)} entries, and entry {max(entries)} "
            "is asked for, counted from 0"
        ) from None
