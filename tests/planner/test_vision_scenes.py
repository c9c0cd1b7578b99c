"""Facts of scenes: as labels, as a report, and as what trains a tower."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from planner.tiny.vision import pretrain_tower
from planner.tiny.vision_config import VisionConfig
from planner.tiny.vision_scenes import (
    UNKNOWN,
    SceneReadout,
    Scenes,
    _cell_errors,
    _named_first,
    scene_report,
    scenes_of,
)
from planner.tiny.vision_targets import sample_frames
from predimem.core.episodes import Episode
from predimem.core.scene_facts import KEY, SceneFacts
from tests.planner.builders import make_episode, make_model

CAMERAS = ("base_camera", "hand_camera")
CONFIG = VisionConfig(palette_size=6, steps=40, batch_size=16, save_steps=20, shift_pixels=2, scenes="somewhere")


def scene_episode(seed: int, colour: str, place: str, mat: str = "") -> Episode:
    """The same facts for all frames: the cube is in `place`, seen by the first camera; nothing else is seen."""
    episode = make_episode(seed, colour)
    steps = len(episode)
    pixels = np.full((steps, 2, 2, 2), np.nan, np.float32)
    pixels[:, 0, 0] = 0.25, 0.75
    mat_pixels = np.full((steps, 2, 2), np.nan, np.float32)
    mat_pixels[:, 1] = (0.5, 0.5) if mat != "hidden" else np.nan
    facts = SceneFacts(
        objects=("cube", "ball"),
        places=((place, "table"),) * steps,
        pixels=pixels,
        mats=(mat,) * steps,
        mat_pixels=mat_pixels if mat else np.full_like(mat_pixels, np.nan),
        held=("ball",) * steps,
        joints=("door",),
        openings=np.full((steps, 1), 0.5, np.float32),
    )
    return replace(episode, metadata={KEY: facts.as_json()})


def scenes() -> Scenes:
    return scenes_of([scene_episode(1, "red", "left", "left"), scene_episode(2, "blue", "right", "hidden")], CAMERAS)


def test_facts_become_numbers_and_what_is_not_seen_is_left_out() -> None:
    labels = scenes().labels
    half = len(labels) // 2
    assert labels.objects == ("", "ball", "cube") and labels.places == ("left", "right", "table")
    assert labels.object[0].tolist() == [2, 1] and labels.held[0] == 1
    assert labels.place[[0, half]].tolist() == [[0, UNKNOWN], [1, UNKNOWN]]
    assert labels.mats == ("", "hidden", "left") and labels.mat[[0, half]].tolist() == [2, 0]
    assert labels.seen[0].tolist() == [[True, False], [False, False]]


def test_images_are_those_of_the_cameras_asked_for() -> None:
    episode = scene_episode(1, "red", "left")
    turned = scenes_of([episode], CAMERAS[::-1])
    np.testing.assert_array_equal(turned.images[1], episode.images["base_camera"][0])
    np.testing.assert_array_equal(turned.images[2], episode.images["hand_camera"][1])
    assert turned.labels.seen[0].tolist() == [[False, True], [False, False]]
    thinned = turned.every(3)
    np.testing.assert_array_equal(thinned.images[2], episode.images["hand_camera"][3])
    assert len(thinned.labels) == -(-len(episode) // 3)


def test_a_crop_shows_a_part_of_each_image_and_where_things_are_in_it() -> None:
    episode = scene_episode(1, "red", "left", "left")
    shown = scenes_of(
        [episode], CAMERAS, crop={"base_camera": (0.0, 0.5, 0.5, 1.0), "hand_camera": (0.0, 0.0, 0.5, 0.5)}
    )
    size = episode.images["base_camera"].shape[1]
    np.testing.assert_array_equal(shown.images[0], episode.images["base_camera"][0][size // 2 :, : size // 2])
    np.testing.assert_allclose(shown.labels.pixels[0, 0, 0], [0.5, 0.5])  # it was at (0.25, 0.75)
    assert shown.labels.mat_pixels[0].isnan().all() and shown.labels.mat[0] == 0  # its middle is on the edge
    without = scenes_of(
        [episode], CAMERAS, crop={"base_camera": (0.5, 0.5, 1.0, 1.0), "hand_camera": (0.5, 0.5, 1.0, 1.0)}
    )
    assert without.labels.place[0].tolist() == [UNKNOWN, UNKNOWN]
    with pytest.raises(ValueError, match="32 x 64 px of base_camera, 64 x 64 px of hand_camera"):
        scenes_of([episode], CAMERAS, crop={"base_camera": (0.0, 0.0, 1.0, 0.5)})


def test_episodes_without_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="seed 1 has no facts"):
        scenes_of([make_episode(1, "red")], CAMERAS)


def test_a_shift_moves_where_things_are() -> None:
    labels = scenes().labels
    torch.manual_seed(0)
    readout, features, index = SceneReadout(3, 1, (2, 2), labels), torch.zeros(1, 24), torch.tensor([0])
    losses = [float(readout.loss(features, labels, index, 4.0, torch.full((1, 2, 2), by))) for by in (0.0, 0.3)]
    assert losses[0] == pytest.approx(float(readout.loss(features, labels, index, 4.0)))
    assert losses[0] != pytest.approx(losses[1])


def test_a_tower_learns_from_scenes(processor, tmp_path) -> None:
    """In 3 of 10 frames the table is empty: nothing tells the two layouts apart."""
    data = scenes()
    frames = sample_frames([make_episode(3, "lime")], CAMERAS, 20, np.random.default_rng(0))
    torch.manual_seed(0)
    tower = make_model(processor).visual
    pretrain_tower(tower, processor.image_processor, frames, frames, CONFIG, tmp_path, scenes=(data, data))
    report = json.loads((tmp_path / "vision.json").read_text())["scenes"]
    assert report["place"] > 0.7 and report["by_place"]["left"][1] == len(data.labels) // 2
    assert report["held"] == 1.0 and report["opening_error"] < 0.1 and report["position_error"] < 0.1
    with pytest.raises(ValueError, match=r"vision\.scenes"):
        pretrain_tower(tower, processor.image_processor, frames, frames, CONFIG, tmp_path / "other")


def test_a_report_of_what_is_not_there_has_no_figures() -> None:
    data = scenes_of([scene_episode(1, "red", "left")], CAMERAS)
    report = scene_report(SceneReadout(3, 1, (2, 2), data.labels), torch.zeros(len(data.labels), 24), data.labels)
    assert report["mat_where_seen"] is None and report["by_place"].keys() == {"left"}


def test_a_thing_is_in_the_cell_of_its_middle() -> None:
    """The ideal answer has no error, and the same answer for a thing that is elsewhere has."""
    where = torch.full((1, 1, 2, 2), torch.nan)
    where[0, 0, 1] = torch.tensor([0.75, 0.25])  # the upper right of four cells, in its middle
    said = torch.full((1, 1, 4, 2, 3), -20.0)
    said[0, 0, 1, 1] = torch.tensor([20.0, 0.5, 0.5])
    errors = {by: [float(error) for error in _cell_errors(said, where + by, (2, 2))] for by in (0.0, 0.1, -0.3)}
    assert errors[0.0] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert errors[0.1] == pytest.approx([0.0, 0.04], abs=1e-5)  # offset (0.7, 0.7)
    assert errors[-0.3][0] > 1.0


def test_a_wide_image_has_more_columns_than_rows() -> None:
    where = torch.full((1, 1, 2, 2), torch.nan)
    where[0, 0, 1] = torch.tensor([0.7, 0.75])  # of 2 x 4 cells in the lower row, the third column
    said = torch.full((1, 1, 8, 2, 3), -20.0)
    said[0, 0, 6, 1] = torch.tensor([20.0, 0.8, 0.5])
    assert [float(error) for error in _cell_errors(said, where, (2, 4))] == pytest.approx([0.0, 0.0], abs=1e-5)
    assert _named_first(said, where, (2, 4)).tolist() == [True]
    assert _cell_errors(said, where, (4, 2))[0] > 1.0


def test_a_cell_names_the_thing_whose_middle_it_holds() -> None:
    where = torch.full((1, 1, 3, 2), torch.nan)
    where[0, 0, 1], where[0, 0, 2] = torch.tensor([0.75, 0.25]), torch.tensor([0.25, 0.75])
    said = torch.zeros(1, 1, 4, 3, 3)
    said[0, 0, :, 1, 0] = 1.0  # every cell names the first thing, and two of them another one:
    said[0, 0, 2, 2, 0] = 2.0
    said[0, 0, 0, 2, 0] = 2.0
    assert _named_first(said, where, (2, 2)).tolist() == [True, True]
    said[0, 0, 1, 2, 0] = 2.0
    assert _named_first(said, where, (2, 2)).tolist() == [False, True]
