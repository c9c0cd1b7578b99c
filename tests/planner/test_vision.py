"""Self-supervised pretraining of the vision tower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from planner.tiny.vision import pretrain_tower
from planner.tiny.vision_config import VisionConfig
from planner.tiny.vision_features import merged_features
from planner.tiny.vision_readout import StepReadout, sample_steps
from planner.tiny.vision_targets import CellTargets, fit_palette, sample_frames
from planner.tiny.vision_training import embed_patches
from predimem.core.frames import Frames
from tests.planner.builders import make_episode, make_model

CONFIG = VisionConfig(palette_size=6, steps=4, batch_size=4, save_steps=2, shift_pixels=2)


def test_the_palette_holds_rare_colours():
    frames = np.full((20, 64, 64, 3), (160, 100, 60), np.uint8)
    frames[:, ::2] = (150, 90, 50)
    frames[0, :6, :6] = (0, 150, 150)
    frames[1, :6, :6] = (150, 0, 150)
    palette = fit_palette(frames, 4)
    for rare in ((4, 148, 148), (148, 4, 148)):
        assert np.abs(palette - rare).max(1).min() < 8


def test_targets_by_hand():
    palette = np.array([[4.0, 4.0, 4.0], [252.0, 4.0, 4.0]], np.float32)
    frame = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
    frame[0, 0, 40:44, 0:4] = 255  # 16 red pixels in the lower left cell
    thumbnails, log_counts, present = CellTargets(palette, cell=32, present_pixels=16)(frame)
    assert present[0].tolist() == [[1, 0], [1, 0], [1, 1], [1, 0]]
    assert log_counts[0, 2].tolist() == pytest.approx([np.log1p(1024 - 16), np.log1p(16)])
    small = thumbnails[0, 2].view(3, 4, 4)  # 8 x 8 px a piece: a quarter of the piece (1, 0) is red
    assert small[:, 1, 0].tolist() == pytest.approx([-1 + 2 / 4, -1, -1])
    assert small.sum() == pytest.approx(-48 + 2 / 4)


def test_spots_by_hand():
    palette = np.array([[4.0, 4.0, 4.0], [252.0, 4.0, 4.0]], np.float32)
    frame = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
    frame[0, 0, 40:44, 16:20] = 255  # 16 red pixels in the lower left cell, second row and third column of its spots
    spots = CellTargets(palette, cell=32, present_pixels=16).in_spots(frame).view(2, 2, 4, 4, 2)
    assert (spots[..., 1].nonzero() == torch.tensor([[1, 0, 1, 2]])).all()
    assert spots[..., 0].all()


def test_a_tower_learns_where_in_a_cell_a_small_thing_is(processor, tmp_path):
    """The readout of spots is trained: its loss on held-out frames falls."""
    rng = np.random.default_rng(0)
    frames = np.full((48, 64, 64, 3), 120, np.uint8)
    for frame, (row, column) in zip(frames, rng.integers(0, 56, (48, 2)), strict=True):
        frame[row : row + 8, column : column + 8] = (250, 0, 0)
    trained = {}
    for steps in (1, 60):
        config = replace(CONFIG, steps=steps, spot_weight=5.0, palette_size=2, batch_size=16, present_pixels=16)
        torch.manual_seed(0)
        tower = make_model(processor).visual
        pretrain_tower(tower, processor.image_processor, frames[:40], frames[40:], config, tmp_path / str(steps))
        targets = CellTargets(fit_palette(frames, 2), 32, 16)
        trained[steps] = spot_error(tower, processor.image_processor, targets, frames)
    assert trained[60] < 0.8 * trained[1]


def spot_error(tower, image_processor, targets: CellTargets, frames: np.ndarray) -> float:
    """Mean squared error of a ridge regression from the features to the spots, on frames it was not fitted to."""
    batch = torch.from_numpy(frames).permute(0, 3, 1, 2)
    features = merged_features(tower, image_processor, batch)[0].detach()
    x, y = F.pad(features, (0, 1), value=1.0), targets.in_spots(batch)
    fitted, tested = x[:40].flatten(0, 1), x[40:].flatten(0, 1)
    weights = torch.linalg.solve(fitted.T @ fitted + 0.1 * torch.eye(fitted.shape[1]), fitted.T @ y[:40].flatten(0, 1))
    return float(((tested @ weights - y[40:].flatten(0, 1)) ** 2).mean())


@pytest.fixture
def frames():
    episodes = [make_episode(seed, colour) for seed, colour in ((1, "red"), (2, "blue"), (3, "lime"))]
    return sample_frames(episodes, ("base_camera", "hand_camera"), 40, np.random.default_rng(0))


def test_frames_are_drawn_without_repeats(frames):
    assert frames.shape == (40, 64, 64, 3) and frames.dtype == np.uint8
    assert len({frame.tobytes() for frame in frames}) == 40


def test_an_image_that_holds_for_several_steps_is_drawn_once():
    frames = make_episode(1, "red").images["base_camera"]
    episode = replace(make_episode(1, "red"), images={"base_camera": Frames(frames[:5], np.arange(10) // 2)})
    drawn = sample_frames([episode], ("base_camera",), 40, np.random.default_rng(0))
    assert len(drawn) == 5 and len({frame.tobytes() for frame in drawn}) == 5


def test_training_resumes_to_the_same_tower(processor, frames, tmp_path, monkeypatch):
    def run(folder):
        torch.manual_seed(0)
        tower = make_model(processor).visual
        return pretrain_tower(tower, processor.image_processor, frames, frames, CONFIG, folder)

    whole = run(tmp_path / "whole")
    calls = 0
    from planner.tiny.vision_training import TowerTrainer

    step = TowerTrainer._step

    def interrupted(self, *args):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(TowerTrainer, "_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut")
    monkeypatch.setattr(TowerTrainer, "_step", step)
    other = replace(CONFIG, learning_rate=2 * CONFIG.learning_rate)
    with pytest.raises(ValueError, match=r"half trained with another config: choose another vision.directory"):
        pretrain_tower(make_model(processor).visual, processor.image_processor, frames, frames, other, tmp_path / "cut")
    resumed = run(tmp_path / "cut")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == ["vision.json", "vision.safetensors"]


def test_a_finished_tower_is_loaded_not_trained(processor, frames, tmp_path):
    first = pretrain_tower(make_model(processor).visual, processor.image_processor, frames, frames, CONFIG, tmp_path)
    other = make_model(processor, seed=5).visual
    none = np.zeros((0, 64, 64, 3), np.uint8)
    second = pretrain_tower(other, processor.image_processor, none, none, CONFIG, tmp_path)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(torch.equal(first[name], tensor) for name, tensor in other.state_dict().items())


def test_a_tower_of_another_config_or_robot_is_refused(processor, frames, tmp_path):
    def train(config=CONFIG, benchmarks=("arena",)):
        tower = make_model(processor).visual
        args = (tower, processor.image_processor, frames, frames, config, tmp_path)
        return pretrain_tower(*args, benchmarks=lambda: benchmarks)

    train()
    train()
    with pytest.raises(ValueError, match="another config"):
        train(replace(CONFIG, palette_size=5))
    with pytest.raises(ValueError, match=r"trained on images of arena, not lamp: choose another vision\.directory"):
        train(benchmarks=("lamp", "arena"))


def test_features_have_unit_scale(processor, frames, tmp_path):
    tower = make_model(processor).visual
    pretrain_tower(tower, processor.image_processor, frames, frames, CONFIG, tmp_path)
    from planner.tiny.vision_features import merged_features

    stack = torch.from_numpy(frames).permute(0, 3, 1, 2)
    with torch.no_grad():
        for features in merged_features(tower, processor.image_processor, stack):
            assert features.pow(2).mean().item() == pytest.approx(1.0, abs=1e-3)


def test_whitened_features_vary_alike_in_all_directions(processor, frames, tmp_path):
    """A tower whose features vary mostly with the place of a token says the same things, about equally loud."""
    spread = {}
    for whiten in (False, True):
        torch.manual_seed(0)
        tower = make_model(processor).visual
        config = replace(CONFIG, whiten=whiten)
        pretrain_tower(tower, processor.image_processor, frames, frames, config, tmp_path / str(whiten))
        stack = torch.from_numpy(frames).permute(0, 3, 1, 2)
        with torch.no_grad():
            features = merged_features(tower, processor.image_processor, stack)
        for of_merger in features:
            assert of_merger.pow(2).mean().item() == pytest.approx(1.0, abs=1e-3)
        variance = torch.linalg.eigvalsh(torch.cov(features[0].flatten(0, 1).T)).flip(0).clamp(min=0.0)
        spread[whiten] = float(variance.sum() / variance[0])  # in how many directions there is as much as in the first
    assert spread[True] > 2 * spread[False]


def labelled():
    episodes = [make_episode(seed, colour) for seed, colour in ((1, "red"), (2, "blue"), (3, "lime"))]
    return sample_steps(episodes, ("base_camera", "hand_camera"), 24, np.random.default_rng(0))


def test_steps_are_drawn_with_all_their_cameras():
    images, labels = labelled()
    assert images.shape == (48, 64, 64, 3) and len(labels) == 24 and labels.cameras == 2
    backgrounds = images[:, 0, 0].mean(1)  # 90 in the base camera, 140 in the hand's
    assert (backgrounds[::2] < 100).all() and (backgrounds[1::2] > 135).all()
    assert set(labels.subtasks) == {"watch", "wait", "touch the red cube", "touch the blue cube", "touch the lime cube"}
    assert labels.measured.shape == (24, 8)
    assert labels.measured[:, 0].std() == pytest.approx(1.0, abs=1e-4)


def test_a_tower_learns_what_a_timestep_shows(processor, tmp_path, monkeypatch):
    """The readout trains the tower: another tower than from pixels alone, and a smaller loss than at the start."""
    images, labels = labelled()
    losses = []
    read = StepReadout.loss

    def noted(*args):
        losses.append(float(read(*args).detach()))
        return read(*args)

    monkeypatch.setattr(StepReadout, "loss", noted)
    config = replace(CONFIG, steps=40, batch_size=16, step_weight=1.0)
    torch.manual_seed(0)
    tower = make_model(processor).visual
    aided = pretrain_tower(tower, processor.image_processor, images, images, config, tmp_path / "aided", labels)
    assert len(losses) == 40 and np.mean(losses[-8:]) < 0.8 * np.mean(losses[:8])
    torch.manual_seed(0)
    tower = make_model(processor).visual
    with pytest.raises(ValueError, match="labels"):
        pretrain_tower(tower, processor.image_processor, images, images, config, tmp_path / "none")
    assert set(aided) == set(tower.state_dict())


def test_patches_are_embedded_as_the_convolution_does(processor):
    embed = make_model(processor).visual.patch_embed
    patches = torch.randn(7, 3 * 2 * 16 * 16)
    torch.testing.assert_close(embed_patches(embed.proj, patches), embed(patches), atol=1e-5, rtol=1e-4)
