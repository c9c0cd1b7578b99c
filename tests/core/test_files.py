"""Files and folders are whole under their name, whatever happens while they are written."""

from pathlib import Path

import pytest

from predimem.core.files import AtomicWrite, write_json, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_done_and_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "notes.txt"
    write_text(path, "first, ü")
    with AtomicWrite(path) as partial:
        partial.write_text("second")
        assert path.read_text(encoding="utf-8") == "first, ü" and names(path.parent) == [path.name, partial.name]
    assert path.read_text() == "second" and names(path.parent) == [path.name]


def test_an_exception_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    write_text(path, "first")
    with pytest.raises(KeyboardInterrupt), AtomicWrite(path) as partial:
        partial.write_text("sec")
        raise KeyboardInterrupt
    assert path.read_text() == "first" and names(tmp_path) == [path.name]


def test_what_a_crash_left_behind_is_no_part_of_the_next_attempt(tmp_path: Path) -> None:
    (tmp_path / "model.partial").mkdir()
    (tmp_path / "model.partial" / "old").touch()
    with AtomicWrite(tmp_path / "model") as partial:
        assert not partial.exists()
        partial.mkdir()
        (partial / "new").touch()
    assert names(tmp_path) == ["model"] and names(tmp_path / "model") == ["new"]


def test_a_folder_replaces_a_folder_and_a_link_is_not_followed(tmp_path: Path) -> None:
    for content in ("first", "second"):
        with AtomicWrite(tmp_path / "model") as partial:
            partial.mkdir()
            (partial / content).touch()
    assert names(tmp_path / "model") == ["second"]
    (tmp_path / "link").symlink_to("model")
    with AtomicWrite(tmp_path / "link") as partial:
        partial.symlink_to("elsewhere")
    assert (tmp_path / "link").readlink() == Path("elsewhere") and names(tmp_path / "model") == ["second"]


def test_a_format_can_be_chosen_by_the_ending(tmp_path: Path) -> None:
    video = AtomicWrite(tmp_path / "clip.mp4", ".partial.mp4")
    video.partial.touch()
    assert video.partial.suffix == ".mp4"
    video.abandon()
    video.abandon()
    assert names(tmp_path) == []


def test_json_ends_with_a_line(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": [1]}, indent=1)
    assert (tmp_path / "a.json").read_text() == '{\n "a": [\n  1\n ]\n}\n'
