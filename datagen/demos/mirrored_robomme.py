"""Mirrored episodes of RoboMME for actors, made without rendering.

A Panda is its own mirror image: with joints 1, 3 and 5 negated and joint 7 reflected about 45 degrees, the gripper is
where a mirror shows it. RoboMME's front camera stands in the plane of that mirror. So its images are flipped as they
are, with the arm in them, and cubes exchange their colours as in `edited_robomme`.

The wrist camera sits 2 cm beside that plane, so that its flipped image shows nothing that it could see. Mirrored
episodes have no wrist images (`ActorConfig.optional_cameras`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.edited_robomme import MIRRORED, RECOLOURED, Edit, can_be_mirrored, retold
from datagen.demos.robomme_images import FromImagesWorker, jobs_of, recoloured
from datagen.inputs import of_episodes
from predimem.core.episodes import Episode
from predimem.envs.robomme.labels import FRONT
from predimem.envs.robomme.robot import OPENING, POSITION
from predimem.jobs.tasks import Job

TURNED = (0, 2, 4, 6)  # the joints that a mirror turns the other way
HAND_RAD = np.pi / 4  # where the seventh joint has the hand in the plane of the mirror
SIDEWAYS = POSITION.start + 1  # of a state: the gripper's y


@dataclass(frozen=True)
class MirroredRobommeConfig:
    """Which episodes are mirrored.

    sources: a folder of RoboMME's episodes. Those of the tasks `MIRRORED` are used.
    out: the folder of the mirrored ones. Each has the seed of its source, so that both are on the same side of the
        validation split.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out",)

    kind: Literal["mirrored_robomme"] = "mirrored_robomme"
    sources: str = "runs/data/robomme/noisy"
    out: str = "runs/data/robomme/mirrored"

    def jobs(self) -> list[Job]:
        """Raises EpisodeError where there is no episode."""
        return jobs_of(self.sources, MIRRORED)

    def inputs(self) -> dict[str, str]:
        return of_episodes([self.sources])

    def for_workers(self) -> MirroredRobommeConfig:
        return replace(self, sources=str(Path(self.sources).resolve()))


class MirroredRobommeWorker(FromImagesWorker):
    discarded_because = "its cubes would come in another order"

    def made_of(self, source: Episode, rng: np.random.Generator) -> list[Episode]:
        if not can_be_mirrored(source):
            return []
        red, green, blue = rng.permutation(3) if source.task in RECOLOURED else range(3)
        return [mirrored(source, (int(red), int(green), int(blue)))]


def mirrored(episode: Episode, order: tuple[int, int, int]) -> Episode:
    """order: of the channels of its cubes, as in `Edit`."""
    images = recoloured(np.stack(list(episode.images[FRONT].images)), order)[:, :, ::-1]
    state = mirrored_joints(episode.state)
    state[:, OPENING] = episode.state[:, OPENING][:, ::-1]
    state[:, SIDEWAYS] *= -1
    told = retold(episode, Edit(True, order), np.ascontiguousarray(images))
    return replace(told, state=state, actions=mirrored_joints(episode.actions))


def mirrored_joints(rows: np.ndarray) -> np.ndarray:
    """float32 [T, D] that begin with seven joint angles in rad, to the same."""
    rows = rows.copy()
    rows[:, TURNED] *= -1
    rows[:, TURNED[-1]] += 2 * HAND_RAD
    return rows
