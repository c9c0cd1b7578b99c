"""The planner's fast path against stock transformers: processor, positions, logits and `generate`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from planner.caches import MB, CacheConfig
from planner.checkpoint import PlannerCheckpointError, PlannerSpec
from planner.decoding import QwenPlanner, load_planner
from planner.export import export_planner
from planner.forward import Block
from planner.greedy import greedy_decode
from planner.image_features import Picture
from planner.inputs import lay_out
from planner.model import ObjectiveConfig
from planner.prompt import render_answer
from planner.replay import Replay
from planner.tiny.base import make_tiny_base
from predimem.core.types import MemorySnapshot
from predimem.core.weight_files import weights_folder
from tests.planner.builders import BASE, MEMORY, PROMPT
from tests.planner.speaker import say
from tests.planner.stock import stock_inputs

LONGEST = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("planner") / "base"
    make_tiny_base(base, BASE, PROMPT, ObjectiveConfig(window=2), vision=None, seed=0)
    export_planner(base, base.with_name("export"), PlannerSpec(PROMPT, MEMORY, max_new_tokens=LONGEST), torch.float32)
    return base.with_name("export")


@pytest.fixture
def planner(folder):
    return load_planner(folder)


@pytest.fixture(scope="module")
def snapshots(episodes):
    return [Replay(episodes[i], MEMORY, [0])[step] for i, step in ((0, 0), (0, 1), (0, 5), (0, 7), (1, 9), (2, 8))]


def stock_answer(planner: QwenPlanner, processor, snapshot: MemorySnapshot) -> list[int]:
    """transformers' `generate` on the processor's inputs."""
    inputs = stock_inputs(processor, PROMPT, snapshot)
    with torch.no_grad():
        output = planner._model.generate(
            **inputs, max_new_tokens=LONGEST, do_sample=False, eos_token_id=planner._end, pad_token_id=0
        )
    answer = output[0, inputs["input_ids"].shape[1] :].tolist()
    return answer[:-1] if answer[-1] == planner._end else answer


def decode(planner: QwenPlanner, snapshots, guesses=None):
    with torch.inference_mode():
        questions = [planner._question(replace(s, episode_id=f"{i}")) for i, s in enumerate(snapshots)]
        return greedy_decode(planner._reader, questions, planner._end, LONGEST, guesses)


def speak(planner: QwenPlanner, snapshot: MemorySnapshot, answer: str, **doubts: float) -> None:
    say(planner, int(planner._inputs(snapshot).tokens[-1]), answer, **doubts)


def test_inputs_are_those_of_the_processor(planner, processor, snapshots):
    for snapshot in snapshots:
        stock = stock_inputs(processor, PROMPT, snapshot)
        positions, delta = planner._model.model.get_rope_index(
            stock["input_ids"], stock["mm_token_type_ids"], stock["image_grid_thw"]
        )
        ours = planner._inputs(snapshot)
        assert np.array_equal(ours.tokens, stock["input_ids"][0].numpy())
        assert np.array_equal(ours.positions, positions[:, 0].numpy())
        assert ours.next_position == len(ours.tokens) + int(delta[0])
        assert np.array_equal(ours.is_image, stock["mm_token_type_ids"][0].numpy() == 1)


def test_an_image_that_is_not_square_counts_its_longer_side():
    wide = Picture(np.zeros((32, 96, 3), np.uint8), -5, rows=1, columns=3)
    laid = lay_out([7, 99, 8, 9], [wide], image_token=99)
    assert laid.tokens.tolist() == [7, 99, 99, 99, 8, 9]
    assert laid.positions.tolist() == [[0, 1, 1, 1, 4, 5], [0, 1, 1, 1, 4, 5], [0, 1, 2, 3, 4, 5]]
    assert laid.next_position == 6
    with pytest.raises(ValueError, match="1 image tokens for 2 images"):
        lay_out([7, 99, 8], [wide, wide], image_token=99)


def test_logits_are_those_of_stock_transformers(planner, processor, snapshots):
    """At the answer's first place and after more tokens, read in two ways: at once and one after the other."""
    more = [5, 9, 300]
    snapshot = snapshots[3]
    stock = stock_inputs(processor, PROMPT, snapshot)
    stock["input_ids"] = torch.cat((stock["input_ids"], torch.tensor([more])), 1)
    stock["attention_mask"] = torch.ones_like(stock["input_ids"])
    stock["mm_token_type_ids"] = torch.nn.functional.pad(stock["mm_token_type_ids"], (0, 3))
    with torch.inference_mode():
        expected = planner._model(**stock, logits_to_keep=4).logits
        (at_once,) = planner._reader.read([planner._question(snapshot)], [more])
        question = planner._question(snapshot)
        (first,) = planner._reader.read([question], [[]])
        (rest,) = planner._forward.extend([Block(more, question.inputs.next_position, question.prefix.known)])
    assert torch.allclose(at_once, expected[0], atol=1e-4)
    assert torch.allclose(torch.cat((first, rest)), expected[0], atol=1e-4)
    assert expected.std() > 0.1


