"""More episodes of RoboMME for planners, without rendering: its images are mirrored and its cubes recoloured.

Which container hides which colour is drawn anew in each scene, and rendering a scene costs seconds. In a recoloured
episode the cubes have exchanged their colours, so that the same scene has another answer; in a mirrored one all that
stands or moves on the table has changed sides. Instruction and labels follow.

Edited episodes are for planners only: they have the front images, and the states and actions of their source.
"""

from __future__ import annotations

import itertools
import re
import time
import zlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.generation import check_at_least
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode
from predimem.core.frames import Frames
from predimem.envs.robomme.labels import FRONT, GRID, cell_in
from predimem.jobs.tasks import Job, Outcome

COLOURS = ("red", "green", "blue")  # of RoboMME's cubes, in the order of the channels
BRIGHT = 60  # of 255: a cube's own channel is brighter than that
CHANGED = 12  # of 255, in one channel: a pixel that is not the table's
TABLES = 41  # so many first images show the empty table as their median
PURE = 0.3  # a cube's other channels are darker than this part of its own; the wooden table's are not
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

    may_differ: ClassVar[tuple[str, ...]] = ("out", "copies", "tasks")

    kind: Literal["edited_robomme"] = "edited_robomme"
    sources: str = "runs/data/robomme/skills"
    out: str = "runs/data/robomme/edited"
    copies: int = 3
    tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_at_least(self, 1, "copies")
        if unknown := set(self.tasks) - set(MIRRORED):
            raise ConfigError(f"expected tasks of {', '.join(MIRRORED)}, got {', '.join(sorted(unknown))}")

    def jobs(self) -> list[Job]:
        """Raises EpisodeError where there is no episode."""
        found = [(path.parent.name, int(path.stem.removeprefix("seed"))) for path in list_episodes(self.sources)]
        return [Job(task, seed) for task, seed in found if task in (self.tasks or MIRRORED)]

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


def cubes(images: np.ndarray) -> np.ndarray:
    """uint8 [..., H, W, 3] -> bool [..., H, W]: what has the pure colour of a cube."""
    highest = images.max(-1).astype(int)
    second = images.sum(-1, dtype=int) - highest - images.min(-1)
    return (highest > BRIGHT) & (second < PURE * highest)


def recoloured(images: np.ndarray, order: tuple[int, int, int]) -> np.ndarray:
    """uint8 [..., H, W, 3] -> uint8 [..., H, W, 3]: channel k of a cube becomes channel `order[k]`."""
    return np.where(cubes(images)[..., None], images[..., list(order)], images)


def things(images: np.ndarray, table: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W, 3] -> bool [N, H, W]: what is not the table, uint8 [H, W, 3]."""
    return np.abs(images.astype(np.int16) - table).max(-1) > CHANGED


class EditedRobommeWorker:
    """A `predimem.jobs.tasks.Worker`."""

    def __init__(self, config: EditedRobommeConfig):
        self._config = config
        self._table = cache(lambda: empty_table(config.sources))

    def play(self, job: Job) -> Outcome:
        began_s = time.perf_counter()
        source = load_episode(episode_path(self._config.sources, job.task, job.seed))
        rng = np.random.default_rng([job.seed, zlib.crc32(job.task.encode())])
        edits = edits_of(source)
        drawn = [edits[index] for index in rng.permutation(len(edits))[: self._config.copies]]
        for number, edit in enumerate(drawn, 1):
            save_episode(copy_path(self._config.out, number, job), edited(source, edit, self._table()))
        return Outcome(job.task, job.seed, True, "", len(source), round(time.perf_counter() - began_s, 3))

    def close(self) -> None:
        pass


def copy_path(out: str, number: int, job: Job) -> Path:
    """The file of an edited episode. The first copy, number 1, lies where `predimem datagen` looks for it."""
    return episode_path(out if number == 1 else f"{out}/copy_{number}", job.task, job.seed)


def edits_of(episode: Episode) -> list[Edit]:
    """Every edit after which instruction and labels are still those that RoboMME's rules would give."""
    orders = list(itertools.permutations(range(3))) if episode.task in RECOLOURED else [(0, 1, 2)]
    sides = [False, True] if _can_be_mirrored(episode) else [False]
    edits = [Edit(mirrored, (a, b, c)) for mirrored in sides for a, b, c in orders]
    return [edit for edit in edits if edit.mirrored or edit.order != (0, 1, 2)]


def edited(episode: Episode, edit: Edit, table: np.ndarray) -> Episode:
    """table: uint8 [H, W, 3], the front view of the empty table."""
    front = episode.images[FRONT]
    return replace(
        episode,
        instruction=edit.words(episode.instruction),
        goal=edit.words(episode.goal),
        images={FRONT: Frames(edit.images(np.stack(list(front.images)), table), front.rows)},
        subtasks=tuple(replace(span, label=edit.words(span.label)) for span in episode.subtasks),
        metadata={**episode.metadata, "edit": {"mirrored": edit.mirrored, "channels": list(edit.order)}},
    )


def empty_table(sources: str) -> np.ndarray:
    """uint8 [H, W, 3]: nothing stands at the same place in half of the episodes."""
    paths = list_episodes(sources)
    chosen = paths[:: max(1, len(paths) // TABLES)]
    return np.median([load_episode(path).images[FRONT][0] for path in chosen], axis=0).astype(np.uint8)


def _can_be_mirrored(episode: Episode) -> bool:
    """PickHighlight goes through its cubes by their cells, so that two in one row would come in the other order."""
    cells = {cell for span in episode.subtasks if (cell := cell_in(span.label)) is not None}
    return episode.task != "PickHighlight" or len({row for row, _ in cells}) == len(cells)
