"""The failures of an evaluation as the report browses them: by agent and cause, then by task and stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.evaluation.analysis.failures import CAUSES
from predimem.evaluation.report.clips import clip_of, read_clip

MEANINGS = {
    "wrong subtask": "S2 named another subtask than the one that was due",
    "missed keyframe": "so it did, and of an earlier stage that the decision draws on, memory held no keyframe",
    "late switch": "S2 stayed at the stage before, which had been passed",
    "early switch": "S2 went on before the stage was passed, where the image shows that it was not",
    "wrong place": "the subtask was named right and done elsewhere; its name does not say where",
    "motor failure": "the right subtask was named for its whole budget, or when the irreparable happened",
    "timeout": "the right subtask was named, but earlier stages had left too little time",
    "undone": "all stages were passed, and one did not last",
    "no subtask named": "the agent names none: memory and motor skill cannot be told apart",
}


def browse(results: Mapping[str, Any], out: str | Path) -> list[dict[str, Any]]:
    """Agents with explained failures, each with its causes in the order of `CAUSES`, and of each cause the stages.

    Of a stage: its task, number and label, how many failed there and their seeds, and `clips`: those episodes of
    which there is one, with video, memory and failure. Empty where no failure is explained.
    """
    assert set(MEANINGS) == set(CAUSES)
    agents = []
    for agent in results["config"]["agents"]:
        rows = [row for row in results["episodes"] if row["agent"] == agent and row.get("failure")]
        causes = [_cause(cause, [r for r in rows if r["failure"]["cause"] == cause], Path(out)) for cause in CAUSES]
        if rows:
            agents.append({"agent": agent, "n": len(rows), "causes": [cause for cause in causes if cause["n"]]})
    return agents


def _cause(cause: str, rows: Sequence[Mapping[str, Any]], out: Path) -> dict[str, Any]:
    places: dict[tuple[str, int, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        places.setdefault((row["task"], row["failure"]["stage"], row["failure"]["label"]), []).append(row)
    stages = [
        {"task": task, "stage": stage + 1, "label": label, "n": len(found), "seeds": [row["seed"] for row in found]}
        | {"clips": [clip for row in found if (clip := _clip(row, out))]}
        for (task, stage, label), found in sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return {"cause": cause, "meaning": MEANINGS[cause], "n": len(rows), "stages": stages}


def _clip(row: Mapping[str, Any], out: Path) -> dict[str, Any] | None:
    """The video and the images of memory beside what the row says; keyframes without an image have None."""
    found = read_clip(clip_of(row), out)
    if found is None:
        return None
    failure = row["failure"]
    memory = [(step, found["memory"].get(str(step))) for step in failure["memory"]]
    return {"seed": row["seed"], "video": found["clip"], "same": found["same"], "failure": failure, "memory": memory}
