"""More episodes of RoboMME for actors, without rendering: what the arm did, it does on the other side of the table.

The Panda is its own mirror image: with its first, third and fifth joint turned the other way, and its seventh as far to
the other side of 45 degrees, the gripper is where a mirror would show it. RoboMME's front camera stands in the middle.
So its images are mirrored whole, with the arm. Cubes exchange their colours as in `edited_robomme`.

The wrist camera sits 2 cm beside the middle of the hand, so that a mirrored image is none that it could see. Mirrored
episodes do not have it (`actor.optional_cameras`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.edited_robomme import MIRRORED, RECOLOURED, Edit
from datagen.demos.robomme_images import FromImagesWorker, jobs_of, recoloured
from predimem.core.episodes import Episode
from predimem.core.frames import Frames
from predimem.envs.robomme.labels import FRONT
from predimem.jobs.tasks import Job

TURNED = (0, 2, 4, 6)  # the joints that turn about an axis in the plane of the mirror
HAND_RAD = np.pi / 4  # where the seventh joint has the hand in that plane
FINGERS = slice(7, 9)  # of a state
SIDEWAYS = 10  # of a state: the position of the gripper from right to left


@dataclass(frozen=True)
class MirroredRobommeConfig:
    """Which episodes are mirrored.

    sources: a folder of RoboMME's episodes.
    out: the folder of the mirrored ones. Each has the seed of its source, so that training holds both out.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out",)
    copies: ClassVar[int] = 1

    kind: Literal["mirrored_robomme"] = "mirrored_robomme"
    sources: str = "runs/data/robomme/noisy"
    out: str = "runs/data/robomme/mirrored"

    def jobs(self) -> list[Job]:
        """Raises EpisodeError where there is no episode."""
        return jobs_of(self.sources, MIRRORED)

    def for_workers(self) -> MirroredRobommeConfig:
        return replace(self, sources=str(Path(self.sources).resolve()))


class MirroredRobommeWorker(FromImagesWorker):
    def made_of(self, source: Episode, copies: int, rng: np.random.Generator) -> list[Episode]:
        red, green, blue = rng.permutation(3) if source.task in RECOLOURED else range(3)
        return [mirrored(source, Edit(True, (int(red), int(green), int(blue))))]


def mirrored(episode: Episode, edit: Edit) -> Episode:
    """edit: the order of its colours."""
    front = episode.images[FRONT]
    images = recoloured(np.stack(list(front.images)), edit.order)[:, :, ::-1]
    state = mirrored_joints(episode.state)
    state[:, FINGERS] = episode.state[:, FINGERS][:, ::-1]
    state[:, SIDEWAYS] *= -1
    return replace(
        episode,
        instruction=edit.words(episode.instruction),
        goal=edit.words(episode.goal),
        images={FRONT: Frames(np.ascontiguousarray(images), front.rows)},
        state=state,
        actions=mirrored_joints(episode.actions),
        subtasks=tuple(replace(span, label=edit.words(span.label)) for span in episode.subtasks),
        metadata={**episode.metadata, "edit": {"mirrored": True, "channels": list(edit.order)}},
    )


def mirrored_joints(rows: np.ndarray) -> np.ndarray:
    """float32 [T, D] that begin with seven joint angles in rad, to the same."""
    rows = rows.copy()
    rows[:, TURNED] *= -1
    rows[:, TURNED[-1]] += 2 * HAND_RAD
    return rows
