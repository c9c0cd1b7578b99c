"""The policy over the memory bank: what it sees is what the bank keeps, in training and when it acts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from actor.memory_head.config import HEADS, HeadConfig, HeadTraining
from actor.memory_head.head import Head, HeadPlayer, load_head
from actor.memory_head.lessons import ANY, Lesson, draw_batch
from actor.memory_head.nets import Decision
from actor.memory_head.replay import everything, kept
from actor.memory_head.rows import RowLayout
from actor.memory_head.train import head_loss, needed, train_head
from memory_bank import MemoryConfig
from predimem.core.types import Observation
from predimem.core.weight_files import WeightsError

CUE_STEPS, LENGTH = 2, 12


def lesson(cue: int, length: int = LENGTH) -> Lesson:
    """A cue of -1 or 1 in the first two steps; at the last step it is asked for."""
    states = [[cue * (step < CUE_STEPS), step == length - 1] for step in range(length)]
    observations = tuple(Observation(n, {}, np.array(state, np.float32)) for n, state in enumerate(states))
    labels = np.full(length, ANY)
    labels[-1] = int(cue > 0)
    return Lesson(observations, labels)


LESSONS = {"short": [lesson(-1), lesson(1)], "long": [lesson(-1, 40), lesson(1, 40)]}


def answers(head: Head) -> list[bool]:
    """Whether the last action is right, in every lesson."""
    right, player = [], HeadPlayer(head)
    for given in (lesson for of_task in LESSONS.values() for lesson in of_task):
        player.begin(0)
        for observation in given.observations:
            scores = player.act({0: observation})[0]
        right.append(bool(scores.argmax() == given.labels[-1]))
    return right


def trained(name: str, steps: int) -> Head:
    return train_head(LESSONS, 2, HEADS[name], HeadTraining(steps=steps, batch=8, decisions=4))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bank", "bank-novelty", "gru"])
def test_heads_with_a_memory_learn_to_recall(name: str) -> None:
    assert answers(trained(name, 200)) == [True] * 4


@pytest.mark.parametrize("name", ["no-keyframes", "frame-stack"])
def test_heads_without_one_guess_where_the_cue_has_left_the_window(name: str) -> None:
    right = answers(trained(name, 60))
    assert right[2:].count(True) == 1
    assert name == "no-keyframes" or right[:2] == [True, True], "12 steps are within 16 frames"


def test_the_nominator_keeps_a_frame_of_the_cue_alone() -> None:
    head, player = trained("bank", 200), None
    kept_steps: set[int] = set()
    for given in LESSONS["long"]:
        player = HeadPlayer(head)
        player.begin(0)
        for observation in given.observations:
            player.act({0: observation})
        kept_steps |= set(player.keyframe_steps(0))
    assert kept_steps and kept_steps <= set(range(CUE_STEPS + 1))


def test_training_sees_what_the_memory_shows_when_it_acts() -> None:
    """The keyframes of a replay and those of a player are the same, whatever the network says."""
    head = Head(HEADS["bank-novelty"], LESSONS["long"][0].layout, 2, {})
    batch = draw_batch(LESSONS, HeadTraining(batch=4, decisions=2), 0.9, np.random.default_rng(1))
    shown = kept(batch, head, None)
    for n, given in enumerate(batch.lessons):
        player = HeadPlayer(head)
        player.begin(0)
        for observation in given.observations:
            player.act({0: observation})
        seen = shown.keyframes[n][shown.there[n, 0]]
        old = [step for step in player.keyframe_steps(0) if step <= batch.steps[n, 0] - 5]
        assert seen.tolist() == old


def test_windows_reach_back_to_the_beginning_and_no_further() -> None:
    batch = draw_batch({"s": LESSONS["short"]}, HeadTraining(batch=2, decisions=1), 0.0, np.random.default_rng(0))
    shown = everything(batch, HEADS["bank"])
    assert shown.windows[0, 0].tolist() == [11, 10, 9, 8, 7]
    assert np.flatnonzero(shown.there[0, 0]).tolist() == list(range(7)) and shown.ages[0, 0, 0] == 11


def test_a_frame_is_needed_if_it_makes_a_decision_more_right() -> None:
    logits = torch.tensor([[[4.0, 0.0], [4.0, 0.0]]])
    blind = torch.tensor([[[0.0, 0.0], [4.0, 0.0]]])  # the second decision is as good without memory
    attention = torch.tensor([[[0.9, 0.05, 0.0], [0.0, 0.0, 1.0]]])
    decision = Decision(logits, blind, attention)
    assert needed(decision, torch.zeros(1, 2, dtype=torch.int64)).tolist() == [[True, False, False]]
    assert needed(decision, torch.ones(1, 2, dtype=torch.int64)).tolist() == [[False, False, False]]


def test_all_kinds_get_the_same_batches_and_decisions() -> None:
    training = HeadTraining(batch=4, decisions=4)
    first, second = (draw_batch(LESSONS, training, 0.6, np.random.default_rng((3, 7))) for _ in range(2))
    assert np.array_equal(first.rows, second.rows) and np.array_equal(first.steps, second.steps)
    for config in HEADS.values():
        loss = head_loss(Head(config, LESSONS["short"][0].layout, 2, {}), first, 0.9, training)
        assert torch.isfinite(loss)


def test_right_actions_are_drawn_evenly() -> None:
    labels = np.zeros(100, np.int64)
    labels[-1] = 1
    observations = tuple(Observation(n, {}, np.zeros(1, np.float32)) for n in range(100))
    batch = draw_batch({"t": [Lesson(observations, labels)]}, HeadTraining(decisions=8), 0, np.random.default_rng(0))
    assert (batch.labels == 1).sum(1).mean() > 0.9, "the one rare action is in nearly every draw"


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    layout = RowLayout("view", (5, 5, 3), 2)
    head = Head(HEADS[name], layout, 3, {"tasks": ["t"]})
    head.save(tmp_path / "h")
    loaded = load_head(tmp_path / "h")
    assert (loaded.config, loaded.layout, loaded.actions, loaded.trained) == (head.config, layout, 3, head.trained)
    image = np.random.default_rng(0).integers(256, size=(5, 5, 3), dtype=np.uint8)
    observation = Observation(0, {"view": image}, np.ones(2, np.float32))
    players = [HeadPlayer(head), HeadPlayer(loaded)]
    for player in players:
        player.begin(0)
    first, second = (player.act({0: observation})[0] for player in players)
    assert np.array_equal(first, second) and first.shape == (3,)


def test_a_folder_without_a_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="holds no head that can be read"):
        load_head(tmp_path)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: HeadConfig("gru", nomination="learned"), "a head of kind 'gru' has no keyframes"),
        (lambda: HeadConfig("memory", MemoryConfig(keyframes=False), "novelty"), "expected `learned` or `novelty`"),
        (lambda: HeadTraining(learned_from=0.8), "expected 0 <= learned_from < bank_from <= 1, got 0.8 and 0.7"),
    ],
)
def test_settings_that_do_not_fit_are_refused(made, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()


def test_a_state_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="step 3: expected a state of 2 numbers, got 4"):
        RowLayout(None, (), 2).of_frame(Observation(3, {}, np.zeros(4, np.float32)))
