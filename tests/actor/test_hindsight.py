"""Targets of demonstrations that name none."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from actor.dataset import FrameSet, SamplingConfig
from actor.hindsight import HindsightConfig
from actor.labels import labels_of
from actor.training.config import ActorTrainConfig
from predimem.core.episodes import Episode, SubtaskSpan

OPEN, CLOSED = 1.0, -1.0
SHIFTED = (1.0, 0.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0)  # u = x + 0.5, v = y + 0.5
HINDSIGHT = HindsightConfig(position=(2, 3, 4), gripper=1, cameras={"front": SHIFTED})
PICK, PRESS = "pick up the cube", "press the button"


def demonstration() -> Episode:
    """Closes at the cube (0.1, -0.2, 0.02), rises, opens on the way to a button, and presses it at (0.3, 0.4, 0.01)."""
    to_cube = [(0.1, -0.2, z, OPEN) for z in (0.3, 0.1)] + [(0.1, -0.2, 0.02, CLOSED)] * 2 + [(0.1, -0.2, 0.2, CLOSED)]
    to_button = [(0.3, 0.4, z, CLOSED) for z in (0.2, 0.1, 0.01)]
    rows = np.array(to_cube + to_button, np.float32)
    state = np.concatenate([np.zeros((len(rows), 2), np.float32), rows[:, :3]], axis=1)
    actions = np.stack([np.zeros(len(rows), np.float32), rows[:, 3]], axis=1)
    spans = (SubtaskSpan(0, 5, PICK), SubtaskSpan(5, 8, PRESS))
    images = {name: np.zeros((len(rows), 8, 8, 3), np.uint8) for name in ("front", "hand")}
    return Episode("test", "Press", 1000, "pick, then press", 20.0, True, images, state, actions, spans, (0,))


def test_the_target_is_where_the_gripper_closed_or_else_where_the_subtask_ended() -> None:
    labels = labels_of(demonstration(), 4, ("front", "hand"), HINDSIGHT, base_m=(-0.6, 0.0, 0.0))
    assert labels.subtasks == (PICK, PRESS)
    np.testing.assert_allclose(labels.targets_m[:5, 0], np.tile([0.7, -0.2, 0.02], (5, 1)), atol=1e-6)
    np.testing.assert_allclose(labels.targets_m[5:, 1], np.tile([0.9, 0.4, 0.01], (3, 1)), atol=1e-6)
    assert np.isnan(labels.targets_m[:5, 1]).all() and np.isnan(labels.targets_m[5:, 0]).all()


def test_a_camera_that_stands_still_shows_the_target_and_one_that_moves_does_not() -> None:
    labels = labels_of(demonstration(), 4, ("front", "hand"), HINDSIGHT)
    np.testing.assert_allclose(labels.pixels[:5, 0, 0], np.tile([0.6, 0.3], (5, 1)), atol=1e-6)
    assert np.isnan(labels.pixels[:, :, 1]).all()
    behind = HindsightConfig((2, 3, 4), 1, {"front": (*SHIFTED[:11], -1.0)})
    assert np.isnan(labels_of(demonstration(), 4, ("front",), behind).pixels).all()


def test_batches_have_these_targets_and_without_hindsight_none() -> None:
    sampling = SamplingConfig(16, 1, instruction_share=0.0, hold_share=0.0, idle_share=0.0, shift_px=0)
    with_targets = FrameSet([demonstration()], ("front", "hand"), 4, 8, hindsight=HINDSIGHT)
    batch = with_targets.batch(np.random.default_rng(0), sampling)
    heights = {prompt: set(batch.targets_m[np.array(batch.prompts) == prompt, 2]) for prompt in (PICK, PRESS)}
    assert heights == {PICK: {np.float32(0.02)}, PRESS: {np.float32(0.01)}}
    without = FrameSet([demonstration()], ("front", "hand"), 4, 8).batch(np.random.default_rng(0), sampling)
    assert np.isnan(without.targets_m).all() and np.isfinite(without.chunks).all()


def test_configs_that_cannot_be_right() -> None:
    with pytest.raises(ValueError, match="three entries of the state"):
        HindsightConfig(position=(0, 1))
    with pytest.raises(ValueError, match="front needs 12 numbers"):
        dataclasses.replace(HINDSIGHT, cameras={"front": SHIFTED[:9]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": (5, 6, 7)}, r"the state has the entries 0 to 6, got \[7\]"),
        ({"gripper": 7}, "an action has the entries 0 to 6, got 7"),
        ({"cameras": {"side": SHIFTED}}, "side is none of actor.cameras, base_camera, hand_camera"),
    ],
)
def test_a_training_refuses_what_its_episodes_do_not_have(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActorTrainConfig(hindsight=HindsightConfig(**changes))


def test_a_gripper_that_is_told_its_opening_in_metres_is_refused() -> None:
    """Its commands never change their sign, so each target would be where the subtask ended."""
    rows = demonstration().actions
    HINDSIGHT.check_commands([demonstration()])
    HINDSIGHT.check_commands([dataclasses.replace(demonstration(), actions=np.abs(rows))])  # it never moves
    metres = dataclasses.replace(demonstration(), actions=np.where(rows > 0, np.float32(0.08), np.float32(0.01)))
    with pytest.raises(ValueError, match=r"hindsight.gripper: entry 1 .* between 0.01 and 0.08.*: write -1 for closed"):
        HINDSIGHT.check_commands([metres])
    openings_m = np.broadcast_to(np.linspace(0, 0.08, len(rows), dtype=np.float32)[:, None], rows.shape)
    shut = dataclasses.replace(demonstration(), actions=openings_m)
    with pytest.raises(ValueError, match=r"between 0 and 0.08"):
        HINDSIGHT.check_commands([shut])
    HINDSIGHT.check_commands([dataclasses.replace(demonstration(), actions=(rows > 0).astype(np.float32))])  # 0 or 1