def test_a_planner_in_other_number_formats(folder, planner, snapshots):
    for name in ("bfloat16", "float16"):
        rounded = load_planner(folder, dtype=name)
        assert {parameter.dtype for parameter in rounded._model.parameters()} == {getattr(torch, name)}
        for snapshot in snapshots[:2]:
            for one in (planner, rounded):
                one.plan(snapshot)
            with torch.inference_mode():
                exact, near = (one._reader.read([one._question(snapshot)], [[]])[0] for one in (planner, rounded))
            assert near.dtype == getattr(torch, name)
            assert (near.float() - exact).abs().max() < 0.1 * exact.abs().max()


def test_answers_are_those_of_generate(planner, processor, snapshots):
    for _ in range(2):  # the second time with features and guesses from before
        for snapshot in snapshots:
            planner.plan(snapshot)
            assert planner._last[snapshot.episode_id].tokens == stock_answer(planner, processor, snapshot)


def test_a_spoken_answer_is_that_of_generate(planner, processor, snapshots):
    speak(planner, snapshots[0], render_answer("touch the lime cube", [2]))
    for snapshot in snapshots[2:]:
        plan = planner.plan(snapshot)
        assert plan.subtask == "touch the lime cube" and plan.error is None
        assert plan.keyframe_steps == (snapshot.recent[1].step,)
        assert planner._last[snapshot.episode_id].tokens == stock_answer(planner, processor, snapshot)


@pytest.mark.parametrize("spoken", [True, False])
def test_no_guess_changes_an_answer(planner, snapshots, spoken):
    if spoken:
        speak(planner, snapshots[0], render_answer("wait", [1]))
    (right,) = decode(planner, snapshots[3:4])
    tokens, end = right.tokens, planner._end
    other = [*tokens[:1], 17, *tokens[2:]]
    guesses = ([], tokens, [*tokens, end, 3, 4], tokens[:2], other, [*other, *tokens], [end], [17] * 50, [0])
    for guess in guesses:
        (answer,) = decode(planner, snapshots[3:4], [guess])
        assert answer.tokens == tokens, guess
        assert answer.probabilities == pytest.approx(right.probabilities, abs=1e-4)


def test_a_right_guess_costs_one_pass_and_a_changed_subtask_two(planner, snapshots, monkeypatch):
    speak(planner, snapshots[0], render_answer("wait", [1]))
    (answer,) = decode(planner, snapshots[3:4])
    passes = []
    extend = planner._forward.extend
    monkeypatch.setattr(planner._forward, "extend", lambda *args: passes.append(1) or extend(*args))
    for guess, more in ((answer.tokens, 0), ([*answer.tokens[:1], 17, *answer.tokens[2:]], 1), ([], 5)):
        passes.clear()
        decode(planner, snapshots[3:4], [guess])
        assert len(passes) == more, guess


def test_decoding_stops_at_the_longest_answer(folder, episodes):
    planner = load_planner(folder)
    planner.spec = replace(planner.spec, max_new_tokens=4)
    snapshot = Replay(episodes[0], MEMORY, [0])[3]
    speak(planner, snapshot, render_answer("wait", [2]))
    assert planner.plan(snapshot).text == '{"current_primitive":"wait","keyframe_positions":[2'


