"""More episodes of RoboMME for planners, without rendering: its images are mirrored and its cubes recoloured.

Which container hides which colour is drawn anew in each scene, and rendering a scene costs seconds. In a recoloured
episode the cubes have exchanged their colours, so that the same scene has another answer; in a mirrored one all that
stands or moves on the table has changed sides. Instruction and labels follow.

Edited episodes are for planners only: they have the front images, and the states and actions of their source. Episodes
for actors are made by `mirrored_robomme`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.robomme_images import COLOURS, FromImagesWorker, jobs_of, recoloured, things
from datagen.generation import check_at_least
from datagen.inputs import of_episodes
from predimem.core.config import ConfigError
from predimem.core.episodes import Episode
from predimem.core.frames import Frames
from predimem.envs.robomme.labels import FRONT, GRID, cell_in
from predimem.jobs.tasks import Job

RECOLOURED = ("VideoUnmask", "ButtonUnmask", "ButtonUnmaskSwap", "PickHighlight", "PickXtimes")
MIRRORED = (*RECOLOURED, "BinFill", "MoveCube")  # BinFill takes colours in RoboMME's order; MoveCube names none
_WORD = re.compile(rf"\b({'|'.join(COLOURS)})\b")
_COLUMN = re.compile(r"column \d+")


@dataclass(frozen=True)
class EditedRobommeConfig:
    """Which episodes are made of which.

    sources: a folder of RoboMME's episodes.
    out: the folder of the edited ones. An edited episode has the seed of its source, so that training holds both out;
        the second copy and those after it lie in folders of their own therein.
    copies: how many edited episodes are made of each, every one with another edit. BinFill and MoveCube have one edit,
        the others eleven.
    tasks: those whose episodes are edited; empty: all that can be.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out", "tasks")

    kind: Literal["edited_robomme"] = "edited_robomme"
    sources: str = "runs/data/robomme/skills"
    out: str = "runs/data/robomme/edited"
    copies: int = 4
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_at_least(self, 1, "copies")
        if unknown := set(self.tasks) - set(MIRRORED):
            raise ConfigError(f"expected tasks of {', '.join(MIRRORED)}, got {', '.join(sorted(unknown))}")

    def jobs(self) -> list[Job]:
        """Raises EpisodeError where there is no episode."""
        return jobs_of(self.sources, self.tasks or MIRRORED)

    def inputs(self) -> dict[str, str]:
        return of_episodes([self.sources])

    def for_workers(self) -> EditedRobommeConfig:
        return replace(self, sources=str(Path(self.sources).resolve()))


@dataclass(frozen=True)
class Edit:
    """order: channel k of a recoloured cube is channel `order[k]` of the source."""

    mirrored: bool
    order: tuple[int, int, int]

    def images(self, images: np.ndarray, table: np.ndarray) -> np.ndarray:
        """uint8 [N, H, W, 3] -> uint8 [N, H, W, 3]. table: the same view without things, uint8 [H, W, 3]."""
        edited = recoloured(images, self.order)
        if not self.mirrored:
            return edited
        return np.where(things(edited, table)[:, :, ::-1, None], edited[:, :, ::-1], table)

    def words(self, text: str) -> str:
        """Of an instruction or a label."""
        text = _WORD.sub(lambda found: COLOURS[self.order.index(COLOURS.index(found[1]))], text)
        if self.mirrored and (cell := cell_in(text)) is not None:
            text = _COLUMN.sub(f"column {GRID - 1 - cell[1]}", text)
        return text


class EditedRobommeWorker(FromImagesWorker):
    def __init__(self, config: EditedRobommeConfig):
        super().__init__(config)
        self._copies = config.copies

    def made_of(self, source: Episode, rng: np.random.Generator) -> list[Episode]:
        edits = edits_of(source)
        return [edited(source, edits[index], self.table()) for index in rng.permutation(len(edits))[: self._copies]]


def edits_of(episode: Episode) -> list[Edit]:
    """Every edit after which instruction and labels are still those that RoboMME's rules would give."""
    orders = list(itertools.permutations(range(3))) if episode.task in RECOLOURED else [(0, 1, 2)]
    sides = [False, True] if can_be_mirrored(episode) else [False]
    edits = [Edit(mirrored, (a, b, c)) for mirrored in sides for a, b, c in orders]
    return [edit for edit in edits if edit.mirrored or edit.order != (0, 1, 2)]


def edited(episode: Episode, edit: Edit, table: np.ndarray) -> Episode:
    """table: uint8 [H, W, 3], the front view of the empty table."""
    front = episode.images[FRONT]
    return retold(episode, edit, edit.images(np.stack(list(front.images)), table))


def retold(episode: Episode, edit: Edit, images: np.ndarray) -> Episode:
    """The episode with the edit's words and these front images, uint8 [N, H, W, 3], alone."""
    return replace(
        episode,
        instruction=edit.words(episode.instruction),
        goal=edit.words(episode.goal),
        images={FRONT: Frames(images, episode.images[FRONT].rows)},
        subtasks=tuple(replace(span, label=edit.words(span.label)) for span in episode.subtasks),
        metadata={**episode.metadata, "edit": {"mirrored": edit.mirrored, "channels": list(edit.order)}},
    )


def can_be_mirrored(episode: Episode) -> bool:
    """PickHighlight goes through its cubes by their cells, so that two in one row would come in the other order."""
    cells = {cell for span in episode.subtasks if (cell := cell_in(span.label)) is not None}
    return episode.task != "PickHighlight" or len({row for row, _ in cells}) == len(cells)
