"""Targets for demonstrations that name none: a subtask's target is where its demonstration did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from predimem.core.episodes import Episode, SubtaskSpan


@dataclass(frozen=True)
class HindsightConfig:
    """Where an episode's rows say what the gripper did.

    position: the three entries of the state that are the gripper's position in m.
    gripper: the entry of the action that opens and closes it: below 0 closed, above 0 open.
    cameras: for each camera that stands still, its projection: 12 numbers, in 3 rows of 4, which turn a position
        (x, y, z, 1) in the frame of the state into (u · d, v · d, d), with u and v in fractions of the image. Other
        cameras have no pixels.
    """

    position: tuple[int, ...] = (0, 1, 2)
    gripper: int = 6
    cameras: dict[str, tuple[float, ...]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if len(self.position) != 3:
            raise ValueError(f"hindsight.position names three entries of the state, got {list(self.position)}")
        for name, rows in self.cameras.items():
            if len(rows) != 12:
                raise ValueError(f"hindsight.cameras: {name} needs 12 numbers, in 3 rows of 4, got {list(rows)}")

    def check(self, state_dim: int, action_dim: int, cameras: Sequence[str]) -> None:
        """Raises ValueError for what an episode of these sizes and cameras does not have."""
        if wrong := [entry for entry in self.position if not 0 <= entry < state_dim]:
            raise ValueError(f"hindsight.position: the state has the entries 0 to {state_dim - 1}, got {wrong}")
        if not 0 <= self.gripper < action_dim:
            raise ValueError(f"hindsight.gripper: an action has the entries 0 to {action_dim - 1}, got {self.gripper}")
        if unknown := sorted(set(self.cameras) - set(cameras)):
            raise ValueError(f"hindsight.cameras: {unknown[0]} is none of actor.cameras, {', '.join(cameras)}")

    def check_commands(self, episodes: Sequence[Episode]) -> None:
        """Raises ValueError if the gripper's commands vary and never change their sign, as an opening in m does.

        Commands that take two values alone, one of them 0, are accepted as well. Others that reach 0 and never pass it
        are refused.
        """
        commands = np.concatenate([episode.actions[:, self.gripper] for episode in episodes])
        low, high = float(commands.min()), float(commands.max())
        if low < high and not low < 0 < high and not (low * high == 0 and len(np.unique(commands)) == 2):
            raise ValueError(
                f"hindsight.gripper: entry {self.gripper} of the actions is between {low:g} and {high:g}, and never "
                "changes its sign, by which opening is told from closing: write -1 for closed and 1 for open"
            )

    def target_m(self, episode: Episode, span: SubtaskSpan) -> np.ndarray:
        """float32 [3], in the frame of the state: where the gripper was lowest from its last change in the subtask on.
        Without a change, it is where the subtask ended: buttons are pressed so."""
        commands = episode.actions[span.start : span.end, self.gripper]
        positions = episode.state[span.start : span.end, list(self.position)]
        changes = np.flatnonzero(np.diff(np.sign(commands)))
        if not len(changes):
            return positions[-1]
        after = positions[changes[-1] + 1 :]
        return after[after[:, 2].argmin()]

    def pixel(self, camera: str, target_m: np.ndarray) -> np.ndarray:
        """float32 [2]: where the camera sees a position, in fractions of the image; NaN for one that moves."""
        if camera not in self.cameras:
            return np.full(2, np.nan, np.float32)
        u, v, depth = np.reshape(self.cameras[camera], (3, 4)) @ [*target_m, 1.0]
        return np.array([u / depth, v / depth], np.float32) if depth > 0 else np.full(2, np.nan, np.float32)
