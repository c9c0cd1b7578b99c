"""Sorts the failures of an evaluation for the report: by agent and cause, then by task and stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.evaluation.analysis.failures import CAUSES
from predimem.evaluation.report.clips import clip_of, read_clip

MEANINGS = {
    "wrong subtask": "S2 named another subtask than the one that was due",
    "missed keyframe": "S2 did so, and memory held no keyframe of an earlier stage that the decision draws on",
    "late switch": "S2 stayed at the stage before, which had been passed",
    "early switch": "S2 went on before the stage was passed, where the image shows that it was not",
    "ambiguous label": "S2 named something that could mean several subtasks of this task, so S1 refused it",
    "wrong place": "S2 named the right subtask, but it was done elsewhere; the label does not say where",
    "motor failure": "S2 named the right subtask for its whole budget, or when something broke that cannot be mended",
    "timeout": "S2 named the right subtask, but earlier stages had left too little time",
    "undone": "all stages were passed, and one did not last",
    "no subtask named": "the agent gives no subtask labels, so memory and motor skill cannot be told apart",
}


def browse(results: Mapping[str, Any], out: str | Path) -> list[dict[str, Any]]:
    """The agents with explained failures, each with its causes in the order of `CAUSES`, and these with their stages.

    A stage has its task, number and label, how many episodes failed there and their seeds, and `clips`: the video, the
    memory and the failure of those episodes that were filmed. The list is empty where no failure is explained.
    """
    assert set(MEANINGS) == set(CAUSES)
    agents = []
    for agent in results["config"]["agents"]:
        records = [record for record in results["episodes"] if record["agent"] == agent and record.get("failure")]
        causes = [_cause(cause, [r for r in records if r["failure"]["cause"] == cause], Path(out)) for cause in CAUSES]
        if records:
            agents.append({"agent": agent, "n": len(records), "causes": [cause for cause in causes if cause["n"]]})
    return agents


def _cause(cause: str, records: Sequence[Mapping[str, Any]], out: Path) -> dict[str, Any]:
    places: dict[tuple[str, int, str], list[Mapping[str, Any]]] = {}
    for record in records:
        places.setdefault((record["task"], record["failure"]["stage"], record["failure"]["label"]), []).append(record)
    stages = [
        {"task": task, "stage": stage + 1, "label": label, "n": len(found), "seeds": [r["seed"] for r in found]}
        | {"clips": [clip for record in found if (clip := _clip(record, out))]}
        for (task, stage, label), found in sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return {"cause": cause, "meaning": MEANINGS[cause], "n": len(records), "stages": stages}


def _clip(record: Mapping[str, Any], out: Path) -> dict[str, Any] | None:
    """The video and the images in memory beside what the record says; keyframes without an image have None."""
    found = read_clip(clip_of(record), out)
    if found is None:
        return None
    failure = record["failure"]
    memory = [(step, found["memory"].get(str(step))) for step in failure["memory"]]
    return {"seed": record["seed"], "video": found["clip"], "same": found["same"], "failure": failure, "memory": memory}
