"""Makes what the interference benchmark's learned rows need: the recall planner and the gate's numbers.

A second gate, `gate-views.json`, goes by views alone, as they are compared after a learned projection.

The recall planner and both gates are made from sessions of training seeds. The frozen tower embeds each frame once;
examples are then drawn by the benchmark's own `draw`, so that the planner learns under all memories which are compared,
with one set of weights.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from memory_bank.retrieval.calibration import Case, choose_gate
from memory_bank.retrieval.gate import FILE_NAME, Gate
from memory_bank.retrieval.memory import without_looking
from planner.recall.examples import Shown, Tokens, tokens_of
from planner.recall.model import RecallConfig
from planner.recall.projection import Question, train_projection
from planner.recall.train import RecallTraining, train_recall
from predimem.core.config import to_dict
from predimem.core.progress import Bar
from predimem.core.types import Frame, History
from predimem.envs.interference.conditions import condition_of, draw
from predimem.envs.interference.families import FAMILIES, Family
from predimem.envs.interference.recordings import Recorded, past_session
from predimem.envs.interference.sessions import FIRST_SEEDS, SessionPool, Split

VIEWS_GATE = "gate-views.json"
ANSWERS = tuple(answer for family in FAMILIES.values() for answer in family.answers)
SEEN_IN_TRAINING = ("no-history", "k0", "k1", "k3", "k7", "k1-older", "k3-older", "k1-newer", "k3-newer", "k7-absent")
GATE_CONDITIONS = (*SEEN_IN_TRAINING[1:], "k3-others", "k3-absent", "k7-absent")
SHOWN_BY = ("none", "oracle-retrieval", "oracle-retrieval", "uncapped", "framesamp", "last-n")


@dataclass(frozen=True)
class InterferenceTraining:
    """sessions: the folder of recorded sessions. pool: how many of each value are trained on. frames: the budget of
    `framesamp` and `last-n`. gate_cases: how many histories the gate's numbers are chosen on."""

    sessions: str = "runs/interference/sessions"
    out: str = "runs/interference/reader"
    pool: int = 10
    image_px: int = 128
    frames: int = 16
    gate_cases: int = 280
    recall: RecallTraining = field(default_factory=RecallTraining)


class EmbeddedPool:
    """Recorded sessions with their embeddings, each worked out once."""

    def __init__(self, pool: SessionPool, size: int, embed: Callable[[Sequence[Frame]], np.ndarray]):
        self._pool, self.size, self._embed = pool, size, embed
        self._known: dict[tuple[str, int, int, str], np.ndarray] = {}

    def history(self, family: Family, condition: str, seed: int) -> tuple[History, int]:
        """The history of an episode, as the benchmark draws it, and the value that counts."""
        drawn = draw(family, condition_of(condition), seed, self.size)
        sessions = []
        for index, planned in enumerate(drawn.sessions):
            of = FAMILIES[planned.family]
            recorded = self._pool.lesson(of, planned.value, planned.number)
            embeddings = self._embedded(recorded, of, planned.value, planned.number, "lesson")
            sessions.append(replace(past_session(index, planned, recorded), embeddings=embeddings))
        return History(tuple(sessions), drawn.robot, drawn.person), drawn.value

    def view(self, family: Family, value: int, number: int) -> np.ndarray:
        """float32 [D]: the first view of a test."""
        return self._embedded(self._pool.view(family, value, number), family, value, number, "view")[0]

    def case(self, family: Family, condition: str, seed: int) -> tuple[Case, int]:
        history, value = self.history(family, condition, seed)
        # The first view of a test does not show the value. With few recorded ones a planner would learn them by heart,
        # so that the view is one of any value.
        rng = np.random.default_rng([seed, 17])
        view = self.view(family, int(rng.integers(family.values)), int(rng.integers(self.size)))
        return Case(history, view, family.instruction), value

    def question(self, family: Family, rng: np.random.Generator) -> Question:
        """Some first view of its test, and the frames of some lesson."""
        view = self.view(family, int(rng.integers(family.values)), int(rng.integers(self.size)))
        value, number = int(rng.integers(family.values)), int(rng.integers(self.size))
        lesson = self._pool.lesson(family, value, number)
        return view, self._embedded(lesson, family, value, number, "lesson")

    def all_frames(self) -> np.ndarray:
        """float32 [F, D] of all sessions and views."""
        wanted = [(f, value, n) for f in FAMILIES.values() for value in range(f.values) for n in range(self.size)]
        with Bar(len(wanted), "sessions", "reading or recording") as bar:
            for family, value, number in wanted:
                lesson = self._pool.lesson(family, value, number)
                self._embedded(lesson, family, value, number, "lesson")
                self.view(family, value, number)
                bar.add(1)
        return np.concatenate(list(self._known.values()))

    def _embedded(self, recorded: Recorded, family: Family, value: int, number: int, what: str) -> np.ndarray:
        key = (family.name, value, number, what)
        if key not in self._known:
            self._known[key] = self._embed(recorded.frames)
        return self._known[key]


