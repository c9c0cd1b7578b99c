"""Keeps the journal of an evaluation: one line for each finished episode, so that an interrupted run goes on.

The first line of `episodes.jsonl` names what the results depend on (benchmark, config). Every later line is an episode
record, the start of a run that added to the file, or what the episodes of one agent depend on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.evaluation.run.jobs import EpisodeRecord, EvaluationError
from predimem.evaluation.run.migrations import modern_agent, modern_identity, modern_record
from predimem.jobs.journal import Journal

SCHEMA = 1


class EvaluationJournal(Journal):
    """Open `out`/episodes.jsonl for the given `identity`, read what is there and lock it.

    identity: plain JSON data that two runs must share for their episodes to be put together
    overwrite: begin anew; the earlier episodes, traces and videos are removed by `begin`
    agents: agent -> JSON data that its episodes alone depend on; other agents may come and go between two runs
    """

    name = "episodes.jsonl"
    error = EvaluationError
    instead = "use another --out, or --overwrite to play all episodes again"

    def __init__(
        self,
        out: Path,
        identity: dict[str, Any],
        overwrite: bool = False,
        agents: dict[str, dict[str, Any]] | None = None,
    ):
        super().__init__(out)
        self.records: dict[tuple[str, str, int], EpisodeRecord] = {}
        self.runs: list[dict[str, Any]] = []
        self.seconds = 0.0  # that all runs took
        self._agents: dict[str, dict[str, Any]] = {}
        self._overwrite = overwrite
        self._unwritten: list[dict[str, Any]] = []  # nothing is, and nothing removed, before there is something to play
        try:
            self._read(identity)
            self._join(agents or {})
        except BaseException:
            self.close()
            raise

    def begin(self, run: dict[str, Any]) -> None:
        """Note that a run (its start, revision and machine) adds episodes from here on."""
        if self._overwrite:
            self._clear()
            self._overwrite = False
        self.runs.append(run)
        for line in (*self._unwritten, {"run": run}):
            self.append(line)
        self._unwritten = []

    def add(self, record: EpisodeRecord) -> None:
        self.records[record["task"], record["agent"], record["seed"]] = record
        self.append({"episode": record})

    def note_seconds(self, seconds: float) -> None:
        """How long a run took."""
        self.seconds += seconds
        self.append({"seconds": round(seconds, 3)})

    def _clear(self) -> None:
        self._file.clear()
        _remove_outputs(self.out)

    def _join(self, agents: dict[str, dict[str, Any]]) -> None:
        for name, identity in agents.items():
            if name not in self._agents:
                self._agents[name] = identity
                self._unwritten.append({"agent": name, "identity": identity})
            elif self._agents[name] != identity:
                self.refuse(differences(self._agents[name], identity, name))

    def _read(self, identity: dict[str, Any]) -> None:
        try:
            lines = [] if self._overwrite else self._file.read()
        except ValueError as error:
            raise EvaluationError(f"{error}: {self.instead}") from error
        if not lines:
            self._unwritten.append({"schema": SCHEMA, "fingerprint": fingerprint(identity), "identity": identity})
            return
        head, *lines = lines
        if head.get("schema") != SCHEMA:
            self.refuse(["the journal's format"])
        before, self._agents = modern_identity(head["identity"])
        self.refuse(differences(before, identity))
        for line in lines:
            if "run" in line:
                self.runs.append(line["run"])
            elif "seconds" in line:
                self.seconds += line["seconds"]
            elif "agent" in line:
                self._agents[line["agent"]] = modern_agent(line["identity"])
            else:
                record = modern_record(line["episode"])
                self.records[record["task"], record["agent"], record["seed"]] = record


def refuse_run(out: Path) -> None:
    """Raises EvaluationError where `out` itself holds an evaluation, so that nothing else is to be written there."""
    if (out / EvaluationJournal.name).exists():
        raise EvaluationError(f"{out} holds an evaluation ({EvaluationJournal.name}); {EvaluationJournal.instead}")


def clear_run(out: Path) -> None:
    """Remove the evaluation that `out` itself holds; nothing is touched where there is none."""
    if (out / EvaluationJournal.name).is_file():
        _remove_outputs(out)
        (out / EvaluationJournal.name).unlink()


def _remove_outputs(out: Path) -> None:
    for folder in ("traces", "videos", "failures"):
        shutil.rmtree(out / folder, ignore_errors=True)
    for name in ("results.json", "compact.json", "table.md", "report.html"):
        (out / name).unlink(missing_ok=True)


def fingerprint(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
