"""`predimem data`: the commands as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import imageio.v3 as imageio
import pytest

from predimem.core.episode_folder import list_episodes
from tests.datagen.export.builders import make_episode, run_command, save


def data(*arguments: object) -> str:
    return run_command("data", *arguments)


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return save(tmp_path / "episodes", make_episode(1, 1000), make_episode(10, 1001))


def test_statistics_as_markdown_and_as_json(episodes: Path, tmp_path: Path) -> None:
    text = data("stats", "--episodes", episodes)
    assert "| PourWineIntoMugTwice | - | 1 |" in text and "| demonstrations | 2 | 2,600 |" in text
    data("stats", "--episodes", episodes, "--out", tmp_path / "docs/stats.md", "--no-verify")
    assert (tmp_path / "docs/stats.md").read_text() in text
    data("stats", "--episodes", episodes, "--out", tmp_path / "stats.json")
    assert json.loads((tmp_path / "stats.json").read_text())["all"]["episodes"] == 2
    with pytest.raises(ValueError, match=r"--out is a file that ends in \.md or \.json, got .*stats\.txt"):
        data("stats", "--episodes", episodes, "--out", tmp_path / "stats.txt")


def test_an_episode_as_a_image_and_as_a_video(episodes: Path, tmp_path: Path) -> None:
    path = list_episodes(episodes)[0]
    assert str(tmp_path / "a.png") in data("plot", path, "--out", tmp_path / "a.png")
    assert imageio.imread(tmp_path / "a.png").shape[1] == 1600
    assert str(tmp_path / "a.mp4") in data("show", path, "--out", tmp_path / "a.mp4", "--speed", 1)
    assert len(list(imageio.imiter(tmp_path / "a.mp4"))) == len(make_episode(1, 1000))
