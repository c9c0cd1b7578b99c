"""Episodes of RoboMME whose images are mirrored and whose cubes exchange their colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS
from datagen.demos.edited_robomme import Edit, EditedRobommeConfig, EditedRobommeWorker, edited, edits_of
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path, load_episodes
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.jobs.journal import DataJournal
from predimem.jobs.tasks import Job

SIDE, CELL = 32, 2  # px of an image, and of a cell of the 16 x 16 that labels name
RED, GREEN, WOOD = (150, 0, 0), (0, 150, 0), (170, 95, 55)
SAME = (0, 1, 2)


def episode(task: str, cells: dict[tuple[int, int], tuple[int, int, int]], picked: list[tuple[int, int]]) -> Episode:
    """Cubes at cells of the front image, which are picked up in this order, one a step."""
    table = np.full((SIDE, SIDE, 3), WOOD, np.uint8)
    table[:, :4] = 200  # the light comes from the left
    image = table.copy()
    for (row, column), colour in cells.items():
        image[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL] = colour
    labels = [f"pick up the container at row {row} column {column}" for row, column in picked]
    return Episode(
        benchmark="robomme",
        task=task,
        seed=1000,
        instruction="first press the button, then pick up the container hiding the red cube",
        control_hz=20.0,
        success=True,
        images={"base_camera": Frames(np.stack([image, table]), np.array([0, *[1] * (len(picked) - 1)]))},
        state=np.ones((len(picked), 12), np.float32),
        actions=np.ones((len(picked), 8), np.float32),
        subtasks=tuple(SubtaskSpan(step, step + 1, label) for step, label in enumerate(labels)),
        keyframes=(0,),
        metadata={"video_steps": 0},
    )


@pytest.fixture
def table() -> np.ndarray:
    return np.asarray(episode("ButtonUnmask", {}, [(1, 4), (1, 4)]).images["base_camera"][0])


def test_colours_are_exchanged_in_images_and_words(table: np.ndarray) -> None:
    source = episode("ButtonUnmask", {(3, 5): RED, (8, 9): GREEN}, [(3, 5), (3, 5)])
    image = edited(source, Edit(False, (2, 1, 0)), table)  # red and blue
    assert image.instruction.endswith("hiding the blue cube")
    assert image.subtasks[0].label == source.subtasks[0].label
    shown = image.images["base_camera"][0]
    assert shown[7, 11].tolist() == [0, 0, 150] and shown[17, 19].tolist() == list(GREEN)
    assert shown[30, 30].tolist() == list(WOOD), "the table keeps its colour"


@pytest.mark.parametrize("order", [(1, 2, 0), (2, 0, 1), (1, 0, 2)])
def test_the_words_name_the_colour_that_the_cube_has(order: tuple[int, int, int], table: np.ndarray) -> None:
    changed = edited(episode("ButtonUnmask", {(3, 5): RED}, [(3, 5), (3, 5)]), Edit(False, order), table)
    colour = ("red", "green", "blue")[int(changed.images["base_camera"][0][7, 11].argmax())]
    assert changed.instruction.endswith(f"hiding the {colour} cube")


def test_a_mirrored_cube_is_in_the_cell_that_its_label_names(table: np.ndarray) -> None:
    source = episode("ButtonUnmask", {(3, 5): RED}, [(3, 5), (3, 5)])
    changed = edited(source, Edit(True, SAME), table)
    assert changed.subtasks[0].label == "pick up the container at row 3 column 10"
    shown = changed.images["base_camera"][0]
    assert (shown[6:8, 20:22] == RED).all() and (shown != table).any(-1).sum() == CELL * CELL
    assert np.asarray(changed.images["base_camera"][1]).tolist() == table.tolist(), "the light stays where it is"


def test_edits_that_would_break_a_rule_of_labels_are_not_made() -> None:
    assert len(edits_of(episode("ButtonUnmask", {}, [(3, 5), (3, 9)]))) == 11
    assert edits_of(episode("BinFill", {}, [(3, 5), (4, 9)])) == [Edit(True, SAME)]
    in_a_row = edits_of(episode("PickHighlight", {}, [(3, 5), (3, 9)]))
    assert len(in_a_row) == 5 and not any(edit.mirrored for edit in in_a_row)
    assert len(edits_of(episode("PickHighlight", {}, [(3, 5), (4, 9)]))) == 11


def test_edited_episodes_have_the_seeds_of_their_sources(tmp_path: Path) -> None:
    for seed in (1000, 1001, 1002):
        source = episode("ButtonUnmask", {(3, 5): RED, (6, seed - 998): GREEN}, [(3, 5), (3, 5)])
        save_episode(episode_path(tmp_path / "own", "ButtonUnmask", seed), replace(source, seed=seed))
    config = EditedRobommeConfig(sources=str(tmp_path / "own"), out=str(tmp_path / "edited"), copies=2)
    assert KINDS["edited_robomme"] is EditedRobommeConfig
    jobs = config.jobs()
    assert jobs == [Job("ButtonUnmask", seed) for seed in (1000, 1001, 1002)]
    worker = EditedRobommeWorker(config.for_workers())
    assert all(worker.play(job).kept for job in jobs)
    made = [(e.seed, str(e.metadata["edit"])) for e in load_episodes(tmp_path / "edited")]
    assert sorted(seed for seed, _ in made) == [1000, 1000, 1001, 1001, 1002, 1002]
    assert len(set(made)) == 6, "each copy of an episode has another edit"


def test_the_copy_that_says_that_a_job_is_done_is_written_last(tmp_path: Path) -> None:
    source = episode("ButtonUnmask", {(3, 5): RED, (6, 2): GREEN}, [(3, 5), (3, 5)])
    save_episode(episode_path(tmp_path / "own", "ButtonUnmask", 1000), replace(source, seed=1000))
    config = EditedRobommeConfig(sources=str(tmp_path / "own"), out=str(tmp_path / "edited"), copies=3)
    worker, (job,) = EditedRobommeWorker(config.for_workers()), config.jobs()
    (tmp_path / "edited").mkdir()
    (tmp_path / "edited" / "ButtonUnmask").touch()  # where the first copy cannot be written
    with pytest.raises(OSError, match="ButtonUnmask"):
        worker.play(job)
    assert sorted(path.parent.parent.name for path in (tmp_path / "edited").rglob("*.h5")) == ["copy_2", "copy_3"]
    (tmp_path / "edited" / "ButtonUnmask").unlink()
    (tmp_path / "edited" / "copy_2" / "ButtonUnmask" / "seed0000001000.h5.partial").touch()  # as a kill leaves it
    with DataJournal(config.out, {}) as journal:
        journal.remove_unfinished()
        assert journal.missing([job]) == [job] and not list((tmp_path / "edited").rglob("*.partial"))
    assert worker.play(job).kept and len(load_episodes(tmp_path / "edited")) == 3


def test_tasks_whose_words_name_sides_are_refused() -> None:
    with pytest.raises(ConfigError, match="SwingXtimes"):
        EditedRobommeConfig(tasks=("SwingXtimes",))
