"""Which instructions a planner was trained on: a list beside its weights, so that whoever runs it can tell a task
that it has learned from one that it has not.

    python -m planner.instructions FOLDER < instructions.txt

writes the list of a planner that has none, from one instruction a line; `predimem train planner` writes it itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from planner.checkpoint import PlannerCheckpointError, PlannerSpec, read_spec
from predimem.core.files import write_json
from predimem.core.weight_files import INSTRUCTIONS_FILE


def write_instructions(folder: str | Path, instructions: Iterable[str]) -> None:
    """The list of `folder`, each instruction once, sorted."""
    write_json(Path(folder) / INSTRUCTIONS_FILE, sorted(set(instructions)), indent=1)


def trained_on(folder: str | Path, spec: PlannerSpec) -> tuple[tuple[str, ...], bool]:
    """(the instructions of its training, whether it was a pretrained language model before).

    A planner from before there were lists has those that its tokenizer was made for; none: nobody has noted them.
    Raises PlannerCheckpointError for a list that cannot be read.
    """
    base = spec.training.get("config", {}).get("base", {})
    pretrained = base.get("pretrained") is not None
    path = Path(folder) / INSTRUCTIONS_FILE
    if not path.is_file():
        return tuple((base.get("tokenizer") or {}).get("instructions", ())), pretrained
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise PlannerCheckpointError(f"{path} is not JSON ({error}): restore it, or delete it") from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise PlannerCheckpointError(f"{path}: expected a list of instructions")
    return tuple(found), pretrained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the planner's folder, with predimem.json in it")
    folder = parser.parse_args().folder
    read_spec(folder)
    write_instructions(folder, (line.strip() for line in sys.stdin if line.strip()))


if __name__ == "__main__":
    main()
