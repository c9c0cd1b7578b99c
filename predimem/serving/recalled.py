"""What a memory of earlier sessions looked up for an episode, and why, for people."""

from __future__ import annotations

from typing import Any

from memory_bank.retrieval import Admission

MOST = 8  # sessions that are told
AUTHOR = "retrieval"  # of the notes in the store


def plain(admission: Admission) -> dict[str, Any]:
    """why: in words. matches: the sessions that were compared, the best one first, each with its `similarity`, made of
    those of the view and the instruction (`memory_bank.retrieval.gate`), and whether the planner sees it."""
    return {
        "why": admission.why,
        "matches": [
            {
                "episode_id": match.session.episode_id or None,
                "name": match.session.name,
                "instruction": match.session.instruction,
                "age_s": round(match.session.age_s, 1),
                "keyframes": len(match.session.frames),
                "similarity": round(match.similarity, 3),
                "view": round(match.view, 3),
                "text": round(match.text, 3),
                "admitted": match is admission.admitted,
            }
            for match in admission.matches[:MOST]
        ],
    }


def in_words(admission: Admission) -> str:
    """As it is noted in the store."""
    found = admission.admitted
    if found is None:
        return f"no earlier session is shown: {admission.why}"
    return f"shown: {found.session.name}, {found.session.age_s:.0f} s before; {admission.why}"
