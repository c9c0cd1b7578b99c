"""The training command: stages, configs, command lines; and one real training through ms-swift."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from planner.dataset import SampleMaker
from planner.decoding import load_planner
from planner.evaluate import replay_planner
from planner.instructions import trained_on
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration, objective_of
from planner.prompt import PromptConfig, render_answer
from planner.split import split_episodes
from planner.swift_command import SftConfig, last_checkpoint, swift_command, swift_environment
from planner.tiny.base import link_pretrained_base, make_tiny_base
from planner.train import TrainConfig, _Run, train
from predimem.core.config import ConfigError, load_config
from predimem.core.episode_folder import episode_path
from predimem.core.episode_writer import save_episode
from predimem.core.frames import EpisodeError
from predimem.core.weight_files import INSTRUCTIONS_FILE
from tests.planner.builders import BASE, INSTRUCTION, PROMPT
from tests.planner.stock import stock_inputs
from tests.planner.test_vision_scenes import scene_episode

CONFIGS = Path(__file__).parents[2] / "configs" / "planner"
SMALL = f"""
memory: {{recent_window: 2, cluster_gap_steps: 3}}
answer_weight: 8.0
cache_features: true
base:
  tiny: {{hidden_size: 32, intermediate_size: 48, layers: 2, heads: 2, kv_heads: 1, head_dim: 16,
          mrope_section: [3, 3, 2], vision_hidden_size: 32, vision_intermediate_size: 48, vision_heads: 2,
          image_size: 64}}
  tokenizer:
    vocab_size: 500
    instructions: ["{INSTRUCTION}"]
    subtasks: [watch, wait, "touch the {{colour}} cube"]
    words: {{colour: [red, lime, blue]}}
vision: {{directory: VISION, palette_size: 8, steps: 20, batch_size: 8, max_frames: 50}}
dataset: {{samples: 48}}
sft: {{learning_rate: 1e-3, epochs: 1, batch_size: 8, gradient_accumulation: 1, gradient_checkpointing: false,
       attention: sdpa, dtype: float32, gpus: 0, dataloader_workers: 0, save_steps: 3, logging_steps: 1}}