def test_a_batch_gives_the_answers_of_single_calls(folder, snapshots, processor):
    """Rows of different lengths, with right, wrong and no guesses."""
    planner, alone = load_planner(folder), load_planner(folder)
    for _ in range(2):
        plans = planner.plan_batch(snapshots)
        for plan, snapshot in zip(plans, snapshots, strict=True):
            assert plan.text == alone.plan(snapshot).text
    singles = [decode(planner, [snapshot])[0] for snapshot in snapshots]
    guesses = [singles[0].tokens, [17] * 8, [], singles[3].tokens[:4], singles[4].tokens, [5]]
    batch = decode(planner, snapshots, guesses)
    for one, single, snapshot in zip(batch, singles, snapshots, strict=True):
        assert one.tokens == single.tokens == stock_answer(planner, processor, snapshot)
        assert one.probabilities == pytest.approx(single.probabilities, abs=1e-4)
    assert len({tuple(single.tokens) for single in singles}) > 1
    assert planner.plan_batch([]) == []


def test_the_confidence_is_the_probability_of_the_subtask(planner, snapshots):
    """Of the subtask's tokens and of its end, by hand; what is said of keyframes does not count."""
    answer = render_answer("touch the lime cube", [2])
    speak(planner, snapshots[0], answer, lime=0.75, cube=0.8, **{'","keyframe_positions":[': 0.9, "2": 0.6})
    plan = planner.plan(snapshots[3])
    assert plan.text == answer
    assert plan.confidence == pytest.approx(0.75 * 0.8 * 0.9, abs=1e-4)


def test_a_planner_that_cannot_be_understood_has_no_confidence(planner, snapshots):
    speak(planner, snapshots[0], "touch the lime cube")
    plan = planner.plan(snapshots[3])
    assert plan.subtask is None and plan.error and plan.confidence is None


def test_each_image_is_computed_once(planner, snapshots, episodes):
    planner.plan(Replay(episodes[0], MEMORY, [0])[7])  # frames 0, 6 and 7
    assert planner._images.computed == 3
    planner.plan(Replay(episodes[0], MEMORY, [0])[8])  # and 8
    assert planner._images.computed == 4
    planner.plan(Replay(episodes[0], MEMORY, [0])[8])
    assert planner._images.computed == len(planner._images.memory) == 4


@pytest.mark.parametrize("caches", [CacheConfig(0, 0), CacheConfig(0, 1), CacheConfig(1, 0)])
def test_a_planner_that_remembers_nothing_answers_alike(folder, snapshots, processor, caches):
    planner = load_planner(folder, caches=caches)
    for snapshot in snapshots:
        planner.plan(snapshot)
        assert planner._images.memory.bytes <= caches.features_mb * MB
        assert planner._prefixes.bytes <= caches.prefix_mb * MB
        assert planner._last[snapshot.episode_id].tokens == stock_answer(planner, processor, snapshot)


def test_an_episode_that_is_played_again_goes_as_before(planner, folder, episodes):
    """Bit by bit: what was remembered of its end is no guess at its beginning, and images are read one by one."""
    replay = Replay(episodes[0], MEMORY, [0])
    first = [planner.plan(replay[step]) for step in range(10)]
    assert [planner.plan(replay[step]) for step in range(10)] == first
    bits = [decode(planner, [replay[9]])[0].probabilities for planner in (planner, load_planner(folder))]
    assert bits[0] == bits[1]


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "chat_template.jinja", "processor_config.json"])
def test_a_file_that_is_missing_is_noticed_when_the_planner_is_loaded(tmp_path: Path, file: str) -> None:
    """The library makes up a tokenizer of a few tokens, and a model of 8 billion weights."""
    folder = tmp_path / "planner"
    shutil.copytree(weights_folder(None, "planner"), folder)
    (folder / file).unlink()
    with pytest.raises(PlannerCheckpointError, match=file.split("_")[0]):
        load_planner(folder)
