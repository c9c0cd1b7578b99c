"""The journal of an evaluation: one line per finished episode, so that an interrupted run goes on.

`episodes.jsonl`: the first line names what the results depend on (suite, weights, config); every
later one is an episode's row or the start of a run that added to the file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from predimem.config import differences
from predimem.evaluation.jobs import EvaluationError, Row
from predimem.jsonl import FileInUse, JsonLines

SCHEMA = 1


class Journal:
    """Open `out`/episodes.jsonl for the given `identity`, read what is there and lock it.

    identity: plain JSON data that two runs must share for their episodes to be put together.
    overwrite: begin anew; the earlier episodes, traces and videos are removed.
    """

    def __init__(self, out: Path, identity: dict[str, Any], overwrite: bool = False):
        try:
            self._file = JsonLines(out / "episodes.jsonl")
        except FileInUse as error:
            raise EvaluationError(
                f"another evaluation is writing to {out}: wait for it or use another --out"
            ) from error
        self.rows: dict[tuple[str, str, int], Row] = {}
        self.runs: list[dict[str, Any]] = []
        try:
            if overwrite:
                self._clear(out)
            self._read(out, identity)
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
        for folder in ("traces", "videos"):
            shutil.rmtree(out / folder, ignore_errors=True)
        for name in ("results.json", "report.html"):
            (out / name).unlink(missing_ok=True)

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
            raise EvaluationError(
                f"{out} holds episodes that were played with something else: {changed}. "
                "Use another --out, or --overwrite to play them again"
            )
        for line in lines:
            if "run" in line:
                self.runs.append(line["run"])
            else:
                row = line["episode"]
                self.rows[row["task"], row["agent"], row["seed"]] = row


def fingerprint(identity: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
