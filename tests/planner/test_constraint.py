"""Answers that are kept to the JSON asked for, by planners that would say something else."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from planner.decoding import load_planner
from predimem.core.types import Frame, MemorySnapshot
from predimem.core.weight_files import weights_folder

CAMERAS = {"planner": ("base_camera", "hand_camera"), "arena-planner-untrained": ("agentview_rgb", "eye_in_hand_rgb")}


def snapshot(name: str, seed: int, window: int = 2) -> MemorySnapshot:
    rng = np.random.default_rng(seed)
    frames = [
        Frame(
            step, step / 10, MappingProxyType({c: rng.integers(0, 256, (128, 128, 3), np.uint8) for c in CAMERAS[name]})
        )
        for step in range(window + 1)
    ]
    return MemorySnapshot(f"episode {seed}", window, "tidy up", tuple(frames[1:]), tuple(frames[:1]))


def passes(planner: Any) -> list[int]:
    """A list that gets the size of every further pass of the language model."""
    sizes: list[int] = []
    extend = planner._forward.extend

    def counted(blocks: Any) -> Any:
        sizes.extend(len(block.tokens) for block in blocks)
        return extend(blocks)

    planner._forward.extend = counted
    return sizes


def test_a_planner_without_training_answers_in_the_format() -> None:
    folder = weights_folder(None, "arena-planner-untrained")
    free, kept = load_planner(folder), load_planner(folder, constrained=True)
    known = kept.spec.known_subtasks
    assert known is not None
    for seed in range(4):
        asked = snapshot("arena-planner-untrained", seed)
        assert free.plan(asked).subtask is None
        plan = kept.plan(asked)
        assert plan.error is None and plan.subtask in known
        assert set(plan.keyframe_steps) <= {1, 2}
        assert plan.confidence is not None and plan.confidence < 0.5  # the model's own, not what the grammar left over


def test_what_has_to_come_costs_no_pass() -> None:
    """In `{"current_primitive":" touch the cyan cube ","keyframe_positions":[ ]}` the shipped planner's tokens for the
    skeleton are forced: they are read together with the token before them, or with the prompt."""
    kept = load_planner(weights_folder(None, "planner"), constrained=True)
    sizes = passes(kept)
    for seed in range(3):
        asked = snapshot("planner", seed)
        sizes.clear()
        plan = kept.plan(asked)
        said = len(kept._last[asked.episode_id].tokens)
        assert plan.error is None
        assert len(sizes) <= said - 3  # without a grammar there would be as many as tokens


def test_the_first_answer_and_a_guess_are_the_same() -> None:
    kept = load_planner(weights_folder(None, "planner"), constrained=True)
    asked = [snapshot("planner", seed) for seed in (1, 2)]
    first = [kept.plan(one) for one in asked]
    assert kept.plan_batch(asked) == first


def test_a_schema_that_cannot_be_kept_to_is_refused() -> None:
    kept = load_planner(weights_folder(None, "planner"), constrained=True)
    assert kept._grammar is not None
    with pytest.raises(ValueError, match="cannot be kept to"):
        kept._grammar.matching({"type": "no such type"})
