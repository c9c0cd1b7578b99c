"""The arena's recipes: one for every row of its table, all of them on one vocabulary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from memory_bank import MemoryConfig
from planner.prompt import PromptConfig
from planner.train import TrainConfig
from predimem.core.config import load_config
from predimem.envs.arena import vocabulary

CONFIGS = Path(__file__).parents[2] / "configs"
RECIPES = sorted((CONFIGS / "planner").glob("arena*.yaml"))
RECIPES = [path for path in RECIPES if path.name != "arena_labels.yaml"]


@pytest.fixture(scope="module")
def full() -> TrainConfig:
    return load_config(TrainConfig, CONFIGS / "planner" / "arena.yaml")


def test_the_labels_are_those_of_the_tasks():
    assert (CONFIGS / "planner" / "arena_labels.yaml").read_text() == vocabulary.as_yaml()


def test_every_row_with_a_planner_has_a_recipe():
    rows = yaml.safe_load((CONFIGS / "eval" / "arena.yaml").read_text())["rows"].values()
    planners = {row["planner"] for row in rows} - {"truth", "instruction"}
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
