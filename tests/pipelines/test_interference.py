"""The training for the interference benchmark, on sessions that are drawn in place of being played."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from memory_bank.retrieval import Gate
from memory_bank.retrieval.calibration import count
from planner.recall.model import batch_of, load_model
from planner.recall.train import RecallTraining
from predimem.core.types import Frame
from predimem.envs.interference.families import FAMILIES, Family
from predimem.envs.interference.recordings import Recorded
from predimem.envs.interference.sessions import SessionPool
from predimem.pipelines.interference import (
    ANSWERS,
    VIEWS_GATE,
    EmbeddedPool,
    InterferenceTraining,
    cases_of,
    example,
    train_interference,
)


class DrawnPool(SessionPool):
    """Its first frame has the colour of the family; a lesson has a second one, whose blue is the value."""

    def _record(self, family: Family, value: int, number: int, what: str) -> Recorded:
        rng = np.random.default_rng([zlib.crc32(family.name.encode()), number, value, what == "view"])
        base = np.random.default_rng(zlib.crc32(family.name.encode())).integers(0, 200, 3)

        def frame(step: int, blue: int) -> Frame:
            colour = np.clip([*(base + rng.integers(-4, 5, 3)), blue + rng.integers(-4, 5)], 0, 255)
            image = np.broadcast_to(colour.astype(np.uint8), (2, 2, 4)).copy()
            return Frame(step, step / 20, {"camera": image})

        task = (family.lessons if what == "lesson" else family.tests)[0]
        frames = [frame(0, 0)] + [frame(40, 60 + 80 * value)] * (what == "lesson")
        return Recorded(task.variants[0].instruction, tuple(frames))


def embed(frames: Sequence[Frame]) -> np.ndarray:
    return np.stack([f.images["camera"].mean((0, 1)) / 255 for f in frames]).astype(np.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interference")
    pool = EmbeddedPool(DrawnPool(folder / "sessions", split="training"), 3, embed)
    recall = RecallTraining(steps=150, batch=32, rate=3e-3, noise=0.05)
    config = InterferenceTraining(out=str(folder / "reader"), pool=3, gate_cases=91, recall=recall)
    return train_interference(config, lambda line: None, pool)


@pytest.mark.slow
def test_gate_and_planner_hold_on_sessions_of_other_seeds(trained: Path, tmp_path: Path) -> None:
    pool = EmbeddedPool(DrawnPool(tmp_path, split="evaluation"), 2, embed)
    gate, model = Gate.read(str(trained / "gate.json")), load_model(trained)
    asked_of_gates = cases_of(pool, ("k3", "k7-absent"), 900_000, 42)
    assert count(asked_of_gates, gate)["right"] >= 40
    by_views = Gate.read(str(trained / VIEWS_GATE))
    assert by_views.text_weight == 0.0 and count(asked_of_gates, by_views)["right"] >= 40
    asked = [pool.case(family, "k3", 900_000 + i) for i in range(6) for family in FAMILIES.values()]
    families = [family for _ in range(6) for family in FAMILIES.values()]
    truth = [ANSWERS.index(family.answers[value]) for family, (_, value) in zip(families, asked, strict=True)]
    right = {}
    for select in ("oracle-retrieval", "none"):
        with torch.inference_mode():
            chosen = model(*batch_of([example(case, select, 16) for case, _ in asked])).argmax(-1).tolist()
        right[select] = np.mean(np.equal(chosen, truth))
    assert right["oracle-retrieval"] > 0.9
    assert right["none"] < 0.7  # chance is 0.42


def test_histories_are_those_that_the_benchmark_draws(tmp_path: Path) -> None:
    pool = EmbeddedPool(DrawnPool(tmp_path, split="evaluation"), 2, embed)
    case, value = pool.case(FAMILIES["drawer"], "k3", 900_005)
    assert [s.relevant for s in case.history.sessions] == [True, False, False, False]
    lesson = case.history.sessions[0]
    assert lesson.embeddings is not None and len(lesson.embeddings) == len(lesson.frames) == 2
    assert round(255 * float(lesson.embeddings[1, 3])) in range(56 + 80 * value, 65 + 80 * value)
    assert len(case.view) == 4 and case.instruction == FAMILIES["drawer"].instruction
