"""Files and folders are whole under their name, whatever happens while they are written."""

import errno
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from predimem.core.files import AtomicWrite, check_file, check_folder, one_at_a_time, write_json, write_text
from predimem.core.jsonl import JsonLines

ROOT = Path(__file__).parents[2]


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


def test_a_folder_that_can_be_written_to_is_left_as_it_was(tmp_path: Path) -> None:
    check_folder(tmp_path / "not" / "yet" / "there")
    check_file(tmp_path / "runs" / "video.mp4")
    assert not list(tmp_path.iterdir())


def test_a_file_where_a_folder_is_expected(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    for path in (tmp_path / "notes", tmp_path / "notes" / "run"):
        with pytest.raises(NotADirectoryError) as raised:
            check_folder(path)
        assert raised.value.filename == str(tmp_path / "notes")
    with pytest.raises(IsADirectoryError):
        check_file(tmp_path)


def test_a_folder_without_permission() -> None:
    """As another user where root runs the tests, since nothing is forbidden to root."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError) as raised:
                check_folder(Path(folder, "run"))
        finally:
            os.seteuid(user)
        assert raised.value.filename == folder


@pytest.mark.parametrize("how", ["in its own words", "by raising something else"])
def test_what_does_not_fit_on_the_disk_is_told_with_its_path(tmp_path: Path, how: str) -> None:
    """The limit on the size of files stands for the size of the disk: the system refuses to write on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    (tmp_path / "data").write_text("before")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError) as raised, AtomicWrite(tmp_path / "data") as partial:
            try:
                partial.write_bytes(bytes(2000))
            except OSError as error:
                if how == "in its own words":
                    raise
                raise RuntimeError(f"serialisation failed: {error.strerror}") from None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(tmp_path / "data"))
    assert (tmp_path / "data").read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_a_line_that_does_not_fit_leaves_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JsonLines(path)
    journal.append({"seed": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError) as raised:
            journal.append({"seed": 2, "why": "x" * 200})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.filename == str(path)
    assert path.read_text() == '{"seed": 1}\n'
    journal.append({"seed": 2})
    assert journal.read() == [{"seed": 1}, {"seed": 2}]
    journal.close()


def test_only_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    script = """
import sys
from predimem.core.files import one_at_a_time
with one_at_a_time(sys.argv[1]):
    print("inside", flush=True)
"""
    with one_at_a_time(tmp_path / "vision"):
        command = [sys.executable, "-c", script, str(tmp_path / "vision")]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        assert other.stdout is not None
        assert other.stdout.readline() == f"waiting for another process, which works in {tmp_path / 'vision'}\n"
        assert other.poll() is None
    assert other.communicate(timeout=60)[0] == "inside\n" and other.returncode == 0
    with one_at_a_time(tmp_path / "vision"):
        assert names(tmp_path) == ["vision.lock"]
