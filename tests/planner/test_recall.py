"""The planner of earlier sessions: what it reads, that it learns, and that what it has learned is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from memory_bank.retrieval import Gate
from planner.recall.examples import SCALARS, WORD_CELLS, Shown, Tokens, tokens_of, word_cells
from planner.recall.model import CONFIG, WEIGHTS, RecallConfig, batch_of, load_model
from planner.recall.projection import train_projection
from planner.recall.train import RecallTraining, train_recall
from predimem.agent.own_planner import weights_of
from predimem.core.faults import SetupError

DIM, ANSWERS = 8, ("left", "right")


def drawn(rng: np.random.Generator) -> tuple[Tokens, int]:
    """The session with the instruction "spoon" shows the answer by the sign of its first number; the other misleads."""
    answer = int(rng.integers(2))
    lesson = rng.normal(0, 0.1, (2, DIM)).astype(np.float32)
    lesson[:, 0] = 1.0 if answer else -1.0
    sessions = [Shown("the spoon", lesson)]
    if rng.random() < 0.5:
        other = -lesson if rng.random() < 0.5 else lesson
        sessions.insert(int(rng.integers(2)), Shown("the mug", other))
    return tokens_of(sessions, np.zeros(DIM, np.float32), "where is the spoon"), answer


def test_tokens_say_which_session_is_the_newest_and_which_token_is_now() -> None:
    sessions = [Shown("old task", np.ones((3, DIM), np.float32)), Shown("new task", 2 * np.ones((1, DIM), np.float32))]
    tokens = tokens_of(sessions, np.zeros(DIM, np.float32), "now")
    assert tokens.embeddings[:, 0].tolist() == [2, 1, 1, 1, 0]
    older = ([np.log(2), before, 2 - before, 0] for before in range(3))
    assert tokens.scalars == pytest.approx(np.array([[0, 0, 0, 0], *older, [0, 0, 0, 1]]), abs=1e-6)
    assert np.array_equal(tokens.words[1], word_cells("old task")) and np.array_equal(
        tokens.words[4], word_cells("now")
    )
    assert tokens.words.shape == (5, WORD_CELLS) and tokens.scalars.shape == (5, SCALARS)
    assert tokens_of([], np.zeros(DIM, np.float32), "now").embeddings.shape == (1, DIM)


@pytest.fixture(scope="module")
def trained():
    told: list[float] = []
    training = RecallTraining(steps=150, batch=32, rate=3e-3, noise=0.1)
    config = RecallConfig(DIM, ANSWERS, width=32, layers=1)
    model = train_recall(config, training, np.zeros(DIM), np.ones(DIM), drawn, lambda step, loss: told.append(loss))
    return model, told


def right(model, count: int = 200) -> float:
    rng = np.random.default_rng(99)
    asked = [drawn(rng) for _ in range(count)]
    with torch.inference_mode():
        chosen = model(*batch_of([tokens for tokens, _ in asked])).argmax(-1)
    return float((chosen == torch.tensor([answer for _, answer in asked])).float().mean())


def test_it_learns_which_session_to_believe(trained) -> None:
    model, told = trained
    assert len(told) == 3 and told[-1] < 0.05 < told[0]
    assert right(model) > 0.95


def test_it_counts_the_frames_of_a_session() -> None:
    """Four sessions of each answer are seen again and again; only how many frames they have carries over to others."""

    def asked(numbers: range):
        def draw(rng: np.random.Generator) -> tuple[Tokens, int]:
            answer, number = int(rng.integers(2)), int(rng.choice(numbers))
            frames = np.random.default_rng([number, answer]).normal(0, 1, (4 + 2 * answer, DIM)).astype(np.float32)
            return tokens_of([Shown("the sauce", frames)], np.zeros(DIM, np.float32), "as often as last time"), answer

        return draw

    config = RecallConfig(DIM, ANSWERS, width=32, layers=1)
    training = RecallTraining(steps=200, batch=32, rate=3e-3)
    model = train_recall(config, training, np.zeros(DIM), np.ones(DIM), asked(range(4)))
    rng = np.random.default_rng(1)
    others = [asked(range(100, 200))(rng) for _ in range(100)]
    with torch.inference_mode():
        chosen = model(*batch_of([tokens for tokens, _ in others])).argmax(-1).tolist()
    assert np.mean([mine == answer for mine, (_, answer) in zip(chosen, others, strict=True)]) > 0.85


def test_an_answer_does_not_depend_on_what_shares_its_batch(trained) -> None:
    model, _ = trained
    rng = np.random.default_rng(5)
    short, long = tokens_of([], np.zeros(DIM, np.float32), "spoon"), drawn(rng)[0]
    with torch.inference_mode():
        together, alone = model(*batch_of([short, long])), model(*batch_of([short]))
    assert torch.allclose(together[0], alone[0], atol=1e-5)


def test_results_name_the_weights_that_it_reads() -> None:
    folders = weights_of("planner.recall.answering:RecallPlanner", {})
    assert [folder.name for folder in folders] == ["interference-reader", "arena-planner"]
    assert weights_of("predimem.agent.baselines:InstructionPlanner", {}) == ()


def test_it_is_kept_in_half_precision_and_read_again(trained, tmp_path: Path) -> None:
    model, _ = trained
    model.save(tmp_path)
    again = load_model(tmp_path)
    assert again.config == model.config and right(again) > 0.95
    whole = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SetupError, match=r"cannot be loaded .*predimem train interference"):
        load_model(tmp_path)
    (tmp_path / CONFIG).write_text('{"embedding": 8}')
    with pytest.raises(SetupError, match="predimem train interference"):
        load_model(tmp_path)


def test_a_projection_learns_which_views_belong_together():
    """Groups differ in three numbers, which the other three drown."""

    def drawer(group: int):
        def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            def seen(count: int) -> np.ndarray:
                vectors = rng.normal(0, 3, (count, 6)).astype(np.float32)
                vectors[:, :3] = np.eye(3)[group]
                return vectors

            return seen(1)[0], seen(3)

        return draw

    groups, rng = [drawer(group) for group in (0, 1, 2)], np.random.default_rng(5)
    frames = np.concatenate([draw(rng)[1] for draw in groups * 30])
    projection = train_projection(groups, frames, dimensions=3)
    assert projection.shape == (6, 3) and projection.dtype == np.float32

    def likeness(gate: Gate, own: int, group: int) -> float:
        view, session = groups[own](rng)[0], groups[group](rng)[1]
        return float((gate.compared(session) @ gate.compared(view)).max())

    def right(gate: Gate) -> float:
        chosen = [np.argmax([likeness(gate, own, group) for group in (0, 1, 2)]) for own in (0, 1, 2) * 40]
        return float(np.mean(np.equal(chosen, (0, 1, 2) * 40)))

    assert right(Gate()) < 0.6 and right(Gate(projection=projection)) > 0.9
    with pytest.raises(ValueError, match="expected two or more, got 1"):
        train_projection(groups[:1], frames)
