import dataclasses

import numpy as np
import pytest

from actor import dataset
from actor.dataset import FrameSet, SamplingConfig, load_frame_sets
from actor.pi05 import Pi05Config
from actor.tiny.conv_stem import ConvStemConfig
from actor.weights import ActorConfig
from predimem.core.episode_folder import episode_path, load_episodes
from predimem.core.episode_writer import save_episode
from predimem.core.frames import Frames
from tests.actor.conftest import APPEAR, CAMERAS, HORIZON, INSTRUCTION, make_episode, save_episodes

CONFIG = ActorConfig(model=Pi05Config(vision="conv", conv=ConvStemConfig(), action_horizon=HORIZON))


def test_one_image_supervises_several_subtasks():
    frames = FrameSet([make_episode(1000)], CAMERAS, HORIZON, 128)
    sampling = SamplingConfig(3, 12, instruction_share=0, hold_share=0, idle_share=0, shift_px=0, brightness=0)
    batch = frames.batch(np.random.default_rng(0), sampling)
    assert batch.images.shape == (3, 2, 128, 128, 3) and batch.images.dtype == np.uint8
    assert set(batch.prompts) == {f"touch the {c} square" for c in ("red", "green", "blue")}
    alternatives = make_episode(1000).alternatives
    assert alternatives is not None
    for i, prompt in enumerate(batch.prompts):
        k = alternatives.subtasks.index(prompt)
        np.testing.assert_array_equal(batch.targets_m[i], alternatives.targets_m[APPEAR, k])
        gripper = batch.state[i // 12, :2]
        np.testing.assert_allclose(batch.chunks[i, 0, :2], batch.targets_m[i, :2] - gripper, atol=1e-6)


def test_instruction_prompts_get_the_goal_s_chunk_and_no_target():
    episode = make_episode(1001)
    frames = FrameSet([episode], CAMERAS, HORIZON, 128)
    assert episode.alternatives is not None
    goal = episode.alternatives.subtasks.index(episode.goal)
    batch = frames.batch(np.random.default_rng(0), SamplingConfig(6, 2, instruction_share=1, idle_share=0))
    assert set(batch.prompts) == {INSTRUCTION}
    assert np.isnan(batch.targets_m).all() and np.isnan(batch.pixels).all()
    np.testing.assert_allclose(
        batch.chunks[::2, 0, :2],
        episode.alternatives.targets_m[APPEAR, goal, :2] - batch.state[:, :2],
        atol=1e-6,
    )
    batch = frames.batch(np.random.default_rng(0), SamplingConfig(6, 2, instruction_share=1, idle_share=1))
    assert not batch.chunks[..., :6].any()  # before anything can be touched, the goal's label is to hold


def test_without_a_goal_instruction_prompts_get_chunk_and_target_of_the_current_subtask():
    episode = dataclasses.replace(make_episode(1001), goal="")
    frames = FrameSet([episode], CAMERAS, HORIZON, 128)
    sampling = SamplingConfig(6, 2, instruction_share=1, idle_share=0, shift_px=0)
    batch = frames.batch(np.random.default_rng(0), sampling)
    assert set(batch.prompts) == {INSTRUCTION} and episode.alternatives is not None
    due = episode.alternatives.subtasks.index(episode.subtask_at(APPEAR))
    np.testing.assert_array_equal(batch.targets_m, np.tile(episode.alternatives.targets_m[APPEAR, due], (12, 1)))
    assert np.isfinite(batch.pixels[:, 0]).all()


def test_tasks_are_drawn_by_their_weights_however_many_frames_they_have():
    many = [make_episode(seed) for seed in range(1000, 1009)]
    frames = FrameSet([*many, dataclasses.replace(make_episode(1009), task="Rare-v0")], CAMERAS, HORIZON, 128)
    shares = {}
    for name, weights in {"none": {}, "alike": {"*": 1.0}, "rare": {"*": 1.0, "Rare*": 3.0}}.items():
        drawn = frames.draw(np.random.default_rng(0), SamplingConfig(400, 1, task_weights=weights)).frames
        shares[name] = np.mean([episode == 9 for episode, _ in drawn])
    assert 0.05 < shares["none"] < 0.15 and 0.42 < shares["alike"] < 0.58 and 0.67 < shares["rare"] < 0.83


def test_shifted_images_keep_their_targets():
    frames = FrameSet([make_episode(1002)], CAMERAS, HORIZON, 128)
    sampling = SamplingConfig(20, 1, instruction_share=0, hold_share=0, idle_share=0, shift_px=2)
    batch = frames.batch(np.random.default_rng(0), sampling)
    colours = {"red": 0, "green": 1, "blue": 2}
    for image, prompt, pixel in zip(batch.images[:, 0], batch.prompts, batch.pixels[:, 0], strict=True):
        channel = colours[prompt.split()[2]]
        rows, columns = np.nonzero(image[..., channel].astype(int) - image.min(-1) > 100)
        centre = np.array([columns.mean() + 0.5, rows.mean() + 0.5]) / 128
        np.testing.assert_allclose(pixel, centre, atol=1.1 / 128)


def test_idle_frames_and_hold_prompts():
    frames = FrameSet([make_episode(1003)], CAMERAS, HORIZON, 128)
    assert (len(frames.idle), len(frames.active)) == (APPEAR, 4)
    batch = frames.batch(np.random.default_rng(0), SamplingConfig(8, 2, instruction_share=0, idle_share=1))
    assert set(batch.prompts) == {"wait"} and not batch.chunks[..., :6].any()
    batch = frames.batch(
        np.random.default_rng(0), SamplingConfig(8, 2, instruction_share=0, hold_share=1, idle_share=0)
    )
    assert set(batch.prompts) == {"wait"}


def test_episodes_without_alternatives_teach_what_was_done():
    episode = dataclasses.replace(make_episode(1004), alternatives=None)
    frames = FrameSet([episode], CAMERAS, HORIZON, 128)
    batch = frames.batch(np.random.default_rng(0), SamplingConfig(30, 1, instruction_share=0, shift_px=0))
    assert set(batch.prompts) == {"wait", episode.goal}
    for state, chunk in zip(batch.state, batch.chunks, strict=True):
        t = int(np.flatnonzero((episode.state == state).all(1))[0])
        np.testing.assert_array_equal(chunk, episode.actions[np.minimum(np.arange(t, t + HORIZON), 5)])


def test_a_batch_is_a_function_of_its_generator():
    frames = FrameSet([make_episode(s) for s in range(1000, 1003)], CAMERAS, HORIZON, 128)
    first, second = (frames.batch(np.random.default_rng([0, 5]), SamplingConfig()) for _ in range(2))
    assert first.prompts == second.prompts
    for name in ("images", "state", "chunks", "targets_m", "pixels"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_split_is_by_episode(tmp_path):
    train, val = load_frame_sets(save_episodes(tmp_path, range(1000, 1010)), CONFIG, val_every=5)
    assert [e.seed for e in val.episodes] == [1000, 1005]
    assert len(train.episodes) == 8


def in_both_cameras(seed):
    """An episode whose cameras both have the target in view."""
    episode = make_episode(seed)
    assert episode.alternatives is not None
    shown = np.repeat(episode.alternatives.pixels[:, :, :1], len(CAMERAS), axis=2)
    return dataclasses.replace(episode, alternatives=dataclasses.replace(episode.alternatives, pixels=shown))


def test_a_camera_that_is_missing_shows_no_target():
    whole, lacking = in_both_cameras(1000), in_both_cameras(1001)
    lacking = dataclasses.replace(lacking, images={CAMERAS[0]: lacking.images[CAMERAS[0]]})
    frames = FrameSet([whole, lacking], CAMERAS, HORIZON, 128)
    draw = frames.draw(np.random.default_rng(0), SamplingConfig(idle_share=0.0, hold_share=0.0, instruction_share=0.0))
    pixels = draw.pixels.reshape(len(draw.frames), -1, 2, 2)
    assert {e for e, _ in draw.frames} == {0, 1}
    for (e, _), shown in zip(draw.frames, pixels, strict=True):
        assert np.isfinite(shown[:, 0]).all() and (np.isfinite(shown[:, 1]) if e == 0 else np.isnan(shown[:, 1])).all()


def test_episodes_of_one_scene_are_held_out_together(tmp_path):
    roots = [save_episodes(tmp_path / name, range(1000, end)) for name, end in (("first", 1006), ("again", 1008))]
    save_episode(episode_path(tmp_path / "again", "Zebra", 1000), dataclasses.replace(make_episode(1000), task="Zebra"))
    train, val = load_frame_sets(roots, CONFIG, val_every=4)
    assert [(e.task, e.seed) for e in val.episodes] == [("Squares", seed) for seed in (1000, 1004, 1000, 1004)] + [
        ("Zebra", 1000)
    ]
    assert [e.seed for e in train.episodes] == [1001, 1002, 1003, 1005, 1001, 1002, 1003, 1005, 1006, 1007]
    with pytest.raises(ValueError, match=r"holds 9 scenes .* in 15 episodes; a validation split needs at least 10"):
        load_frame_sets(roots, CONFIG, val_every=10)


@pytest.mark.parametrize("size", [128, 64])
def test_images_left_in_the_files_give_the_same_batches(tmp_path, size):
    save_episodes(tmp_path, range(1000, 1004))
    blinking = make_episode(1004)
    every_other = {name: Frames(frames[::2], np.arange(6) // 2) for name, frames in blinking.images.items()}
    save_episode(episode_path(tmp_path, "Squares", 1004), dataclasses.replace(blinking, images=every_other))
    model = dataclasses.replace(CONFIG.model, conv=ConvStemConfig(image_size=size))
    config = dataclasses.replace(CONFIG, model=model)
    images = (4 * 6 + 3) * 2 * size**2 * 3
    enough, too_little = ((images + more) / 1e9 for more in (0.5, -0.5))
    kept, left = (load_frame_sets(tmp_path, config, 5, gb) for gb in (enough, too_little))
    for one, other in zip(kept, left, strict=True):
        assert one.in_memory and not other.in_memory
        for step in range(5):
            a, b = (frames.batch(np.random.default_rng(step), SamplingConfig()) for frames in (one, other))
            assert a.images.shape[1:] == (2, size, size, 3) and a.prompts == b.prompts
            for name in ("images", "state", "chunks", "targets_m", "pixels"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_evaluation_seeds_are_refused(tmp_path):
    save_episodes(tmp_path, range(1000, 1002))
    save_episode(episode_path(tmp_path, "Squares", 900_000), make_episode(900_000))
    with pytest.raises(ValueError, match="seed 900000 is kept for evaluation"):
        load_frame_sets(tmp_path, CONFIG, val_every=2)


def test_episodes_that_are_still_being_made_are_told(tmp_path, monkeypatch):
    save_episodes(tmp_path, range(1000, 1004))

    def load_while_one_is_made(root):
        save_episodes(tmp_path, [1004])
        return load_episodes(root)

    monkeypatch.setattr(dataset, "load_episodes", load_while_one_is_made)
    with pytest.raises(ValueError, match="held 4 episodes, then 5: train once all of them are made"):
        load_frame_sets(tmp_path, CONFIG, val_every=2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (dataclasses.replace(CONFIG, cameras=("base_camera", "side")), "expected cameras .*'side'"),
        (dataclasses.replace(CONFIG, camera_shape=(64, 64)), r"should be \[64, 64\] .* got \[128, 128\]"),
        (dataclasses.replace(CONFIG, state_dim=8), "states of 8 and actions of 7 numbers, got 7 and 7"),
        (
            dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, action_horizon=50)),
            "chunks of 4 steps, the config's action_horizon is 50",
        ),
    ],
)
def test_data_that_does_not_fit_the_config(tmp_path, config, message):
    save_episodes(tmp_path, range(1000, 1002))
    with pytest.raises(ValueError, match=message):
        load_frame_sets(tmp_path, config, val_every=2)
    with pytest.raises(ValueError, match="needs at least 3"):
        load_frame_sets(tmp_path, CONFIG, val_every=3)


def test_parts_of_a_batch_are_the_batch(tmp_path):
    """Several processes read what one would, and their means add up to its mean."""
    frames, _ = load_frame_sets(save_episodes(tmp_path, range(1000, 1006)), CONFIG, 3)
    sampling = SamplingConfig(frames_per_batch=4, prompts_per_frame=3)
    whole = frames.batch(np.random.default_rng(7), sampling)
    draw = frames.draw(np.random.default_rng(7), sampling)
    parts = [frames.read(draw, part, 4) for part in range(4)]
    for name in ("images", "seen", "state", "chunks", "targets_m", "pixels"):
        np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in parts]), getattr(whole, name))
    assert sum((p.prompts for p in parts), ()) == whole.prompts and whole.aimed_weight == 1
    known = [np.isfinite(p.targets_m).all(-1) for p in parts]
    means = [p.targets_m[k].mean() if k.any() else 0.0 for p, k in zip(parts, known, strict=True)]
    mean = np.mean([p.aimed_weight * m for p, m in zip(parts, means, strict=True)])
    assert mean == pytest.approx(whole.targets_m[np.isfinite(whole.targets_m).all(-1)].mean())


def test_episodes_without_subtasks_are_named(tmp_path):
    for seed in (1000, 1001):
        bare = dataclasses.replace(make_episode(seed), subtasks=(), alternatives=None)
        save_episode(episode_path(tmp_path, "Squares", seed), bare)
    with pytest.raises(ValueError, match=r"Squares seed 1000 has no subtasks: name its .* `predimem annotate`"):
        load_frame_sets(tmp_path, CONFIG, val_every=2)
