"""A planner that reads only what is new gives the answers of one that reads everything, whatever happens."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from planner.caches import MB, CacheConfig
from planner.checkpoint import PlannerSpec
from planner.decode_graph import decode_step
from planner.decoding import QwenPlanner, load_planner
from planner.export import export_planner
from planner.forward import Block
from planner.model import ObjectiveConfig
from planner.prompt import PromptConfig
from planner.tiny.base import make_tiny_base
from predimem.core.types import MemorySnapshot
from tests.planner.builders import BASE, MEMORY, PROMPT
from tests.planner.histories import Robot, history
from tests.planner.stock import stock_inputs

WINDOW, LONGEST, LENGTH = 3, 8, 12
MEMORY_3 = replace(MEMORY, recent_window=WINDOW)


def prompt(timestamps, earlier: bool = False) -> PromptConfig:
    return replace(PROMPT, recent_window=WINDOW, timestamps=timestamps, past_sessions=earlier)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("planner") / "base"
    make_tiny_base(base, BASE, prompt("gaps"), ObjectiveConfig(window=WINDOW), vision=None, seed=0)
    spec = PlannerSpec(prompt("gaps"), MEMORY_3, max_new_tokens=LONGEST)
    export_planner(base, base.with_name("export"), spec, torch.float32)
    return base.with_name("export")


@pytest.fixture(scope="module")
def loaded(folder):
    return load_planner(folder)


def watched(planner: QwenPlanner) -> list[torch.Tensor]:
    """The logits that a planner computes from now on."""
    seen: list[torch.Tensor] = []
    read = planner._forward.read
    planner._forward.read = lambda *args: [seen.append(logits) or logits for logits in read(*args)]
    return seen


def fresh(loaded: QwenPlanner, timestamps="gaps", caches: CacheConfig | None = None, earlier=False) -> QwenPlanner:
    spec = replace(loaded.spec, prompt=prompt(timestamps, earlier))
    return QwenPlanner(loaded._model, loaded._processor, spec, caches)


def run_history(loaded: QwenPlanner, seed: int, timestamps="gaps", earlier: bool = False) -> int:
    """Checks one history; how many tokens of prompts were not read again."""
    streamed = fresh(loaded, timestamps, random.Random(seed).choice([CacheConfig(), CacheConfig(1, 1)]), earlier)
    whole = fresh(loaded, timestamps, CacheConfig(0, 0), earlier)
    whole._inputs = at_once(whole._inputs)
    logits, wanted, reused = watched(streamed), watched(whole), 0
    rng = random.Random(f"{seed} prepared")
    for robot, snapshot in history(seed, LENGTH, WINDOW, earlier):
        del logits[:], wanted[:]
        reused += streamed._prefixes.of(snapshot.episode_id).agree_with(streamed._inputs(snapshot))
        plan, expected = streamed.plan(snapshot), whole.plan(snapshot)
        said = streamed._last[snapshot.episode_id].tokens
        assert said == whole._last[snapshot.episode_id].tokens and said
        assert plan.text == expected.text
        ours, theirs = ([part for part in parts if len(part)] for parts in (logits, wanted))
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=0)
        match rng.randrange(4):
            case 0:
                streamed.prepare(robot.foreseen())
            case 1:
                streamed.prepare(robot.foreseen(), interrupted_after(rng.randrange(8)))
            case 2:
                for planner in (streamed, whole):
                    planner.forget(snapshot.episode_id)
    return reused


def interrupted_after(questions: int):
    asked = iter(range(questions))
    return lambda: next(asked, None) is None


def at_once(inputs):
    """A prompt is read in one pass."""
    return lambda *args: replace(inputs(*args), stops=[])


@pytest.mark.parametrize("seed", range(20))
def test_streamed_answers_are_those_of_full_recomputation(loaded, seed):
    run_history(loaded, seed)


@pytest.mark.parametrize("seed", range(5))
def test_it_holds_with_earlier_sessions_in_the_prompt(loaded, seed):
    assert run_history(loaded, seed, earlier=True) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 200))
def test_streamed_answers_are_those_of_full_recomputation_180_times_more(loaded, seed):
    run_history(loaded, seed)


@pytest.mark.parametrize("timestamps", ["absolute", "none", "relative"])
def test_it_holds_for_every_prompt(loaded, timestamps):
    reused = sum(run_history(loaded, seed, timestamps) for seed in range(200, 205))
    assert (reused > 0) == (timestamps != "relative")


def test_histories_change_memories_in_every_way():
    changes = {c for seed in range(20) for robot, _ in history(seed, LENGTH, WINDOW) for c in robot.changes}
    assert changes == {"append", "insert", "replace", "evict", "reset", "nothing"}


def test_logits_are_those_of_stock_transformers(loaded):
    """Of the answer's first token, in prompts of which most is known already."""
    planner = fresh(loaded)
    for _, snapshot in history(7, 10, WINDOW):
        with torch.inference_mode():
            stock = loaded._model(**stock_inputs(loaded._processor, planner.spec.prompt, snapshot), logits_to_keep=1)
        torch.testing.assert_close(first_logits(planner, snapshot), stock.logits[0], atol=1e-4, rtol=0)


