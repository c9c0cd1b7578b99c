"""The script of the first hour: it knows every documented command, and it notices what it is there to notice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.first_hour.__main__ import faults_of, fingerprint, run
from benchmarks.first_hour.documented import documented_commands
from benchmarks.first_hour.steps import FirstHour, Step, read_table
from benchmarks.first_hour.watch import watch

ROOT = Path(__file__).parents[1]
SETUP = "make setup"


@pytest.fixture(scope="module")
def table() -> FirstHour:
    return read_table()


def test_every_documented_command_is_run_or_left_out_for_a_reason(table: FirstHour) -> None:
    missing = {c: page for c, page in documented_commands(ROOT).items() if c not in table.documented | {SETUP}}
    assert missing == {}, "add them to benchmarks/first_hour/commands.yaml"


def test_the_table_has_no_command_that_the_docs_have_no_more(table: FirstHour) -> None:
    assert table.documented - set(documented_commands(ROOT)) == set()


def test_commands_are_read_from_blocks(tmp_path: Path) -> None:
    text = "```python\nmake = 1\n```\nmake not\n"
    text += "```bash\n$ predimem eval  \\\n   --tasks 4   # all\nls\n```\n```\nmake x\n```\n"
    (tmp_path / "README.md").write_text(text)
    assert list(documented_commands(tmp_path)) == ["predimem eval --tasks 4", "make x"]


def test_a_silence_and_a_wrong_exit_code_are_faults(tmp_path: Path) -> None:
    watched = watch("echo a; sleep 1.2; echo b; exit 3", tmp_path, tmp_path / "log", timeout_s=20)
    assert (watched.code, watched.output.split()) == (3, ["a", "b"])
    assert 1.0 < watched.silence_s < 5.0
    faults = faults_of(Step(run="", silence_s=1.0, says=("a", "c"), lines=1), watched)
    assert [fault.split(",")[0] for fault in faults] == [
        "exit code 3",
        "does not say 'c'",
        f"silent for {watched.silence_s:.0f} s",
        "2 lines",
    ]


def test_a_traceback_is_a_fault(tmp_path: Path) -> None:
    watched = watch(f"{sys.executable} -c 'raise KeyError(1)'", tmp_path, tmp_path / "log", timeout_s=20)
    assert faults_of(Step(run="", code=1), watched) == ["traceback"]


def test_a_server_is_interrupted_when_it_is_ready(tmp_path: Path) -> None:
    command = "trap 'echo bye; exit 0' INT; echo ready; while true; do sleep 0.1; done"
    watched = watch(command, tmp_path, tmp_path / "log", timeout_s=30, until="ready")
    assert (watched.stopped, watched.code) == (True, 0)
    assert faults_of(Step(run="", until="ready"), watched) == []


def test_a_command_that_never_ends_is_stopped(tmp_path: Path) -> None:
    watched = watch("exec sleep 60", tmp_path, tmp_path / "log", timeout_s=0.5)
    assert watched.seconds < 30
    assert faults_of(Step(run=""), watched) == [f"exit code {watched.code}, expected 0"]


def test_a_finished_run_that_is_written_again_is_a_fault(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text('{"episodes": [{"seed": 1, "wall_s": 3.5}], "wall_s": 4}')
    kept = Step(run="sed -i s/4/5/ results.json", keeps="results.json")
    assert run(kept, tmp_path, tmp_path / "log")[1] == []
    before = fingerprint(results)
    deleted = Step(run="sed -i s/3.5/3.6/ results.json", keeps="results.json")
    assert run(deleted, tmp_path, tmp_path / "log")[1] == ["results.json was changed"]
    assert fingerprint(results) != before