max_new_tokens: 20
"""


def write_small(folder: Path, episodes) -> Path:
    """Episodes on disk and a config of a training of seconds."""
    for episode in episodes:
        save_episode(episode_path(folder / "episodes", episode.task, episode.seed), episode)
    path = folder / "small.yaml"
    path.write_text(SMALL.replace("VISION", str(folder / "vision")))
    return path


@pytest.fixture
def small(tmp_path, episodes):
    return write_small(tmp_path, episodes)


@pytest.mark.parametrize(
    "name",
    sorted(path.stem for path in CONFIGS.glob("*.yaml") if path.stem not in ("arena_labels", "arena_long_sentences")),
)
def test_shipped_configs_load(name):
    config = load_config(TrainConfig, CONFIGS / f"{name}.yaml")
    assert config.memory.recent_window == config.prompt.recent_window


def test_the_ablations_differ_in_one_thing():
    full, headless, amnesic = (
        load_config(TrainConfig, CONFIGS / f"{name}.yaml") for name in ("tiny", "tiny_no_head", "tiny_no_keyframes")
    )
    assert replace(headless, predictive_weight=0.1, out=full.out) == full
    assert (
        replace(
            amnesic,
            prompt=replace(amnesic.prompt, keyframes=True),
            memory=replace(amnesic.memory, keyframes=True),
            out=full.out,
        )
        == full
    )


def test_the_8b_run_has_the_papers_settings():
    config = load_config(TrainConfig, CONFIGS / "qwen3vl_8b.yaml")
    assert config.base.pretrained == "Qwen/Qwen3-VL-8B-Instruct"
    assert (config.sft.epochs, config.sft.learning_rate, config.sft.gpus) == (2.0, 1e-5, 4)
    assert config.objective == ObjectiveConfig(cameras=2, window=5, predictive_weight=0.1)
    assert config.memory.keyframe_capacity is None


def test_unknown_keys_and_disagreeing_windows_are_errors(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("sft: {learning_rat: 1e-3}")
    with pytest.raises(ConfigError, match="unknown key 'learning_rat'"):
        train(path)
    path.write_text("prompt: {recent_window: 2}")
    with pytest.raises(ValueError, match=r"prompt\.recent_window is 2 and memory.*: they must be equal"):
        train(path)
    path.write_text("prompt: {keyframes: true}\nmemory: {keyframes: false}")
    with pytest.raises(ValueError, match=r"prompt\.keyframes is True"):
        train(path)
    path.write_text("prompt: {past_sessions: true}")
    with pytest.raises(ValueError, match="episode files hold no earlier sessions to learn from"):
        train(path)


def test_the_prompt_follows_the_memory(tmp_path):
    path = tmp_path / "text.yaml"
    path.write_text("memory: {recent_window: 3, recent_stride_steps: 4, keyframes: false, past_subtasks: true}")
    derived = load_config(TrainConfig, path)
    assert derived.prompt == PromptConfig(recent_window=3, keyframes=False, past_subtasks=True)
    both = "prompt: {recent_window: 3, keyframes: false, past_subtasks: true}\n"
    path.write_text(both + path.read_text())  # as files were written when both had to be stated
    assert load_config(TrainConfig, path) == derived


def test_dry_run_prints_the_command_and_writes_nothing(capsys, tmp_path):
    train(CONFIGS / "qwen3vl_8b.yaml", out=str(tmp_path / "out"), dry_run=True)
    words = shlex.split(capsys.readouterr().out)
    assert "NPROC_PER_NODE=4" in words and "sft" in words
    options = dict(zip(words[words.index("sft") + 1 :: 2], words[words.index("sft") + 2 :: 2], strict=True))
    assert options["--freeze_vit"] == options["--freeze_aligner"] == "true"
    assert options["--freeze_llm"] == "false" and options["--tuner_type"] == "full"
    assert options["--deepspeed"] == "zero3" and options["--torch_dtype"] == "bfloat16"
    assert options["--learning_rate"] == "1e-05" and options["--num_train_epochs"] == "2.0"
    assert not (tmp_path / "out").exists()


def test_samples_in_the_order_of_the_jsonl(tmp_path):
    config = SftConfig(epochs=1, gpus=0, group_lengths=True)
    command = swift_command(config, tmp_path / "base", tmp_path / "data", tmp_path / "sft", seed=0)
    options = dict(zip(command[2::2], command[3::2], strict=True))
    assert options["--dataset_shuffle"] == options["--train_dataloader_shuffle"] == "false"
    environment = swift_environment(config, tmp_path / "table")
    assert environment["PREDIMEM_FEATURES"] == str(tmp_path / "table")
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "1"
    with pytest.raises(ValueError, match="one epoch"):
        SftConfig(epochs=2, gpus=0, group_lengths=True)


@pytest.mark.parametrize("kept_for_evaluation", ["episodes", "scenes"])
def test_nothing_learns_from_evaluation_seeds(small, tmp_path, kept_for_evaluation):
    """Neither the planner nor, before it, its vision tower: that is kept for later trainings."""
    for folder, name in ((tmp_path / "episodes", "episodes"), (tmp_path / "scenes", "scenes")):
        episode = scene_episode(900_000 if name == kept_for_evaluation else 2000, "red", "left")
        save_episode(episode_path(folder, episode.task, episode.seed), episode)
    small.write_text(small.read_text().replace("vision: {", f"vision: {{scenes: {tmp_path / 'scenes'}, "))
    named = rf"{tmp_path / kept_for_evaluation}: Squares-v0: seed 900000 is kept for evaluation"
    with pytest.raises(ValueError, match=named):
        train(small, episodes=str(tmp_path / "episodes"), out=str(tmp_path / "out"))
    assert not list((tmp_path / "vision").glob("*")) and not (tmp_path / "out" / "data").exists()


def test_an_untrained_planner_is_its_base(small, tmp_path):
    text = small.read_text().replace("epochs: 1", "epochs: 0").split("vision:")
    small.write_text(text[0] + text[1].partition("\n")[2])
    torch.set_num_threads(2)
    folder = train(small, episodes=str(tmp_path / "no episodes needed"), out=str(tmp_path / "out"))
    assert torch.get_num_threads() == 1  # of `sft.threads`
    planner = load_planner(folder)
    assert planner.spec.training["steps"] == 0 and planner.spec.drawn_seed == 0
    base = Qwen3VLForConditionalGeneration.from_pretrained(tmp_path / "out" / "base").state_dict()
    assert all(torch.equal(tensor, base[name]) for name, tensor in planner._model.state_dict().items())
    assert not (tmp_path / "out" / "data").exists()


def test_no_episodes_is_an_error(small, tmp_path):
    with pytest.raises(EpisodeError, match="no episodes"):
        train(small, episodes=str(tmp_path / "none"), out=str(tmp_path / "out"))


def test_a_folder_of_another_training_is_refused(small, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="another config"):
        train(small, out=str(out))


def test_the_last_whole_checkpoint_counts(tmp_path):
    for steps in (100, 900, 1000):
        (tmp_path / f"checkpoint-{steps}").mkdir()
    assert last_checkpoint(tmp_path) is None
    for steps in (100, 900):
        (tmp_path / f"checkpoint-{steps}" / "trainer_state.json").touch()
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-900"


def test_a_pretrained_base_is_linked_with_our_objective(tmp_path):
    """A local folder stands for the download; the head is new, everything else is the checkpoint's."""
    source = tmp_path / "hub"
    make_tiny_base(source, BASE, PROMPT, ObjectiveConfig(predictive_weight=0.0), vision=None, seed=0)
    link_pretrained_base(tmp_path / "base", str(source), ObjectiveConfig(window=5))
    model, info = PrediMemForConditionalGeneration.from_pretrained(tmp_path / "base", output_loading_info=True)
    assert objective_of(model.config).window == 5
    assert all(name.startswith("predictive_head") for name in info["missing_keys"])
    assert torch.isfinite(model.predictive_head[0].weight).all()
    assert (tmp_path / "base" / "model.safetensors").is_symlink()


