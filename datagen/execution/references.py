"""Which place a reference means (`datagen.decompose.references`), as far as it has been seen."""

from __future__ import annotations

from datagen.decompose.references import REFERENCES
from datagen.perception.scene import PerceivedScene
from predimem.envs.arena.fixtures import DRAWERS

_CANDIDATES = {reference.name: reference.candidates for reference in REFERENCES}


class UnresolvedError(RuntimeError):
    """What was seen does not say which place is meant."""


def resolved(target: str, scene: PerceivedScene, at_start: dict[str, frozenset[str]]) -> str:
    """A step's target, with a reference replaced by the place that it means.

    at_start: place -> the objects that were seen in it when the episode began. Raises UnresolvedError.
    """
    if target not in _CANDIDATES:
        return target
    candidates = [place for place in _CANDIDATES[target] if place in scene.places]
    if target in ("occupied_drawer", "empty_drawer"):
        filled = target == "occupied_drawer"
        answers = [d for d in DRAWERS if d in scene.contents and bool(scene.contents[d]) == filled]
    elif target in ("marked_basket", "marked_half"):
        answers = [place for place in candidates if place in scene.marked]
    else:
        used = [place for place in candidates if at_start.get(place)]
        answers = [place for place in candidates if place not in used] if used else []
    if len(answers) != 1:
        raise UnresolvedError(f"{target}: {' or '.join(answers) or 'none was seen'}")
    return answers[0]
