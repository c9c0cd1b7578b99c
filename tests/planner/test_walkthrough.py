"""The run of the full-size recipe on a CPU: two processes, ten steps, then export, evaluation and HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoTokenizer

from benchmarks.planner_walkthrough import NOT_HERE, SMALLER, STEPS, walk, walkthrough_config
from benchmarks.qwen3vl_folder import SPECIAL, VOCABULARY, WORDS, make_qwen3vl_folder
from planner.swift_command import swift_command
from planner.train_config import TrainConfig
from predimem.core.config import load_config
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from tests.planner.builders import COLOURS, make_episode

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen") / "Qwen3-VL-small"
    make_qwen3vl_folder(folder)
    return folder


def test_the_folder_has_qwens_vocabulary(folder: Path) -> None:
    tokenizer, config = AutoTokenizer.from_pretrained(folder), AutoConfig.from_pretrained(folder)
    assert config.text_config.vocab_size == VOCABULARY == 151_936
    assert tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|image_pad|>", "<think>"]) == [151_645, 151_655, 151_667]
    assert len(tokenizer) == WORDS + len(SPECIAL)
    text = '{"current_primitive":"open the top drawer","keyframe_positions":[2]}'
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_the_walkthrough_keeps_every_option_that_a_cpu_knows(folder: Path, tmp_path: Path) -> None:
    real = load_config(TrainConfig, ROOT / "configs" / "planner" / "qwen3vl_8b.yaml")
    here = walkthrough_config(folder, "episodes", tmp_path)
    changed = {name for name, value in vars(real.sft).items() if getattr(here.sft, name) != value}
    assert changed <= {*NOT_HERE, *SMALLER}
    assert (here.prompt, here.memory, here.predictive_weight) == (real.prompt, real.memory, real.predictive_weight)
    names = [
        {word for word in swift_command(c.sft, tmp_path, tmp_path, tmp_path, 0, tmp_path) if word.startswith("--")}
        for c in (real, here)
    ]
    assert names[0] - names[1] == {"--deepspeed"} and names[1] - names[0] == {"--use_cpu"}


@pytest.mark.slow
@pytest.mark.parametrize(("lora", "features"), [(False, False), (True, True)])
def test_from_a_downloaded_folder_to_answers_through_http(
    folder: Path, tmp_path: Path, lora: bool, features: bool
) -> None:
    episodes = [make_episode(1000 + i, colour, cue=10, appear=30, length=60) for i, colour in enumerate([*COLOURS] * 2)]
    for episode in episodes:
        save_episode(episode_path(tmp_path / "episodes", episode.task, episode.seed), episode)
    config = walkthrough_config(folder, str(tmp_path / "episodes"), tmp_path / "run", lora, features)
    config = replace(config, prompt=replace(config.prompt, cameras=("base_camera", "hand_camera")))
    found = walk(config, episodes[-1:])
    (tmp_path / "found.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))
    assert len(found["losses"]) == STEPS
    assert len(found["validation"]) == 2
    for entry in found["validation"]:
        assert {"eval_loss", "eval_subtask_accuracy", "eval_keyframe_f1", "eval_aux_loss"} <= entry.keys()
        assert entry["eval_answers"] == 4
    assert found["answers"] > 0 and found["answers_through_http"] == found["answers"]
    assert list((tmp_path / "run" / "sft").rglob("events.out.tfevents*"))  # TensorBoard's
    assert any((tmp_path / "run" / "features").glob("*.safetensors")) is features
