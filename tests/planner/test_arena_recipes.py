"""The arena's recipes: every agent of its evaluation has one, and all of them share one vocabulary."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from memory_bank import MemoryConfig
from planner.prompt import PromptConfig
from planner.tiny.tokenizer import train_tokenizer
from planner.train import TrainConfig
from predimem.core.config import from_dict, load_config
from predimem.core.weight_files import weights_folder
from predimem.envs.arena import vocabulary
from predimem.envs.arena.long import sentences
from predimem.envs.arena.long.templates import long_tasks

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = sorted((CONFIGS / "planner").glob("arena*.yaml"))
LONG = [path for path in RECIPES if path.stem.startswith("arena_long") and path.stem != "arena_long_sentences"]
RECIPES = [
    path
    for path in RECIPES
    if path.name not in ("arena_labels.yaml", "arena_varied.yaml") and not path.stem.startswith("arena_long")
]  # these train on


@pytest.fixture(scope="module")
def full() -> TrainConfig:
    return load_config(TrainConfig, CONFIGS / "planner" / "arena.yaml")


def test_the_labels_are_those_of_the_tasks():
    assert (CONFIGS / "planner" / "arena_labels.yaml").read_text() == vocabulary.as_yaml()


def test_the_sentences_of_long_tasks_are_listed_and_make_up_every_instruction():
    assert (CONFIGS / "planner" / "arena_long_sentences.yaml").read_text() == sentences.as_yaml()
    config = load_config(TrainConfig, CONFIGS / "planner" / "arena_long_sentences.yaml")
    tokenizer = train_tokenizer(config.base.tokenizer, config.prompt)
    for task in long_tasks():
        for variant in task.variants:
            tokens = tokenizer.tokenize(variant.instruction)
            assert len(tokens) <= 40 and tokenizer.convert_tokens_to_string(tokens) == variant.instruction


def test_every_agent_with_a_trained_planner_has_a_recipe():
    agents = yaml.safe_load((CONFIGS / "eval" / "arena.yaml").read_text())["agent_configs"].values()
    planners = {agent["planner"] for agent in agents if agent["planner"].startswith("arena-planner")}
    assert "arena-planner" in planners
    made = {"arena-planner" + path.stem.removeprefix("arena").replace("_", "-") for path in RECIPES}
    assert planners <= made


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_differ_in_what_they_say_alone(path: Path, full: TrainConfig):
    config = load_config(TrainConfig, path)
    assert config.base.tokenizer == full.base.tokenizer
    assert (config.out == full.out) == (path.stem == "arena")
    allowed = {"out", "prompt", "memory"}
    allowed |= {"predictive_weight"} if path.stem == "arena_no_head" else set()
    allowed |= {"base"} if path.stem in ("arena_small", "arena_large") else set()
    allowed |= {"vision", "feature_table", "sft"} if path.stem == "arena_untrained" else set()
    assert replace(config, **{name: getattr(full, name) for name in allowed}) == full


def test_the_memories(full: TrainConfig):
    memories = {path.stem: load_config(TrainConfig, path) for path in RECIPES}
    assert memories["arena_no_head"].memory == memories["arena_untrained"].memory == full.memory
    recent, text, video = (memories[f"arena_{name}"] for name in ("recent", "text", "video"))
    assert recent.memory == replace(full.memory, keyframes=False)
    assert text.memory == replace(full.memory, keyframes=False, past_subtasks=True)
    assert video.memory.window_steps == 221 and not video.memory.keyframes
    assert isinstance(video.memory, MemoryConfig) and isinstance(video.prompt, PromptConfig)


def test_shipped_planners_were_trained_by_these_recipes_under_their_former_names(full: TrainConfig):
    record = json.loads((weights_folder(None, "arena-planner") / "predimem.json").read_text())["training"]["config"]
    assert record["dataset"]["splice"] == "progress" and "counterfactual" not in record["dataset"]
    trained = from_dict(TrainConfig, record).dataset
    assert trained.cue_subtask == "watch"  # the default of then, which `progress` does not look at
    assert replace(trained, cue_subtask=None) == full.dataset


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.stem)
def test_the_recipes_of_long_tasks_differ_in_memory_alone_and_continue_a_planner_with_the_same_memory(path: Path):
    config, full = (load_config(TrainConfig, CONFIGS / "planner" / name) for name in (path.name, "arena_long.yaml"))
    same = {"prompt": full.prompt, "memory": full.memory, "out": full.out, "continue_from": full.continue_from}
    assert replace(config, **same) == full
    before = load_config(TrainConfig, CONFIGS / "planner" / path.name.replace("_long", ""))
    assert config.memory == before.memory and config.prompt == before.prompt
    assert config.continue_from == "predimem/weights/arena-planner" + path.stem.removeprefix("arena_long").replace(
        "_", "-"
    )
