"""The journal of a folder of episodes: what has been played, so that a run goes on where it stopped.

`journal.jsonl` has one line for each outcome, and of a seed the last line counts. `config.json` is the
configuration of the latest run. `errors/` holds the tracebacks of what failed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.core.episodes import EpisodeError, load_episode
from predimem.core.jsonl import FileInUse, JsonLines
from predimem.jobs.tasks import Job, Outcome


class JournalError(ValueError):
    """The folder is in use, damaged, or was filled with another configuration."""


class Journal:
    """Opens and locks the journal in `out`; close it, or use it in a `with` block.

    config: JSON data, what the episodes are made with. Its top-level keys in `may_differ` do not change an
    episode (workers, which tasks, how many); where another one differs from the folder's `config.json`,
    JournalError says so. episode_path: where the episode of a job is stored.
    outcomes: by job, in the order of their first line.
    """

    def __init__(
        self,
        out: str | Path,
        config: dict[str, Any],
        episode_path: Callable[[Job], Path],
        may_differ: Collection[str] = (),
    ):
        self.out = Path(out)
        self.episode_path = episode_path
        try:
            self._file = JsonLines(self.out / "journal.jsonl")
        except FileInUse as error:
            raise JournalError(f"another run is writing to {self.out}: wait for it, or use another folder") from error
        try:
            self._check_config(json.loads(json.dumps(config)), may_differ)
            self.outcomes = self._read()
        except BaseException:
            self.close()
            raise

    def missing(self, jobs: Sequence[Job], retry_errors: bool = False) -> list[Job]:
        """Those of `jobs` to be played: no outcome yet, or kept and the file is gone. Finds and counts
        episodes that were stored just before a crash. retry_errors: and those that ended in an error.
        """
        return [job for job in jobs if not self._is_done(job, retry_errors) and self.recover(job) is None]

    def recover(self, job: Job) -> Outcome | None:
        """The outcome of an episode that is stored, but was not noted because its worker or the run died."""
        path = self.episode_path(job)
        if not path.exists():
            return None
        try:
            steps = len(load_episode(path))
        except EpisodeError:  # the machine stopped before all of it was on the disk
            return None
        outcome = Outcome(job.task, job.seed, kept=True, steps=steps, report={"recovered": True})
        self.add(outcome)
        return outcome

    def add(self, outcome: Outcome, traceback: str = "") -> None:
        """Returns once it is on the disk."""
        if traceback:
            path = self.error_path(outcome.job)
            path.parent.mkdir(exist_ok=True)
            path.write_text(traceback)
        self._file.append(outcome.as_json())
        self.outcomes[outcome.job] = outcome

    def error_path(self, job: Job) -> Path:
        return self.out / "errors" / f"{job.task}-seed{job.seed:010d}.txt"

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_done(self, job: Job, retry_errors: bool) -> bool:
        outcome = self.outcomes.get(job)
        if outcome is None or (retry_errors and outcome.is_error):
            return False
        return not outcome.kept or self.episode_path(job).exists()

    def _check_config(self, config: dict[str, Any], may_differ: Collection[str]) -> None:
        path = self.out / "config.json"
        if path.exists():
            before = json.loads(path.read_text())
            changed = differences(_without(before, may_differ), _without(config, may_differ))
            if changed:
                raise JournalError(
                    f"{self.out} was made with another configuration: {', '.join(changed)}. "
                    "Use another folder, or the configuration of before"
                )
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(config, indent=2) + "\n")
        os.replace(partial, path)

    def _read(self) -> dict[Job, Outcome]:
        try:
            found = [Outcome(**line) for line in self._file.read()]
        except (ValueError, TypeError) as error:
            raise JournalError(f"{error}: mend the file, or move it away to count the episodes anew") from error
        return {outcome.job: outcome for outcome in found}


def _without(config: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in keys}
