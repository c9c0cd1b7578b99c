"""Folders of weights: found, hashed, and placed side by side so that equal files are kept once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from predimem.core.weight_files import (
    INSTRUCTIONS_FILE,
    WeightsError,
    model_folder,
    place_weights,
    weights_folder,
    weights_hash,
)

TOWER, TEXT = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "weights"


def make(folder: Path, tower: str, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / TOWER).write_text(tower)
    (folder / TEXT).write_text(text)
    (folder / "tokenizer.json").write_text("words")
    return folder


def place(root: Path, name: str, tower: str, text: str) -> Path:
    source = make(root.parent / f"made-{name}-{tower}-{text}", tower, text)
    return place_weights(source, root, name)


def test_equal_towers_are_kept_once(root: Path) -> None:
    for name in ("b", "c", "a"):
        place(root, name, "tower", f"text of {name}")
    place(root, "d", "another tower", "text of d")
    links = {
        path.relative_to(root).as_posix(): path.readlink().as_posix() for path in root.rglob("*") if path.is_symlink()
    }
    assert links == {f"b/{TOWER}": f"../a/{TOWER}", f"c/{TOWER}": f"../a/{TOWER}"}
    assert [(root / name / TOWER).read_text() for name in "abcd"] == ["tower"] * 3 + ["another tower"]
    assert all(not (root / name / "tokenizer.json").is_symlink() for name in "abcd")


def test_a_link_counts_as_its_file(root: Path) -> None:
    alone = make(root.parent / "alone", "tower", "text")
    place(root, "a", "tower", "something else")
    linked = place_weights(alone, root, "b")
    assert (linked / TOWER).is_symlink()
    assert weights_hash(linked) == weights_hash(alone)
    (root / "a" / TOWER).write_text("altered")
    assert weights_hash(linked) != weights_hash(alone)


def test_a_list_of_instructions_changes_no_hash(root: Path) -> None:
    folder = make(root / "a", "tower", "text")
    before = weights_hash(folder)
    (folder / INSTRUCTIONS_FILE).write_text("[]")
    assert weights_hash(folder) == before
    (folder / "config.json").write_text("[]")
    assert weights_hash(folder) != before


def test_replacing_the_folder_that_holds_the_file(root: Path) -> None:
    for name in "abc":
        place(root, name, "tower", name)
    place(root, "a", "new tower", "a")
    assert [(root / name / TOWER).read_text() for name in "abc"] == ["new tower", "tower", "tower"]
    assert (root / "c" / TOWER).readlink() == Path("..", "b", TOWER)
    assert not (root / "b" / TOWER).is_symlink()
    place(root, "b", "new tower", "b")
    assert [(root / name / TOWER).read_text() for name in "abc"] == ["new tower", "new tower", "tower"]
    assert not list(root.rglob("*.partial"))


def test_a_folder_taken_away_from_its_neighbours_is_an_error_that_says_so(root: Path, tmp_path: Path) -> None:
    place(root, "a", "tower", "a")
    linked = place(root, "b", "tower", "b")
    shutil.copytree(linked, tmp_path / "away" / "b", symlinks=True)
    with pytest.raises(WeightsError, match=r"which is not there: .* side by side"):
        weights_hash(tmp_path / "away" / "b")


def test_links_survive_a_clone(root: Path, tmp_path: Path) -> None:
    for name in "ab":
        place(root, name, "tower", name)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "weights"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    subprocess.run(["git", "clone", "-q", str(root), str(tmp_path / "clone")], check=True)
    assert (tmp_path / "clone" / "b" / TOWER).is_symlink()
    for name in "ab":
        assert weights_hash(tmp_path / "clone" / name) == weights_hash(root / name)


def test_what_is_missing_beside_own_weights_can_be_taken_from_the_shipped_ones(tmp_path: Path) -> None:
    (tmp_path / "planner").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(WeightsError, match=r"\(there: planner\).* shipped ones: `cp -rL .*weights/actor") as raised:
        weights_folder(tmp_path, "actor")
    command = str(raised.value).split("`")[-2]
    subprocess.run(command, shell=True, check=True)
    assert weights_folder(tmp_path, "actor") == tmp_path / "actor"
    with pytest.raises(WeightsError) as raised:
        weights_folder(tmp_path, "planner-of-mine")
    assert "shipped" not in str(raised.value)


def test_shipped_weights_are_found_beside_a_package_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "actor").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_folder("actor") == weights_folder(None, "actor")
    (tmp_path / "actor" / "config.json").write_text("{}")
    assert model_folder("actor") == Path("actor")
    (tmp_path / "mine").mkdir()
    assert model_folder("mine") == Path("mine")
    with pytest.raises(WeightsError, match="no weights for 'yours'"):
        model_folder("yours")