SWIFT = """
import json, sys
from transformers import HfArgumentParser
from swift.arguments import SftArguments
from swift.dataset import load_dataset
from swift.utils import parse_args

tiny, large, target = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
args, _ = parse_args(SftArguments, tiny)
template = args.get_template(args.get_model_processor(load_model=False)[1])
template.set_mode("train")
rows, _ = load_dataset(args.dataset, split_dataset_ratio=0)
encoded = []
for row in list(rows)[:8]:
    item = template.encode(row)
    pixels = item["pixel_values"]
    encoded.append([item["input_ids"], item["labels"], list(pixels.shape), float(pixels.double().sum())])
# Only the parser for the large model: building its arguments would ask for GPUs and weights.
parsed = vars(HfArgumentParser(SftArguments).parse_args(large))
wanted = ("deepspeed", "attn_impl", "freeze_vit", "tuner_type", "model")
result = {
    "rows": len(rows),
    "encoded": encoded,
    "frozen": args.freeze_parameters,
    "large": {name: parsed[name] for name in wanted},
}
json.dump(result, open(target, "w"))
"""


def test_the_instructions_of_the_training_lie_beside_its_data(tmp_path, episodes):
    path = write_small(tmp_path, episodes)
    run = _Run(replace(load_config(TrainConfig, path), episodes=str(tmp_path / "episodes"), out=str(tmp_path / "out")))
    run.data()
    training, _ = split_episodes(run.episodes, run.config.dataset.validation_fraction)
    noted = json.loads((tmp_path / "out" / "data" / INSTRUCTIONS_FILE).read_text())
    assert noted == sorted({episode.instruction for episode in training}) and noted


