"""Chooses the gate's numbers on histories whose relevant session is known, and counts how it does on others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from memory_bank.retrieval.gate import Gate, Match, decide, rank
from predimem.core.types import History

Outcome = Literal["right", "wrong", "silent"]
TEXT_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
MARGINS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
THRESHOLDS = tuple(np.arange(-0.2, 1.0, 0.025).round(3).tolist())


@dataclass(frozen=True, eq=False)
class Case:
    """A question to the gate. A history without a relevant session wants silence."""

    history: History
    view: np.ndarray
    instruction: str

    @property
    def has_lesson(self) -> bool:
        return any(session.relevant for session in self.history.sessions)


def outcome(case: Case, matches: Sequence[Match], gate: Gate) -> Outcome:
    """`right`: the relevant session was admitted, or nothing where there is none."""
    admitted = decide(matches, gate).admitted
    if admitted is None:
        return "silent" if case.has_lesson else "right"
    return "right" if admitted.session.relevant else "wrong"


def count(cases: Iterable[Case], gate: Gate) -> Counter[Outcome]:
    """How many cases have which outcome with this gate."""
    return Counter(outcome(case, rank(case.history, case.view, case.instruction, gate), gate) for case in cases)


def choose_gate(
    cases: Sequence[Case],
    mean: np.ndarray | None = None,
    text_weights: Sequence[float] = TEXT_WEIGHTS,
    projection: np.ndarray | None = None,
) -> tuple[Gate, float]:
    """The gate that is right most often, where cases with and without a lesson weigh the same, and how often it is.

    Of gates that are equally right it is the middle one, which is the furthest from those that are worse. mean,
    projection: see `Gate`. Raises ValueError unless there are cases of both kinds.
    """
    kinds = [case.has_lesson for case in cases]
    if all(kinds) or not any(kinds):
        raise ValueError("expected cases with a lesson and cases without one")
    weights = np.where(kinds, 0.5 / sum(kinds), 0.5 / (len(kinds) - sum(kinds)))
    found: list[tuple[float, Gate]] = []
    for text_weight in text_weights:
        taken_away = () if mean is None else tuple(np.asarray(mean, float).round(5))
        base = Gate(text_weight=text_weight, mean=taken_away, projection=projection)
        ranked = [rank(case.history, case.view, case.instruction, base) for case in cases]
        for margin in MARGINS:
            for threshold in THRESHOLDS:
                gate = replace(base, margin=margin, threshold=threshold)
                right = [outcome(c, m, gate) == "right" for c, m in zip(cases, ranked, strict=True)]
                found.append((float(weights @ right), gate))
    best = max(score for score, _ in found)
    equal = [gate for score, gate in found if score > best - 1e-9]
    per_weight = Counter(gate.text_weight for gate in equal)
    widest = max(per_weight, key=lambda weight: per_weight[weight])
    equal = [gate for gate in equal if gate.text_weight == widest]
    middle = sorted({gate.margin for gate in equal})
    margin = middle[len(middle) // 2]
    equal = sorted((gate for gate in equal if gate.margin == margin), key=lambda gate: gate.threshold)
    return equal[len(equal) // 2], best
