"""What is said before PyTorch is imported, and which command it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from predimem.cli.early import check_actor_recipe, check_planner_recipe
from predimem.core.episode_folder import list_episodes
from predimem.core.frames import EpisodeError
from predimem.core.weight_files import WeightsError

ROOT = Path(__file__).parents[2]
IMPORTED = """
import sys
from predimem import cli
sys.argv = ["predimem", *sys.argv[1:]]
try:
    cli.main()
except SystemExit as end:
    print(end, file=sys.stderr)
print(sorted({"torch", "transformers", "sapien"} & set(sys.modules)))
"""


def imported_by(*arguments: str) -> tuple[str, str]:
    """(the heavy packages that a command has imported, what it said)."""
    command = [sys.executable, "-c", IMPORTED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done.stdout.splitlines()[-1], done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "planner", "--config", "configs/planner/tiny.yaml", "--episodes"],
        ["train", "actor", "--config", "configs/actor/tiny.yaml", "--episodes"],
        ["verify", "planner", "--episodes"],
        ["verify", "actor", "--golden"],
        ["export", "sft", "--out", "/tmp/nowhere", "--episodes"],
        ["data", "stats", "--episodes"],
        ["data", "plot", "--out", "plot.png"],
    ],
)
def test_missing_files_are_noticed_before_anything_heavy_is_imported(arguments, tmp_path):
    nothing = str(tmp_path / "nothing")
    heavy, said = imported_by(*arguments, nothing)
    assert heavy == "[]" and nothing in said


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("runs/data/mikasa", "predimem datagen --config configs/datagen_mikasa.yaml`"),
        ("runs/data/arena", "predimem datagen --config configs/datagen.yaml`"),
        ("runs/data/dagger/round1", "predimem datagen --config configs/datagen_dagger.yaml`"),
        ("runs/train/arena/data/skills", "predimem train arena --config configs/train_arena.yaml`"),
        ("mine", "predimem datagen --config configs/datagen_mikasa.yaml --out mine`"),
    ],
)
def test_the_hint_names_the_command_that_makes_them(folder, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EpisodeError) as raised:
        list_episodes(folder)
    assert f"no episodes under {folder}: make " in str(raised.value) and command in str(raised.value)


def test_a_training_that_has_its_data_needs_no_episodes(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"episodes: {tmp_path}/none\nout: {tmp_path}/out\n")
    with pytest.raises(EpisodeError):
        check_planner_recipe(recipe, None, None)
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / "data" / "train.jsonl").touch()
    check_planner_recipe(recipe, None, None)
    recipe.write_text(f"episodes: {tmp_path}/none\nsft: {{epochs: 0}}\n")
    check_planner_recipe(recipe, None, None)


def test_weights_to_start_from(tmp_path):
    (tmp_path / "seed0000001000.h5").touch()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"episodes: {tmp_path}\ncontinue_from: {tmp_path}/weights\n")
    for check in (lambda: check_actor_recipe(recipe, None), lambda: check_planner_recipe(recipe, None, None)):
        with pytest.raises(WeightsError, match="continue_from: there is nothing at"):
            check()


def test_a_tower_that_is_taken_needs_no_scenes(tmp_path):
    (tmp_path / "seed0000001000.h5").touch()
    recipe = tmp_path / "recipe.yaml"
    vision = f"vision: {{scenes: {tmp_path}/none, from_planner: "
    recipe.write_text(f"episodes: {tmp_path}\n{vision}{tmp_path}}}\n")
    check_planner_recipe(recipe, None, None)
    recipe.write_text(f"episodes: {tmp_path}\n{vision}{tmp_path}/planner}}\n")
    with pytest.raises(WeightsError, match=r"vision\.from_planner: there is nothing at"):
        check_planner_recipe(recipe, None, None)