def example(case: Case, select: str, frames: int) -> Tokens:
    """What the planner reads where the memory selects so; not for `retrieval`."""
    sessions = without_looking(case.history.sessions, select, frames)
    shown = [Shown(session.instruction, session.embeddings) for session in sessions if session.embeddings is not None]
    return tokens_of(shown, case.view, case.instruction)


def cases_of(pool: EmbeddedPool, conditions: Sequence[str], first_seed: int, count: int) -> list[Case]:
    """Histories of all families in turn, one seed each, over the conditions in turn."""
    families = list(FAMILIES.values())
    return [
        pool.case(families[i % len(families)], conditions[(i // len(families)) % len(conditions)], first_seed + i)[0]
        for i in range(count)
    ]


def views_gate(
    pool: EmbeddedPool, frames: np.ndarray, cases: Sequence[Case], families: Sequence[Family]
) -> tuple[Gate, float]:
    """The gate that goes by views alone, whose projection is learned from some families, and how often it is right.

    frames: float [N, D] of the pool. cases: what its numbers are chosen on.
    """
    groups = [functools.partial(pool.question, family) for family in families]
    return choose_gate(cases, frames.mean(0), (0.0,), train_projection(groups, frames))


def embedded_pool(sessions: str, image_px: int, size: int, split: Split) -> EmbeddedPool:
    from planner.tower_embedding import tower

    return EmbeddedPool(SessionPool(sessions, image_px, split), size, tower())


def train_interference(
    config: InterferenceTraining, told: Callable[[str], object] = print, pool: EmbeddedPool | None = None
) -> Path:
    """Write recall planner and gate into the folder `config.out`, and return it. pool: None: what `config` says."""
    pool = pool or embedded_pool(config.sessions, config.image_px, config.pool, "training")
    frames = pool.all_frames()
    told(f"{len(frames)} frames of {sum(f.values for f in FAMILIES.values())} values, {frames.shape[1]} numbers each")
    families, first = list(FAMILIES.values()), FIRST_SEEDS["training"]

    def drawn(rng: np.random.Generator) -> tuple[Tokens, int]:
        family = families[int(rng.integers(len(families)))]
        condition = SEEN_IN_TRAINING[int(rng.integers(len(SEEN_IN_TRAINING)))]
        case, value = pool.case(family, condition, first + int(rng.integers(10_000)))
        select = SHOWN_BY[int(rng.integers(len(SHOWN_BY)))]
        return example(case, select, config.frames), ANSWERS.index(family.answers[value])

    model = train_recall(
        RecallConfig(frames.shape[1], ANSWERS),
        config.recall,
        frames.mean(0),
        frames.std(0),
        drawn,
        lambda step, loss: told(f"step {step}: loss {loss:.3f}"),
    )
    out = Path(config.out)
    model.save(out)
    cases = cases_of(pool, GATE_CONDITIONS, first + 9_000, config.gate_cases)
    gate, right = choose_gate(cases, frames.mean(0))
    told(f"gate: text_weight {gate.text_weight}, threshold {gate.threshold}, margin {gate.margin}: right {right:.3f}")
    gate.save(out / FILE_NAME)
    gate, right = views_gate(pool, frames, cases, families)
    told(f"gate of views alone: threshold {gate.threshold}, margin {gate.margin}: right {right:.3f}")
    gate.save(out / VIEWS_GATE)
    (out / "training.json").write_text(json.dumps(to_dict(config), indent=1) + "\n")
    return out
