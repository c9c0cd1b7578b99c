"""What a run has done, noted line by line, so that the same command goes on where it was interrupted.

Of data generation, `journal.jsonl` has one line for each outcome, and of a seed the last line counts. `config.json` is
the configuration of the latest run, `inputs.json` has fingerprints of what it names by a path, and `errors/` the
tracebacks of what failed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from predimem.core.config import differences, in_todays_words
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.files import write_json, write_text
from predimem.core.frames import EpisodeError
from predimem.core.jsonl import FileInUse, JsonLines
from predimem.jobs.tasks import Job, Outcome


class JournalError(ValueError):
    """The folder is in use, damaged, or was filled with another configuration."""


class Journal:
    """A file of JSON lines in the folder of a run, locked until it is closed; use it in a `with` block.

    error: the exception that is raised.
    instead: what to do where the folder cannot be used.
    """

    name: ClassVar[str]
    error: ClassVar[type[ValueError]] = JournalError
    instead: ClassVar[str] = "use another folder"

    def __init__(self, out: str | Path):
        self.out = Path(out)
        try:
            self._file = JsonLines(self.out / self.name)
        except FileInUse as error:
            raise self.error(f"another run is writing to {self.out}: wait for it, or {self.instead}") from error

    def append(self, line: dict[str, Any]) -> None:
        """Returns once it is on the disk."""
        self._file.append(line)

    def refuse(self, changed: Collection[str]) -> None:
        """Raises where something differs from the run before, as `differences` says it."""
        if changed:
            raise self.error(f"{self.out} was made with something else: {', '.join(changed)}; {self.instead}")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class DataJournal(Journal):
    """The journal of a folder of episodes.

    config: what the episodes are made with, as JSON data. Its keys in `may_differ` ("a", or "a.b") do not change an
    episode (workers, which tasks, how many); where another one differs from the folder's `config.json`, JournalError
    says so.
    config_class: its dataclass, whose former field names are understood.
    inputs: fingerprints of what the config names by a path, such as weights. Where one is another than before,
    JournalError says so: a path says nothing of what was made anew there.
    outcomes: by job, in the order of their first line.
    """

    name = "journal.jsonl"

    def __init__(
        self,
        out: str | Path,
        config: dict[str, Any],
        may_differ: Collection[str] = (),
        config_class: type | None = None,
        inputs: Mapping[str, str] | None = None,
    ):
        super().__init__(out)
        self._config_class = config_class
        try:
            self._check(json.loads(json.dumps(config)), may_differ, dict(inputs or {}))
            self.outcomes = self._read()
        except BaseException:
            self.close()
            raise

    def missing(self, jobs: Sequence[Job], retry_errors: bool = False) -> list[Job]:
        """Those of `jobs` that are to be played: they have no outcome yet, or were kept and their file is gone.

        This finds and counts episodes that were stored just before a crash.
        retry_errors: jobs that ended in an error are missing, too.
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

    def remove_unfinished(self) -> None:
        """Delete the unfinished files of episodes that killed workers were writing; no worker may be left."""
        for path in self.out.rglob("*.h5.partial"):
            path.unlink(missing_ok=True)

    def add(self, outcome: Outcome, traceback: str = "") -> None:
        """Returns once it is on the disk."""
        if traceback:
            write_text(self.error_path(outcome.job), traceback)
        self.append(outcome.as_json())
        self.outcomes[outcome.job] = outcome

    def episode_path(self, job: Job) -> Path:
        return episode_path(self.out, job.task, job.seed)

    def error_path(self, job: Job) -> Path:
        return self.out / "errors" / f"{job.task}-seed{job.seed:010d}.txt"

    def _is_done(self, job: Job, retry_errors: bool) -> bool:
        outcome = self.outcomes.get(job)
        if outcome is None or (retry_errors and outcome.is_error):
            return False
        return not outcome.kept or self.episode_path(job).exists()

    def _check(self, config: dict[str, Any], may_differ: Collection[str], inputs: dict[str, str]) -> None:
        """Nothing is written where anything is refused."""
        path, inputs_path = self.out / "config.json", self.out / "inputs.json"
        if path.exists():
            before = json.loads(path.read_text())
            if self._config_class is not None:
                before = in_todays_words(self._config_class, before)
            self.refuse(differences(_without(before, may_differ), _without(config, may_differ)))
        known = json.loads(inputs_path.read_text()) if inputs_path.exists() else {}
        self.refuse(differences(known, known | {name: inputs[name] for name in inputs if name in known}))
        write_json(path, config, indent=2)
        if inputs:
            write_json(inputs_path, known | inputs, indent=2)

    def _read(self) -> dict[Job, Outcome]:
        try:
            found = [Outcome(**line) for line in self._file.read()]
        except (ValueError, TypeError) as error:
            raise JournalError(f"{error}: mend the file, or move it away to count the episodes anew") from error
        return {outcome.job: outcome for outcome in found}


def _without(config: dict[str, Any], keys: Collection[str], within: str = "") -> dict[str, Any]:
    """Without these keys, also of the mappings in it: "a.b"."""
    return {
        name: _without(value, keys, f"{within}{name}.") if isinstance(value, dict) else value
        for name, value in config.items()
        if f"{within}{name}" not in keys
    }