@pytest.fixture(scope="module")
def swift(tmp_path_factory, episodes):
    """(a small run with base and data made, what ms-swift makes of it and of the 8B command line)."""
    folder = tmp_path_factory.mktemp("swift")
    path = write_small(folder, episodes)
    run = _Run(replace(load_config(TrainConfig, path), episodes=str(folder / "episodes"), out=str(folder / "out")))
    run.claim()
    run.base()
    run.data()
    large = _Run(load_config(TrainConfig, CONFIGS / "qwen3vl_8b.yaml"))
    commands = [json.dumps(r.swift_command()[2:]) for r in (run, large)]
    done = subprocess.run(
        [sys.executable, "-c", SWIFT, *commands, str(folder / "result.json")],
        env={**os.environ, **swift_environment(run.config.sft)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return run, json.loads((folder / "result.json").read_text())


def test_ms_swift_reads_the_data_as_we_render_it(swift):
    """Tokens, labels and pixels of ms-swift's template equal those of the processor, and so our own at inference."""
    run, result = swift
    base = run.out / "base"
    processor = AutoProcessor.from_pretrained(base)
    training, _ = split_episodes(run.episodes, run.config.dataset.validation_fraction)
    maker = SampleMaker(training, run.config.memory, run.config.dataset)
    assert result["rows"] == 48
    for row, sample in zip(result["encoded"], maker.draw(8, random.Random(0)), strict=True):
        tokens, labels, shape, total = row
        inputs = stock_inputs(processor, run.config.prompt, sample.snapshot)
        prompt = inputs["input_ids"][0].tolist()
        answer = processor.tokenizer(render_answer(sample.subtask, sample.positions) + "<|im_end|>").input_ids
        assert tokens[: len(prompt) + len(answer)] == prompt + answer
        assert labels[: len(prompt)] == [-100] * len(prompt)
        assert labels[len(prompt) :][: len(answer)] == answer
        assert shape == list(inputs["pixel_values"].shape)
        assert total == pytest.approx(float(inputs["pixel_values"].double().sum()), abs=1e-3)


def test_ms_swift_freezes_tower_and_mergers(swift):
    frozen = swift[1]["frozen"]
    assert "model.visual" in frozen and "model.visual.merger" in frozen
    assert not any("language_model" in name for name in frozen)


def test_ms_swift_knows_every_option_of_the_8b_run(swift):
    assert swift[1]["large"] == {
        "deepspeed": "zero3",
        "attn_impl": "flash_attn",
        "freeze_vit": True,
        "tuner_type": "full",
        "model": "runs/train/planner-qwen3vl-8b/base",
    }


@pytest.mark.slow
def test_a_training_from_episodes_to_a_planner(small, tmp_path, episodes):
    """Every stage for real, with ms-swift; a second call does nothing; an interrupted one resumes."""
    arguments = {"episodes": str(tmp_path / "episodes"), "out": str(tmp_path / "out")}
    folder = train(small, **arguments)
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    assert train(small, **arguments) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp

    planner = load_planner(folder)
    assert planner.spec.memory.recent_window == 2 and planner.spec.training["steps"] == 6
    assert replay_planner(planner, episodes[-1:], planner.spec.memory).answers == 5
    assert episodes[0].instruction in trained_on(folder, planner.spec)[0]

    tower = load_file(tmp_path / "vision" / "vision.safetensors")
    trained = load_file(folder / "model.safetensors")
    assert all(torch.equal(t.half(), trained[f"model.visual.{name}"]) for name, t in tower.items())

    shutil.rmtree(folder)  # as after Ctrl-C between the two checkpoints
    (tmp_path / "out" / "sft" / "done").unlink()
    shutil.rmtree(tmp_path / "out" / "sft" / "checkpoint-6")
    train(small, **arguments)
    again = load_file(folder / "model.safetensors")
    assert all(torch.allclose(trained[name].float(), again[name].float(), atol=2e-3) for name in trained)
