"""The plot of an episode that the oracle played in the real simulator, and what a plot cannot show."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from datagen.inspect.plots import IMAGES, draw, flagged_kinds, keyframe_config, plot_episode, spread_out
from datagen.inspect.show import show_episode
from datagen.keyframes import KeyframeConfig, onsets
from predimem.core.episodes import Episode
from tests.datagen.inspect.oracle_episode import play_oracle

EPSILON = KeyframeConfig(speed_epsilon_m_s=0.04)


@pytest.fixture(scope="module")
def episode() -> Episode:
    """Chocolate and butter from one shelf cabinet to the other: three of four subtasks depend on memory."""
    return play_oracle(18, 1000, px=64, look_every=20)


def test_the_kinds_together_are_the_keyframes(episode: Episode) -> None:
    kinds = flagged_kinds(episode, KeyframeConfig())
    assert onsets(np.any([kind.flagged for kind in kinds], axis=0)) == episode.keyframes
    assert [kind.name for kind in kinds] == ["gripper", "slow", "turn"]
    assert kinds[0].flagged.sum() >= 2 and kinds[1].flagged.sum() > 10
    assert not (kinds[1].flagged & kinds[2].flagged).any()
    fewer = flagged_kinds(episode, EPSILON)[1].flagged
    assert fewer.sum() < kinds[1].flagged.sum() and not (fewer & ~kinds[1].flagged).any()


def test_what_is_drawn(episode: Episode) -> None:
    figure = Figure()
    draw(figure, episode, EPSILON)
    bands, speed, gripper, lanes, *images = figure.axes
    words = [text.get_text().replace("\n", " ") for text in bands.texts]
    assert [word for word in words if word != "transferring"] == [span.label for span in episode.subtasks]
    assert words.count("transferring") == 3
    assert len(bands.patches) == len(episode.subtasks)
    (trace, *_), positions = speed.lines, episode.state[:, :3].astype(float)
    assert np.asarray(trace.get_ydata())[1:] == pytest.approx(20 * np.linalg.norm(np.diff(positions, axis=0), axis=1))
    assert np.asarray(gripper.lines[0].get_ydata()) == pytest.approx(100 * episode.state[:, 9])
    levels = [line.get_ydata()[0] for line in speed.lines if line.get_linestyle() == "--"]  # type: ignore[index]
    assert levels == [0.04]
    for axes in (speed, gripper, lanes):
        upright = {line.get_xdata()[0] for line in axes.lines if len(set(line.get_xdata())) == 1}  # type: ignore[arg-type, index]
        assert upright == set(episode.keyframes)
    marks = [c for c in lanes.collections if isinstance(c, PathCollection)]
    assert [len(c.get_offsets()) for c in marks] == [k.flagged.sum() for k in flagged_kinds(episode, EPSILON)]  # type: ignore[arg-type]
    assert len(images) == min(IMAGES, len(episode.keyframes))
    steps = [int(axes.get_xlabel()) for axes in images]
    assert steps == sorted(set(steps)) and set(steps) <= set(episode.keyframes)
    for axes, step in zip(images, steps, strict=True):
        assert np.array_equal(np.asarray(axes.images[0].get_array()), episode.images["agentview_rgb"][step])


def test_the_image_is_written(episode: Episode, tmp_path: Path) -> None:
    plot_episode(episode, tmp_path / "plots" / "one.png")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["one.png"]
    image = imageio.imread(tmp_path / "plots" / "one.png")
    assert image.shape[:2] == (992, 1600) and image.std() > 20
    plot_episode(replace(episode, images={}, keyframes=(), subtasks=()), tmp_path / "bare.svg")
    assert (tmp_path / "bare.svg").read_text().rstrip().endswith("</svg>")


def test_what_cannot_be_plotted(episode: Episode, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only episodes of the arena can be plotted, which have a state of 17 numbers"):
        plot_episode(replace(episode, state=episode.state[:, :7]), tmp_path / "x.png")
    with pytest.raises(ValueError, match=r"cannot write \.doc: give --out a name such as x\.png"):
        plot_episode(episode, tmp_path / "x.doc")


def test_the_thresholds_are_those_of_the_data_set(tmp_path: Path) -> None:
    path = tmp_path / "Task" / "seed0000001000.h5"
    assert keyframe_config(path) == KeyframeConfig()
    (tmp_path / "config.json").write_text(json.dumps({"keyframes": {"speed_epsilon_m_s": 0.04}, "suite": "arena"}))
    assert keyframe_config(path) == EPSILON


def test_images_are_spread_over_the_episode() -> None:
    assert spread_out((0, 1, 2, 3, 50, 99), 100, 3) == [3, 50, 99]
    assert spread_out((5, 3), 100, 9) == [3, 5]
    assert spread_out((), 100, 9) == []


def test_a_video_shows_the_keyframes(episode: Episode, tmp_path: Path) -> None:
    path = tmp_path / "videos" / "one.mp4"
    images = {name: np.asarray(frames)[:40] for name, frames in episode.images.items()}
    cut = {"images": images, "state": episode.state[:40], "actions": episode.actions[:40], "keyframes": (20,)}
    show_episode(replace(episode, **cut), path, speed=1.0)
    assert [p.name for p in path.parent.iterdir()] == ["one.mp4"]
    assert imageio.immeta(path)["fps"] == 20
    pages = list(imageio.imiter(path))
    assert len(pages) == 40 and pages[0].shape[1] == 2 * 384 + 3 * 8
    blue = np.array([page[-200, 10] for page in pages]).astype(int)  # the frame around the first camera's image
    flash = (blue[:, 2] > blue[:, 0] + 80).nonzero()[0].tolist()
    assert flash == list(range(20, 28))  # 0.4 s
    with pytest.raises(ValueError, match=r"ends in \.mp4"):
        show_episode(episode, tmp_path / "x.gif")
    with pytest.raises(ValueError, match="more than 0; got 0"):
        show_episode(episode, path, speed=0)
    with pytest.raises(ValueError, match="holds independent states, which are no film"):
        show_episode(replace(episode, control_hz=0.0), path)
    with pytest.raises(ValueError, match="has no images"):
        show_episode(replace(episode, images={}), path)
