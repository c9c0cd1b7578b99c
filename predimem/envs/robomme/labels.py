"""The words of RoboMME's subgoals as subtask labels, which say no more than images can justify.

RoboMME has a task list for each episode. Most of its names are labels as they are, such as "pick up the green cube for
the second time". Two are not: "pick up the container that hides the red cube" and "pick up the first highlighted cube,
which is red" leave out which thing is meant, which is what has to be remembered. A low-level policy that knows the true
state would find it by these words without any memory. So these labels say the place instead, as a cell of a grid over
the front image: "pick up the container at row 5 column 9".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

GRID = 16  # rows and columns over the front image
MOVED_CELLS = 1.5  # from the middle of a cell: so far a thing has to be for another one
STANDING_M = 0.08  # a thing whose middle is higher is being lifted
WATCH = "watch the video"  # the label of a conditioning video
FRONT = "base_camera"
SPOKEN_COLOURS = ("red", "blue", "green")  # in the order in which the instructions of BinFill name them
_BY_PLACE = re.compile(r"pick up the (container) that hides|pick up the (?:\w+ )?highlighted (cube)", re.IGNORECASE)
_PIXEL = re.compile(r"<(\d+), *(\d+)>")
_CELL = re.compile(r"at row (\d+) column (\d+)")


@dataclass(frozen=True)
class Due:
    """What is due now: its label and RoboMME's own name; how many of the subgoals that are the robot's have passed."""

    label: str
    name: str
    passed: int
    total: int


def put_in_order(simulation: Any) -> None:
    """Sort those parts of the task list whose order RoboMME draws, shows nowhere and does not grade.

    Which of several highlighted cubes comes first, and which colour goes into the bin first, would otherwise be labels
    that no image and no instruction justifies. Success stays what it was: in PickHighlight it counts which cubes were
    picked up, and in BinFill how many of each colour are in the bin when the button is pressed.
    """
    task = simulation.spec.id
    if task == "PickHighlight":
        picks = [place for place, entry in enumerate(simulation.task_list) if _BY_PLACE.match(entry["name"])]
        entries = [simulation.task_list[place] for place in picks]
        entries.sort(key=lambda entry: cell(pixel(thing_of(entry), simulation)))
        for place, entry in zip(picks, entries, strict=True):
            simulation.task_list[place] = entry
    elif task == "BinFill":
        *both, button = simulation.task_list
        pairs = [both[i : i + 2] for i in range(0, len(both), 2)]
        pairs.sort(key=lambda pair: next(i for i, name in enumerate(SPOKEN_COLOURS) if name in pair[0]["name"]))
        simulation.task_list[:] = [*(entry for pair in pairs for entry in pair), button]


class SubgoalLabels:
    """The labels of one episode's subgoals.

    The place of a thing is where it stands when its subgoal is asked for first, so that the label stays while the robot
    lifts it. It changes where the thing itself moves on by more than a cell, as containers do that are swapped.
    """

    def __init__(self, simulation: Any):
        self._simulation = simulation
        self._cells: dict[int, tuple[int, int]] = {}
        shown = [task for task in simulation.task_list if task.get("demonstration")]
        self._first = len(shown)

    def of(self, index: int) -> str:
        """The label of an entry of RoboMME's task list."""
        task = self._simulation.task_list[index]
        found = _BY_PLACE.match(task["name"])
        if found is None:
            return str(task["name"]).lower()
        row, column = self._cell_of(index, thing_of(task))
        return f"pick up the {found[1] or found[2]} at row {row} column {column}"

    def due(self) -> Due:
        """The subgoal that RoboMME's own check waits for; the last one where all have passed."""
        tasks = self._simulation.task_list
        index = min(max(int(self._simulation.timestep), self._first), len(tasks))
        shown = min(index, len(tasks) - 1)
        return Due(self.of(shown), tasks[shown]["name"], index - self._first, len(tasks) - self._first)

    def _cell_of(self, index: int, thing: Any) -> tuple[int, int]:
        place = pixel(thing, self._simulation)
        known = self._cells.get(index)
        standing = float(thing.pose.p[0, 2]) < STANDING_M
        if known is None or (standing and np.abs(place - middle(*known)).max() * GRID > MOVED_CELLS):
            self._cells[index] = cell(place)
        return self._cells[index]


def thing_of(task: dict[str, Any]) -> Any:
    """What an entry of RoboMME's task list is about."""
    segment = task["segment"]
    return segment[0] if isinstance(segment, list | tuple) else segment


def label_of_words(name: str, grounded: str, size_px: int) -> str | None:
    """The label of a subgoal in RoboMME's data: its name, and the same with places as `<y, x>` in pixels of the front
    image, which is `size_px` high and wide. None where a place is wanted and not given."""
    found = _BY_PLACE.match(name)
    if found is None:
        return name.lower()
    place = _PIXEL.search(grounded)
    if place is None:
        return None
    row, column = cell(np.array([int(place[2]), int(place[1])]) / size_px)
    return f"pick up the {found[1] or found[2]} at row {row} column {column}"


def cell_in(label: str) -> tuple[int, int] | None:
    """(row, column) of the grid that a label names."""
    found = _CELL.search(label)
    return None if found is None else (int(found[1]), int(found[2]))


def without_cell(label: str) -> str:
    """The label without its place: two labels that differ in the cell alone are equal then."""
    return _CELL.sub("", label).rstrip()


def cell(place: np.ndarray) -> tuple[int, int]:
    """(row, column) of the grid, from (u, v) as fractions of the front image; places outside count to its edge."""
    column, row = np.clip(np.floor(place * GRID), 0, GRID - 1).astype(int)
    return int(row), int(column)


def middle(row: int, column: int) -> np.ndarray:
    """(u, v) of the middle of a cell, as fractions of the front image."""
    return (np.array([column, row]) + 0.5) / GRID


def pixel(thing: Any, simulation: Any) -> np.ndarray:
    """(u, v) of a thing's middle in the front image, as fractions of its width and height."""
    camera = simulation.scene.sensors[FRONT].camera
    extrinsic = np.asarray(camera.get_extrinsic_matrix()[0].cpu(), np.float64)
    intrinsic = np.asarray(camera.get_intrinsic_matrix()[0].cpu(), np.float64)
    position = np.asarray(thing.pose.p[0].cpu(), np.float64)
    u, v, depth = intrinsic @ (extrinsic[:3, :3] @ position + extrinsic[:3, 3])
    return np.array([u / depth / camera.width, v / depth / camera.height])
