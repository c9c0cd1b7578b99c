"""Scenes of RoboMME whose containers, or cubes, are moved to other cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datagen.command import KINDS
from datagen.demos.moved_robomme import MovedRobommeConfig, MovedRobommeWorker
from datagen.demos.robomme_scenes import AFTER_STEPS, CLEAR, Scene, scene_of
from predimem.core.episode_folder import episode_path, load_episodes
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.envs.robomme.labels import cell_in

CELL = 8  # px: images of 128 px, a grid of 16
WOOD, GREY = (170, 95, 55), (140, 140, 140)
COLOURS = {"red": (150, 0, 0), "green": (0, 150, 0), "blue": (0, 0, 150)}
PLACES = {"red": (5, 5), "green": (6, 9), "blue": (8, 7)}
TABLE = np.full((128, 128, 3), WOOD, np.uint8)
CHOICE = 40


def view(shown: dict[tuple[int, int], tuple[int, int, int]], arm: tuple[slice, slice] | None = None) -> np.ndarray:
    """Things of 6 px in these cells."""
    image = TABLE.copy()
    for (row, column), colour in shown.items():
        image[row * CELL + 1 : row * CELL + 7, column * CELL + 1 : column * CELL + 7] = colour
    if arm is not None:
        image[arm] = 90
    return image


def episode(task: str = "VideoUnmask", difficulty: str = "easy", arm: tuple[slice, slice] | None = None) -> Episode:
    """Covered, uncovered from step 10, covered from step 20, and with the arm in view when it is due to choose red."""
    covered = view(dict.fromkeys(PLACES.values(), GREY))
    uncovered = view({PLACES[name]: colour for name, colour in COLOURS.items()})
    images = np.stack([covered, uncovered, covered, view(dict.fromkeys(PLACES.values(), GREY), arm)])
    return Episode(
        benchmark="robomme",
        task=task,
        seed=1000,
        instruction="watch the video carefully, then pick up the container hiding the red cube",
        control_hz=20.0,
        success=True,
        images={"base_camera": Frames(images, np.repeat([0, 1, 2, 3], [10, 10, 20, 60]))},
        state=np.ones((100, 12), np.float32),
        actions=np.ones((100, 8), np.float32),
        subtasks=(
            SubtaskSpan(0, CHOICE, "watch the video"),
            SubtaskSpan(CHOICE, 100, "pick up the container at row 5 column 5"),
        ),
        keyframes=(0, 10, CHOICE, 80),
        metadata={"video_steps": CHOICE, "difficulty": difficulty},
    )


LIT = {"green": (6, 9), "blue": (8, 7)}


def highlighted() -> Episode:
    """A button and three cubes, two of which have a white area from step 10 on, the green one's being due first."""
    cubes = {PLACES[name]: colour for name, colour in COLOURS.items()} | {(4, 11): GREY}
    plain, lit = view(cubes), view({})
    for row, column in LIT.values():
        lit[row * CELL - 1 : row * CELL + 9, column * CELL - 1 : column * CELL + 9] = GREY
    lit = np.where((plain != TABLE).any(-1, keepdims=True), plain, lit)
    return replace(
        episode("PickHighlight"),
        instruction="first press the button, then pick up all cubes that have been highlighteted with white areas",
        images={"base_camera": Frames(np.stack([plain, lit]), np.repeat([0, 1], [10, 90]))},
        subtasks=(
            SubtaskSpan(0, CHOICE, "press the button"),
            SubtaskSpan(CHOICE, 60, "pick up the cube at row 6 column 9"),
            SubtaskSpan(60, 80, "place the cube onto the table"),
            SubtaskSpan(80, 100, "pick up the cube at row 8 column 7"),
        ),
        keyframes=(10, CHOICE, 60, 80),
        metadata={"difficulty": "medium"},
    )


def scene(source: Episode) -> Scene:
    found = scene_of(source, TABLE)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_cube_of_the_instruction_is_in_the_cell_of_the_label(seed: int) -> None:
    moved = scene(episode()).drawn(np.random.default_rng(seed))
    assert moved is not None
    colour = moved.instruction.split()[-2]
    cell = cell_in(moved.subtasks[-1].label)
    assert cell is not None and moved.subtasks[-1].start == CHOICE
    row, column = (CELL * index + 4 for index in cell)
    assert moved.images["base_camera"][12][row, column].tolist() == list(COLOURS[colour])
    assert moved.images["base_camera"][30][row, column].tolist() == list(GREY)
    assert (moved.images["base_camera"][12] != TABLE).any(-1).sum() == 3 * 36, "nothing is left where things stood"
    assert len(moved) == CHOICE + AFTER_STEPS and moved.keyframes == (0, 10, CHOICE)


