"""`predimem export` and `predimem import`: from one format to the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import load_episode
from tests.datagen.export.builders import make_episode, run_command, save


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    return save(tmp_path / "episodes", make_episode(1, 1000), make_episode(10, 1001))


def test_hdf5_out_and_in(episodes: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "hdf5", "--image-px", 32)
    output = run_command("export", "robomemarena", "--episodes", episodes, *out)
    assert "8 files" in output and "builder refuses images of 32 px: it takes 256 only" in output
    roots = f"{tmp_path / 'hdf5/counting'}, {tmp_path / 'hdf5/sequence'}"
    assert f"ROBOMEMARENA_DATA_ROOT is the folder of one category: {roots}" in output
    assert "2 episodes" in run_command(
        "import", "robomemarena", "--data", tmp_path / "hdf5", "--out", tmp_path / "back"
    )
    names = [path.relative_to(episodes) for path in list_episodes(episodes)]
    assert [path.relative_to(tmp_path / "back") for path in list_episodes(tmp_path / "back")] == names


def test_lerobot(episodes: Path, tmp_path: Path) -> None:
    output = run_command("export", "lerobot", "--episodes", episodes, "--out", tmp_path / "out", "--robot", "fr3")
    assert "2 episodes" in output
    assert json.loads((tmp_path / "out/meta/info.json").read_text())["robot_type"] == "fr3"
    run_command("export", "lerobot", "--episodes", episodes, "--out", tmp_path / "language", "--language")
    features = json.loads((tmp_path / "language/meta/info.json").read_text())["features"]
    assert "language_persistent" in features


def test_sft_takes_the_cameras_of_the_episodes_and_overwrites_nothing(episodes: Path, tmp_path: Path) -> None:
    arguments = ("export", "sft", "--episodes", episodes, "--out", tmp_path / "out", "--samples", 7)
    run_command(*arguments, "--images", "base64")
    lines = (tmp_path / "out/train.jsonl").read_text().splitlines()
    assert len(lines) == 7
    record = json.loads(lines[0])
    episode = next(e for e in map(load_episode, list_episodes(episodes)) if e.task == record["metadata"]["task"])
    assert record["metadata"]["camera_keys"] == list(episode.images) == ["agentview_rgb", "eye_in_hand_rgb"]
    assert episode.instruction in record["messages"][1]["content"]
    assert record["images"][0].startswith("data:image/png;base64,")
    with pytest.raises(ValueError, match=r"holds a train\.jsonl already: choose another --out"):
        run_command(*arguments)


def test_sft_follows_a_recipe(episodes: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("prompt: {cameras: [eye_in_hand_rgb]}\nmemory: {recent_window: 2}\ndataset: {samples: 5}\n")
    run_command("export", "sft", "--episodes", episodes, "--out", tmp_path / "out", "--config", recipe)
    records = [json.loads(line) for line in (tmp_path / "out/train.jsonl").read_text().splitlines()]
    assert len(records) == 5
    for record in records:
        assert record["metadata"]["camera_keys"] == ["eye_in_hand_rgb"]
        assert record["metadata"]["num_context_frames"] <= 2
        assert all(Path(image).is_file() for image in record["images"])


@pytest.mark.parametrize("kind", ["sft", "robomemarena", "lerobot"])
def test_a_folder_without_episodes(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="no episodes under"):
        run_command("export", kind, "--episodes", tmp_path, "--out", tmp_path / "out")
