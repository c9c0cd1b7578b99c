"""The journal alone: crashes at any moment, another configuration, a second run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.jobs.journal import JournalError
from predimem.jobs.tasks import Job, Outcome
from tests.jobs.small_worker import STEPS, open_journal, small_episode

A, B, C = Job("Pour", 1001), Job("Pour", 1002), Job("Pour", 1003)


def store(out: Path, job: Job) -> Path:
    path = episode_path(out, job.task, job.seed)
    save_episode(path, small_episode(job))
    return path


def kept(job: Job) -> Outcome:
    return Outcome(job.task, job.seed, kept=True, steps=STEPS, report={"stages": {"plan_s": 0.5}})


def discarded(job: Job, cause: str = "dropped it") -> Outcome:
    return Outcome(job.task, job.seed, kept=False, cause=cause)


def test_outcomes_come_back_and_missing_is_the_rest(tmp_path: Path) -> None:
    store(tmp_path, A)
    with open_journal(tmp_path) as journal:
        journal.add(kept(A))
        journal.add(discarded(B), traceback="")
        assert journal.missing([A, B, C]) == [C]
    with open_journal(tmp_path) as journal:
        assert journal.outcomes == {A: kept(A), B: discarded(B)}
        assert journal.missing([C, B, A]) == [C]
    assert not (tmp_path / "errors").exists()


def test_a_kept_episode_without_its_file_is_missing(tmp_path: Path) -> None:
    path = store(tmp_path, A)
    with open_journal(tmp_path) as journal:
        journal.add(kept(A))
        path.unlink()
        assert journal.missing([A]) == [A]
        store(tmp_path, A)
        journal.add(kept(A))
        assert journal.missing([A]) == []


def test_a_file_without_its_line_is_counted_unless_it_is_damaged(tmp_path: Path) -> None:
    store(tmp_path, A)
    store(tmp_path, B).write_bytes(b"")
    with open_journal(tmp_path) as journal:
        assert journal.missing([A, B, C]) == [B, C]
        found = journal.outcomes[A]
        assert (found.kept, found.steps, found.report) == (True, STEPS, {"recovered": True})
    with open_journal(tmp_path) as journal:
        assert list(journal.outcomes) == [A]


def test_errors_are_missing_only_when_they_are_to_be_retried(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(discarded(A, "error: ValueError"), traceback="ValueError\n  here")
        journal.add(discarded(B, "worker died 3 times"))
        journal.add(discarded(C))
        assert journal.missing([A, B, C]) == []
        assert journal.missing([A, B, C], retry_errors=True) == [A, B]
        assert journal.error_path(A).read_text() == "ValueError\n  here"


def test_a_line_cut_short_is_repaired(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        journal.add(discarded(A))
        journal.add(discarded(B))
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with open_journal(tmp_path) as journal:
        assert list(journal.outcomes) == [A]
        journal.add(discarded(C))
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [1001, 1003]


@pytest.mark.parametrize("line", ["{broken", '{"task": "Pour"}', '{"task": "Pour", "seed": 1, "kept": true, "x": 1}'])
def test_damage_is_reported(tmp_path: Path, line: str) -> None:
    (tmp_path / "journal.jsonl").write_text(line + "\n")
    with pytest.raises(JournalError, match="mend the file"):
        open_journal(tmp_path)


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    with open_journal(tmp_path), pytest.raises(JournalError, match="another run is writing"):
        open_journal(tmp_path)
    open_journal(tmp_path).close()


def test_another_configuration_is_refused_and_says_what_differs(tmp_path: Path) -> None:
    open_journal(tmp_path, speed=0.1).close()
    with pytest.raises(JournalError, match=r"speed \(was 0\.1, is 0\.2\)"):
        open_journal(tmp_path, speed=0.2)
    open_journal(tmp_path, workers=8).close()
    assert json.loads((tmp_path / "config.json").read_text()) == {"workers": 8, "speed": 0.1}


def test_a_cause_belongs_to_the_discarded() -> None:
    for wrong in ({"kept": True, "cause": "dropped it"}, {"kept": False, "cause": ""}):
        with pytest.raises(ValueError, match="a cause is for the discarded"):
            Outcome("Pour", 1, **wrong)
