"""The journal of an evaluation: one line per finished episode, so that an interrupted run goes on.

`episodes.jsonl`: the first line names what the results depend on (suite, weights, config); every
later one is an episode's row, the start of a run that added to the file, or what one agent's episodes depend on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from predimem.core.config import differences
from predimem.core.jsonl import FileInUse, JsonLines
from predimem.evaluation.run.jobs import EvaluationError, Row

SCHEMA = 1


class Journal:
    """Open `out`/episodes.jsonl for the given `identity`, read what is there and lock it.

    identity: plain JSON data that two runs must share for their episodes to be put together.
    overwrite: begin anew; the earlier episodes, traces and videos are removed. agents: agent -> JSON data that
    its episodes alone depend on: other agents may come and go between two runs.
    """

    def __init__(
        self,
        out: Path,
        identity: dict[str, Any],
        overwrite: bool = False,
        agents: dict[str, dict[str, Any]] | None = None,
    ):
        try:
            self._file = JsonLines(out / "episodes.jsonl")
        except FileInUse as error:
            raise EvaluationError(
                f"another evaluation is writing to {out}: wait for it or use another --out"
            ) from error
        self.rows: dict[tuple[str, str, int], Row] = {}
        self.runs: list[dict[str, Any]] = []
        self._agents: dict[str, dict[str, Any]] = {}
        try:
            if overwrite:
                self._clear(out)
            self._read(out, identity)
            self._join(out, agents or {})
        except BaseException:
            self._file.close()
            raise

    def begin(self, run: dict[str, Any]) -> None:
        """Note that a run (its start, revision and machine) adds episodes from here on."""
        self.runs.append(run)
        self._file.append({"run": run})

    def add(self, row: Row) -> None:
        self.rows[row["task"], row["agent"], row["seed"]] = row
        self._file.append({"episode": row})

    def close(self) -> None:
        self._file.close()

    def _clear(self, out: Path) -> None:
        self._file.clear()
        for folder in ("traces", "videos", "failures"):
            shutil.rmtree(out / folder, ignore_errors=True)
        for name in ("results.json", "compact.json", "table.md", "report.html"):
            (out / name).unlink(missing_ok=True)

    def _join(self, out: Path, agents: dict[str, dict[str, Any]]) -> None:
        for name, identity in agents.items():
            if name not in self._agents:
                self._agents[name] = identity
                self._file.append({"agent": name, "identity": identity})
            elif self._agents[name] != identity:
                raise _played_with_something_else(out, ", ".join(differences(self._agents[name], identity, name)))

    def _read(self, out: Path, identity: dict[str, Any]) -> None:
        try:
            lines = self._file.read()
        except ValueError as error:
            raise EvaluationError(f"{error}: use another --out or --overwrite") from error
        if not lines:
            self._file.append({"schema": SCHEMA, "fingerprint": fingerprint(identity), "identity": identity})
            return
        head, *lines = lines
        if head.get("schema") != SCHEMA or head.get("fingerprint") != fingerprint(identity):
            changed = ", ".join(differences(head.get("identity", {}), identity)) or "the journal's format"
            raise _played_with_something_else(out, changed)
        for line in lines:
            if "run" in line:
                self.runs.append(line["run"])
            elif "agent" in line:
                self._agents[line["agent"]] = line["identity"]
            else:
                row = line["episode"]
                self.rows[row["task"], row["agent"], row["seed"]] = row


def _played_with_something_else(out: Path, changed: str) -> EvaluationError:
    return EvaluationError(
        f"{out} holds episodes that were played with something else: {changed}. "
        "Use another --out, or --overwrite to play them again"
    )


def fingerprint(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
