"""The journal of an evaluation: one line per finished episode, so that an interrupted run goes on.

`episodes.jsonl`: the first line names what the results depend on (suite, weights, config); every
later one is an episode's row or the start of a run that added to the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from predimem.evaluation.jobs import EvaluationError, Row

SCHEMA = 1


class Journal:
    """Open `out`/episodes.jsonl for the given `identity`, read what is there and lock it.

    identity: plain JSON data that two runs must share for their episodes to be put together.
    overwrite: begin anew; the earlier episodes, traces and videos are removed.
    """

    def __init__(self, out: Path, identity: dict[str, Any], overwrite: bool = False):
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / "episodes.jsonl"
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
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
        self._append({"run": run})

    def add(self, row: Row) -> None:
        self.rows[row["task"], row["agent"], row["seed"]] = row
        self._append({"episode": row})

    def close(self) -> None:
        self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _clear(self, out: Path) -> None:
        self._file.truncate(0)
        for folder in ("traces", "videos"):
            shutil.rmtree(out / folder, ignore_errors=True)
        for name in ("results.json", "report.html"):
            (out / name).unlink(missing_ok=True)

    def _read(self, out: Path, identity: dict[str, Any]) -> None:
        self._file.seek(0)
        text = self._file.read()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # the machine stopped in the middle of a line
            self._file.truncate(len(whole.encode()))
        if not whole:
            self._append({"schema": SCHEMA, "fingerprint": fingerprint(identity), "identity": identity})
            return
        try:
            head, *lines = [json.loads(line) for line in whole.splitlines()]
        except json.JSONDecodeError as error:
            raise EvaluationError(
                f"{self._path} is damaged ({error}): use another --out or --overwrite"
            ) from error
        if head.get("schema") != SCHEMA or head.get("fingerprint") != fingerprint(identity):
            changed = ", ".join(_differences(head.get("identity", {}), identity)) or "the journal's format"
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


def _differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Where two pieces of JSON data differ, as "a.b (was 1, is 2)"."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*new, *(key for key in old if key not in new)]
        return [
            text
            for key in keys
            if old.get(key) != new.get(key)
            for text in _differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
        ]
    return [f"{where} (was {_short(old)}, is {_short(new)})"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "…"
