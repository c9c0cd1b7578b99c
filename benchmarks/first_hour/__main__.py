"""Runs the first hour of a new user: every command of `commands.yaml`, in order, in a fresh clone of this repository.

    python -m benchmarks.first_hour --out runs/first_hour

A step fails on a traceback, a wrong exit code, a text that is missing or a long silence, and where it changes a
finished run. The table of what happened is OUT/first_hour.md, the logs lie beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.first_hour.steps import Step, read_table
from benchmarks.first_hour.watch import Watched, watch

ROOT = Path(__file__).parents[2]
SETUP = Step(run="make setup", documented=("make setup",), silence_s=120, timeout_s=3600)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the commands of README and guides as a new user, and watch them.")
    parser.add_argument("--out", type=Path, default=Path("runs/first_hour"), help="the clone, logs and table")
    parser.add_argument("--clone", type=Path, help="an existing clone that is set up, in place of a fresh one")
    parser.add_argument("--only", default="", help="run the steps alone whose command contains this text")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    clone = arguments.clone.resolve() if arguments.clone else out / "predimem"
    if not arguments.clone:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    steps = [step for step in (SETUP, *read_table().steps) if arguments.only in step.run]
    rows = []
    for number, step in enumerate(steps):
        print(f"[{number + 1}/{len(steps)}] {step.run}", flush=True)
        watched, faults = run(step, clone, out / f"{number + 1:02d}.log")
        print(
            f"    {watched.seconds:.0f} s, silent for {watched.silence_s:.0f} s: {'; '.join(faults) or 'ok'}",
            flush=True,
        )
        rows.append((step, watched, faults))
    table = report(rows, clone)
    (out / "first_hour.md").write_text(table, encoding="utf-8")
    print(table)
    return 1 if any(faults for _, _, faults in rows) else 0


def run(step: Step, clone: Path, log: Path) -> tuple[Watched, list[str]]:
    """The step's outcome, and what is wrong with it."""
    before = fingerprint(clone / step.keeps) if step.keeps else None
    watched = watch(step.run, clone, log, step.timeout_s, step.until)
    faults = faults_of(step, watched)
    if step.keeps and before is None:
        faults.append(f"{step.keeps} was not there before")
    elif step.keeps and fingerprint(clone / step.keeps) != before:
        faults.append(f"{step.keeps} was changed")
    return watched, faults


def faults_of(step: Step, watched: Watched) -> list[str]:
    faults = []
    if "Traceback (most recent call last)" in watched.output:
        faults.append("traceback")
    if watched.code != step.code:
        faults.append(f"exit code {watched.code}, expected {step.code}")
    expected = (*step.says, *([step.until] if step.until else []))
    faults += [f"does not say {text!r}" for text in expected if text not in watched.output]
    if watched.silence_s > step.silence_s:
        faults.append(f"silent for {watched.silence_s:.0f} s, at most {step.silence_s:.0f} s are allowed")
    lines = [line for line in watched.output.splitlines() if line.strip()]
    if step.lines is not None and len(lines) > step.lines:
        faults.append(f"{len(lines)} lines, at most {step.lines} are allowed")
    return faults


def fingerprint(path: Path) -> str | None:
    """A hash of the episodes in a results file, which is written again with every run; None where there is none."""
    if not path.is_file():
        return None
    episodes = json.loads(path.read_text(encoding="utf-8"))["episodes"]
    return hashlib.sha256(json.dumps(episodes, sort_keys=True).encode()).hexdigest()


def report(rows: list[tuple[Step, Watched, list[str]]], clone: Path) -> str:
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=clone, capture_output=True, text=True)
    failed = sum(bool(faults) for _, _, faults in rows)
    lines = [
        f"Revision {revision.stdout.strip()}, {time.strftime('%Y-%m-%d')}: {len(rows)} commands, {failed} with faults.",
        "",
        "| command | seconds | longest silence, s | faults |",
        "| --- | ---: | ---: | --- |",
    ]
    for step, watched, faults in rows:
        command = step.run.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{command}` | {watched.seconds:.0f} | {watched.silence_s:.0f} | {'; '.join(faults)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