@pytest.mark.parametrize("seed", range(8))
def test_the_first_of_the_highlighted_cubes_is_due(seed: int) -> None:
    """In the order of `put_in_order`: by row, then by column."""
    moved = scene(highlighted()).drawn(np.random.default_rng(seed))
    assert moved is not None
    image, words = moved.images["base_camera"][20], moved.subtasks[-1].label
    lit = []
    for row in range(16):
        for column in range(16):
            corner = (row * CELL + 7, column * CELL + 7)  # a cube of 6 px leaves the corner of its cell to the area
            middle = tuple(image[row * CELL + 4, column * CELL + 4].tolist())
            if (image[corner] == GREY).all() and middle in COLOURS.values():
                lit.append((row, column))
    assert len(lit) == 2 and cell_in(words) == min(lit)
    assert words.startswith("pick up the cube at") and moved.subtasks[-1].start == CHOICE
    assert (moved.images["base_camera"][20][4 * CELL + 4, 11 * CELL + 4] == GREY).all(), "the button stays"


@pytest.mark.parametrize("seed", range(4))
def test_what_was_covered_is_seen_in_an_uncovered_scene(seed: int) -> None:
    arm = (slice(0, 20), slice(60, 70))
    moved = scene(episode(arm=arm)).uncovered().drawn(np.random.default_rng(seed))
    assert moved is not None
    cell = cell_in(moved.subtasks[0].label)
    assert cell is not None and (len(moved), len(moved.subtasks), moved.keyframes) == (AFTER_STEPS, 1, (0,))
    row, column = (CELL * index + 4 for index in cell)
    for step in (0, AFTER_STEPS - 1):
        image = moved.images["base_camera"][step]
        assert image[row, column].tolist() == list(COLOURS[moved.instruction.split()[-2]])
        assert (image[arm] == 90).all(), "the robot is where it is when it has to choose"


def test_highlighted_cubes_are_highlighted_in_an_uncovered_scene() -> None:
    image = scene(highlighted()).uncovered().images[0]
    assert all((image[row * CELL, column * CELL] == GREY).all() for row, column in LIT.values())


def test_a_cube_whose_white_area_is_never_seen_is_no_scene() -> None:
    source = highlighted()
    dark = Frames(source.images["base_camera"][0][None], np.zeros(100, np.int32))
    assert scene_of(replace(source, images={"base_camera": dark}), TABLE) is None


def test_containers_go_to_many_places_and_stay_apart() -> None:
    rng, cells = np.random.default_rng(0), set()
    for _ in range(40):
        found = scene(episode())
        shifts = found._shifts(rng)
        assert shifts is not None
        places = found.middles + shifts
        gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)[np.triu_indices(3, 1)]
        assert gaps.min() >= CLEAR
        cells |= {tuple(place) for place in shifts}
    assert len(cells) > 15


def test_the_robot_stays_where_it_is() -> None:
    arm = (slice(0, 20), slice(60, 70))
    moved = scene(episode(arm=arm)).drawn(np.random.default_rng(0))
    assert moved is not None
    assert (moved.images["base_camera"][CHOICE + 5][arm] == 90).all()


def test_an_arm_in_front_of_a_container_is_not_cut_in_pieces() -> None:
    """The image before holds on."""
    arm = (slice(0, 46), slice(40, 48))  # from the top down to the red cube's container
    moved = scene(episode(arm=arm)).drawn(np.random.default_rng(0))
    assert moved is not None
    shown = moved.images["base_camera"]
    assert (shown[CHOICE + 5] == shown[30]).all()


def test_scenes_whose_containers_cannot_be_told_apart_are_discarded() -> None:
    source = episode()
    crowded = np.asarray(source.images["base_camera"]).copy()
    crowded[0, 40:70, 40:90] = GREY
    assert scene_of(replace(source, images={"base_camera": Frames(crowded)}), TABLE) is None
    assert scene_of(episode("ButtonUnmask", "hard"), TABLE) is None


@pytest.mark.slow
def test_the_worker_keeps_the_seeds_of_its_sources(tmp_path: Path) -> None:
    for seed in range(1000, 1006):
        shift = (seed - 1000) % 3
        source = episode()
        images = np.roll(np.asarray(source.images["base_camera"]), CELL * shift, axis=2)
        label = SubtaskSpan(CHOICE, 100, f"pick up the container at row 5 column {5 + shift}")
        kept = replace(source, seed=seed, images={"base_camera": Frames(images)}, subtasks=(source.subtasks[0], label))
        save_episode(episode_path(tmp_path / "own", "VideoUnmask", seed), kept)
    config = MovedRobommeConfig(sources=str(tmp_path / "own"), out=str(tmp_path / "moved"), copies=3)
    assert KINDS["moved_robomme"] is MovedRobommeConfig
    worker = MovedRobommeWorker(config.for_workers())
    assert all(worker.play(job).kept for job in config.jobs())
    made = load_episodes(tmp_path / "moved")
    assert sorted({e.seed for e in made}) == list(range(1000, 1006)) and len(made) == 18
