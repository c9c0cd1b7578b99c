"""Scenes of RoboMME of which the things can be told apart in the images, and moved to other cells.

Each container of a scene, with the cube under it, moves to another place of the table by whole cells of the grid that
labels name, so that the label of the new place is known. So does each cube of PickHighlight, with the white area under
it. The robot and the button stay where they are. A scene ends soon after it is due to choose, before the arm heads for
anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import ndimage

from datagen.demos.edited_robomme import Edit
from datagen.demos.robomme_images import cubes, recoloured, things
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.envs.robomme.labels import FRONT, GRID, cell_in

HIGHLIGHT = "PickHighlight"
TASKS = ("VideoUnmask", "ButtonUnmask", HIGHLIGHT)
AFTER_STEPS = 15  # so long the arm takes to leave for what it chose, and no longer
REACH, REACH_OF_AREA = 1.5, 1.05  # cells from the middle of a container, or of a white area; its pixels are no farther
CLEAR, CLEAR_OF_CUBES = 2.1, 1.6  # cells between the middles of things that stand side by side
LIT = 1.3  # a cube with a white area under it is at least so many times as large
WHERE = np.array([[4.4, 4.4], [9.6, 11.6]])  # (row, column): the part of the table on which RoboMME puts them
TRIES = 200
_CELL = re.compile(r"row \d+ column \d+")


@dataclass(frozen=True, eq=False)
class Scene:
    """An episode up to its choice, with its things apart.

    images: uint8 [N, H, W, 3], the front view; rows: int32 [T], which of them holds at each step.
    owner: int64 [N, H, W], whose pixel it is: the number of a thing that moves, -1 for what else is not the table, -2
        for it.
    middles: float64 [K, 2], (row, column) of the things that move, in cells; button: of what else is there at first.
    targets: what is due, as numbers of things, and the cells that labels name; the one in the first row, and there in
        the first column, is due first.
    """

    episode: Episode
    table: np.ndarray
    images: np.ndarray
    rows: np.ndarray
    owner: np.ndarray
    middles: np.ndarray
    button: np.ndarray
    targets: tuple[tuple[int, tuple[int, int]], ...]

    def drawn(self, rng: np.random.Generator) -> Episode | None:
        """The episode with other places and colours; None where no places are found."""
        shifts = self._shifts(rng)
        if shifts is None:
            return None
        a, b, c = rng.permutation(3).tolist()
        edit = Edit(False, (a, b, c))
        row, column = min(tuple((np.array(cell) + shifts[number]).tolist()) for number, cell in self.targets)
        end = len(self.rows)
        spans = [replace(span, end=min(span.end, end)) for span in self.episode.subtasks if span.start < end]
        spans[-1] = SubtaskSpan(spans[-1].start, end, _CELL.sub(f"row {row} column {column}", spans[-1].label))
        return replace(
            self.episode,
            instruction=edit.words(self.episode.instruction),
            goal="",
            images={FRONT: Frames(recoloured(self._composed(shifts), edit.order), self.rows)},
            state=self.episode.state[:end],
            actions=self.episode.actions[:end],
            subtasks=tuple(spans),
            keyframes=tuple(step for step in self.episode.keyframes if step < end),
            alternatives=None,
            metadata={**self.episode.metadata, "moved": shifts.tolist(), "channels": list(edit.order)},
        )

    def uncovered(self) -> Scene:
        """The scene from the choice on, a single image in which what was covered is seen."""
        choice = next(span for span in self.episode.subtasks if cell_in(span.label) is not None)
        start, end = choice.start, len(self.rows)
        seen = self.owner >= 0
        if self.episode.task != HIGHLIGHT:
            seen = seen & cubes(self.images)
        best = int(seen.sum((1, 2)).argmax())
        in_front = self.owner[-1] == -1
        owner = np.where(in_front, -1, np.where(self.owner[best] >= 0, self.owner[best], -2))
        episode = replace(
            self.episode,
            state=self.episode.state[start:end],
            actions=self.episode.actions[start:end],
            subtasks=(SubtaskSpan(0, end - start, choice.label),),
            keyframes=(0,),
            metadata={**self.episode.metadata, "uncovered": True, "video_steps": 0},
        )
        image = np.where(in_front[..., None], self.images[-1], self.images[best])
        rows = np.zeros(end - start, np.int32)
        return replace(self, episode=episode, images=image[None], owner=owner[None], rows=rows)

    def _shifts(self, rng: np.random.Generator) -> np.ndarray | None:
        """int64 [K, 2]: by how many rows and columns of the grid each thing moves."""
        least = np.ceil(WHERE[0] - self.middles).astype(int)
        most = np.floor(WHERE[1] - self.middles).astype(int)
        for _ in range(TRIES):
            shifts = rng.integers(least, most + 1)
            places = np.concatenate([self.middles + shifts, self.button])
            apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 100 * np.eye(len(places))
            if apart[: len(shifts)].min() >= _clear(self.episode.task):
                return shifts
        return None

    def _composed(self, shifts: np.ndarray) -> np.ndarray:
        size = self.table.shape[0] // GRID
        made = np.broadcast_to(self.table, self.images.shape).copy()
        for number, (row, column) in enumerate(shifts * size):
            frame, v, u = np.nonzero(self.owner == number)
            inside = (v + row >= 0) & (v + row < made.shape[1]) & (u + column >= 0) & (u + column < made.shape[2])
            frame, v, u = frame[inside], v[inside], u[inside]
            made[frame, v + row, u + column] = self.images[frame, v, u]
        return np.where((self.owner == -1)[..., None], self.images, made)


def scene_of(episode: Episode, table: np.ndarray) -> Scene | None:
    """None for an episode whose things cannot be told apart."""
    choice = next(span for span in episode.subtasks if cell_in(span.label) is not None)
    cells = [cell for span in episode.subtasks if (cell := cell_in(span.label)) is not None]
    cells = list(dict.fromkeys(cells)) if episode.task == HIGHLIGHT else cells[:1]
    end = min(choice.start + AFTER_STEPS, choice.end)
    front = episode.images[FRONT]
    rows = front.rows[:end]
    images = np.stack([front.images[int(row)] for row in range(int(rows[-1]) + 1)])
    foreground = things(images, table)
    middles, button = _standing(episode, images[0], foreground[0])
    if middles is None:
        return None
    size = table.shape[0] / GRID
    v, u = (np.mgrid[: table.shape[0], : table.shape[1]] + 0.5) / size
    distance = np.hypot(v - middles[:, 0, None, None], u - middles[:, 1, None, None])
    reach = REACH_OF_AREA if episode.task == HIGHLIGHT else REACH
    near, who = distance.min(0) <= reach, distance.argmin(0)
    owner = np.where(foreground, np.where(near, who, -1), -2)
    for index in range(1, len(images)):  # where the arm is in front of a thing, the image before holds on
        if _touched(foreground[index], near):
            images[index], owner[index] = images[index - 1], owner[index - 1]
    numbers = [int(np.linalg.norm(middles - (np.array(cell) + 0.5), axis=1).argmin()) for cell in cells]
    if episode.task == HIGHLIGHT and not all(_is_lit(owner == number) for number in numbers):
        return None  # something else was in front of it all the time
    return Scene(episode, table, images, rows, owner, middles, button, tuple(zip(numbers, cells, strict=True)))


def _standing(episode: Episode, image: np.ndarray, foreground: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """(middles of what moves, those of what else stands on the table), float64 [K, 2], in cells."""
    size, none = image.shape[0] / GRID, np.zeros((0, 2))
    numbers = _components(foreground)
    places = np.array(ndimage.center_of_mass(foreground, numbers, range(1, numbers.max() + 1))).reshape(-1, 2)
    areas = np.bincount(numbers.ravel())[1:]
    places = (places[areas > 8] + 0.5) / size
    if episode.task == "VideoUnmask":  # its first image shows the containers and no robot
        return (places if _apart(places) else None), none
    coloured = np.array([cubes(image)[int(v), int(u)] for v, u in places * size], bool)
    shown = places[coloured]
    if episode.task == HIGHLIGHT:
        return (shown if _apart(places, CLEAR_OF_CUBES) else None), places[~coloured]
    if episode.metadata.get("difficulty") != "easy":
        return None, none  # the first image shows three cubes, and there are more containers than those
    return (shown if len(shown) == 3 and _apart(places) else None), places[~coloured]


def _clear(task: str) -> float:
    return CLEAR_OF_CUBES if task == HIGHLIGHT else CLEAR


def _is_lit(mine: np.ndarray) -> bool:
    """Whether a white area appears under a cube. mine: bool [N, H, W], where it is in each image."""
    pixels = mine.sum((1, 2))
    return bool(pixels.max() >= LIT * pixels[0])


def _apart(places: np.ndarray, clear: float = CLEAR) -> bool:
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1) + 100 * np.eye(len(places))
    return 3 <= len(places) <= 7 and bool(distances.min() >= clear)


def _touched(foreground: np.ndarray, near: np.ndarray) -> bool:
    """Whether anything that is near a container reaches far beyond it."""
    numbers = _components(foreground)
    beyond = ~np.asarray(ndimage.binary_dilation(near, iterations=4), bool)
    return bool(set(np.unique(numbers[near])) & set(np.unique(numbers[beyond])) - {0})


def _components(mask: np.ndarray) -> np.ndarray:
    """int [H, W]: the number of the connected part that a pixel belongs to, from 1, or 0."""
    labelled: Any = ndimage.label(mask)
    return labelled[0]