def test_what_was_known_changes_no_bit_of_an_answer(loaded):
    streamed = fresh(loaded)
    for robot, snapshot in history(3, LENGTH, WINDOW):
        ours, theirs = (first_logits(planner, snapshot) for planner in (streamed, fresh(loaded)))
        assert torch.equal(ours, theirs)
        streamed.prepare(robot.foreseen())


def first_logits(planner: QwenPlanner, snapshot: MemorySnapshot) -> torch.Tensor:
    """Those of the answer's first token; what can be known of the next prompt is known afterwards."""
    with torch.inference_mode():
        question = planner._question(snapshot)
        (logits,) = planner._reader.read([question], [[]])
        planner._reader.keep(question)
    return logits


def test_only_the_newest_timestep_is_read_after_the_prompt_was_prepared(loaded):
    planner, robot = fresh(loaded), calm_robot("r", keyframes=3)
    planner.plan(robot.snapshot())
    assert planner.prepare(robot.foreseen())
    robot.go_on()
    inputs, counts = planner._inputs(robot.snapshot()), []
    read = planner._forward.read
    planner._forward.read = lambda parts, *rest: [counts.append(p.count) for p in parts] and read(parts, *rest)
    planner.plan(robot.snapshot())
    newest = len(inputs.tokens) - inputs.ends[inputs.stops[-1] - 1]
    assert len(inputs.stops) == 3 + WINDOW - 1
    assert counts[0] <= newest + LONGEST and newest < len(inputs.tokens) / 3


def test_an_interrupted_preparation_leaves_what_it_has_finished(loaded):
    planner, snapshot = fresh(loaded), calm_robot("r", keyframes=2).snapshot()
    layers = len(planner._model.model.language_model.layers)
    assert not planner.prepare(snapshot, interrupted_after(layers + 1))
    prefix = planner._prefixes.of(snapshot.episode_id)
    assert len(prefix.content) == planner._question(snapshot, True).inputs.stops[0]


def test_prefixes_keep_to_their_bytes_and_every_robot_has_a_share(loaded):
    planner = fresh(loaded, caches=CacheConfig(1, 64))
    robots = [calm_robot("many", keyframes=400), *(calm_robot(f"few-{i}", keyframes=3) for i in range(2))]
    for _ in range(2):
        for robot in robots:
            planner.plan(robot.snapshot())
            assert planner._prefixes.bytes <= MB
    kept = [len(planner._prefixes.of(robot.snapshot().episode_id).content) for robot in robots]
    stops = [planner._inputs(robot.snapshot()).stops for robot in robots]
    assert kept[1:] == [few[-1] for few in stops[1:]]  # all that can be kept
    assert stops[0][0] < kept[0] < stops[0][-1]  # the first keyframes


def calm_robot(name: str, keyframes: int) -> Robot:
    """A robot whose memory does not change by itself."""
    robot = Robot(name, random.Random(name), WINDOW)
    for _ in range(keyframes + WINDOW):
        robot.go_on()
    robot.keep_as_keyframes(range(10, 10 * keyframes + 1, 10))
    return robot


def test_what_is_forgotten_takes_no_memory(loaded):
    planner, snapshot = fresh(loaded), calm_robot("r", keyframes=2).snapshot()
    planner.plan(snapshot)
    planner.forget(snapshot.episode_id)
    assert planner._prefixes.bytes == planner._images.memory.bytes == len(planner._last) == 0
    assert planner.plan(snapshot).text == fresh(loaded).plan(snapshot).text


def test_a_decoding_step_of_fixed_shapes_computes_what_any_other_does(loaded):
    """The one that is recorded as a CUDA graph; more tokens than are asked for change nothing."""
    planner, snapshot = fresh(loaded), calm_robot("r", keyframes=1).snapshot()
    tokens, model = [5, 9, 300], planner._model
    with torch.inference_mode():
        question = planner._question(snapshot)
        planner._reader.read([question], [[]])
        known, start = question.prefix.known, question.inputs.next_position
        before = known.length
        known.reserve(8)
        fixed = decode_step(
            model.model.language_model,
            model.lm_head,
            known,
            torch.tensor([*tokens, 0, 0, 0]),
            torch.tensor(before),
            torch.tensor(start),
        )
        assert known.length == before
        (expected,) = planner._forward.extend([Block(tokens, start, known)])
    torch.testing.assert_close(fixed[:3], expected, atol=1e-5, rtol=0)
