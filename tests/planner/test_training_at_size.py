"""What a training at full size needs: scores, lengths, features on the disk, adapters, options, and what it costs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from planner.answer_metrics import IGNORED, answer_scores
from planner.checkpoint import PlannerSpec
from planner.dataset import DatasetConfig, DatasetError
from planner.export import export_planner
from planner.feature_shards import FeatureShards, is_sharded, shard_bytes, write_shards
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.prompt import chat_messages, render_answer, size_images
from planner.sample_length import FILE_NAME, check_lengths
from planner.swift_command import METRIC, Node, SftConfig, swift_command, swift_environment
from planner.tiny.base import link_pretrained_base, make_tiny_base
from planner.training_data import write_validation_data
from tests.planner.builders import BASE, MEMORY, PROMPT


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("size") / "hub"
    make_tiny_base(folder, BASE, PROMPT, ObjectiveConfig(predictive_weight=0.0), vision=None, seed=0)
    link_pretrained_base(folder.with_name("base"), str(folder), ObjectiveConfig(window=2))
    return folder.with_name("base")


def options_of(config: SftConfig, **more) -> dict[str, str]:
    command = swift_command(config, Path("base"), Path("data"), Path("nowhere"), 0, **more)
    return dict(zip(command[2::2], command[3::2], strict=True))


# --- scores ---


def scored(processor, *pairs: tuple[str, str]):
    """Answers and labels as the trainer gives them: logits' tokens a place earlier, padded on both sides."""
    ids = [[processor.tokenizer(text + "<|im_end|>").input_ids for text in pair] for pair in pairs]
    assert all(len(said) == len(label) for said, label in ids), "under teacher forcing both have one length"
    longest = max(len(label) for _, label in ids)
    predicted, labels = (np.full((len(ids), longest + 3), IGNORED) for _ in range(2))
    for row, (said, label) in enumerate(ids):
        labels[row, 2 : 2 + len(label)] = label
        predicted[row, 1 : 1 + len(said)] = said
    return answer_scores(predicted, labels, processor.tokenizer.decode)


def test_scores_of_answers(processor) -> None:
    red, lime = "touch the red cube", "touch the lime cube"
    scores = scored(
        processor,
        (render_answer(red, [1]), render_answer(red, [1])),
        (render_answer(lime, [2]), render_answer(red, [1])),
        (render_answer("wait", []), render_answer("wait", [])),
        (render_answer("watch", [1, 2]), render_answer("wait", [1, 2])),
    )
    assert (scores.answers, scores.subtask_accuracy) == (4, 0.5)
    assert scores.keyframe_precision == scores.keyframe_recall == 3 / 4 == scores.keyframe_f1


def test_a_nomination_where_none_is_wanted_is_seen(processor) -> None:
    """The label ends after the bracket; the model would have put a position there."""
    tokenizer = processor.tokenizer
    label = tokenizer(render_answer("wait", []) + "<|im_end|>").input_ids
    place = label.index(tokenizer.convert_tokens_to_ids("]}"))
    said = [*label[:place], *tokenizer("1").input_ids, *label[place + 1 :]]
    scores = answer_scores(np.array([[*said, 0]]), np.array([[IGNORED, *label]]), tokenizer.decode)
    assert (scores.subtask_accuracy, scores.keyframe_precision, scores.keyframe_recall) == (1.0, 0.0, 1.0)
    assert answer_scores(np.zeros((1, 3)), np.full((1, 3), IGNORED), tokenizer.decode).answers == 0


# --- lengths ---


@pytest.mark.parametrize("crop", [{}, {"base_camera": (0.0, 0.0, 0.5, 1.0)}, {"hand_camera": (0.0, 0.0, 0.5, 1.0)}])
def test_lengths_are_those_of_the_processor_and_long_samples_are_refused(
    base, processor, episodes, tmp_path, crop
) -> None:
    config, prompt = DatasetConfig(validation_fraction=0.25), replace(PROMPT, crop=crop)
    jsonl = write_validation_data(tmp_path, episodes, prompt, MEMORY, config, 0, samples=6)
    found = check_lengths(jsonl, base, prompt, max_length=4096)
    assert json.loads((tmp_path / FILE_NAME).read_text())["longest"] == found.longest
    rows = [json.loads(line) for line in jsonl.read_text().splitlines()]
    assert len(rows) == found.samples == 6 and not any(row["metadata"]["counterfactual"] for row in rows)
    longest = 0
    for row in rows:  # with the stock processor: prompt, answer and what the template puts behind it
        text = processor.apply_chat_template(chat_messages(row["messages"]), tokenize=False)
        images = size_images([np.asarray(Image.open(name)) for name in row["images"]], prompt)
        longest = max(longest, len(processor(text=[text], images=images, do_resize=False)["input_ids"][0]))
    assert found.longest == longest
    with pytest.raises(DatasetError, match=rf"of 6 samples are longer than sft.max_length, {found.longest - 1} tokens"):
        check_lengths(jsonl, base, prompt, max_length=found.longest - 1)
    with pytest.raises(DatasetError, match="no episode is held out"):
        write_validation_data(tmp_path / "none", episodes[:2], PROMPT, MEMORY, DatasetConfig(), 0, samples=6)


# --- features on the disk ---


def test_features_on_the_disk_are_the_towers(base, tmp_path) -> None:
    rng = np.random.default_rng(0)
    names = []
    for number, height in enumerate((64, 64, 64, 64, 128)):
        names.append(str(tmp_path / f"{number}.png"))
        Image.fromarray(rng.integers(0, 256, (height, 64, 3), np.uint8)).save(names[-1])
    model = PrediMemForConditionalGeneration.from_pretrained(base)
    images = AutoProcessor.from_pretrained(base).image_processor
    folder = tmp_path / "features"
    assert write_shards(folder, names[:3], model.model, images, PROMPT, shard_images=2) == 3
    (folder / "shard-00002.safetensors").write_bytes(b"torn")  # of an interrupted call: without its note it counts not
    assert write_shards(folder, names, model.model, images, PROMPT, shard_images=2) == 2
    assert write_shards(folder, names, model.model, images, PROMPT) == 0
    assert is_sharded(folder) and not is_sharded(tmp_path)
    table = pickle.loads(pickle.dumps(FeatureShards(folder)))  # as for a worker of a data loader
    assert len(table) == 5 and list(table.rows) == names
    assert [table.tokens(row) for row in range(5)] == [4, 4, 4, 4, 8] and table.grid_thw(4) == [1, 8, 4]
    order = [3, 0, 3, 4]
    inputs = images(images=[np.asarray(Image.open(names[i])) for i in order], do_resize=False, return_tensors="pt")
    with torch.no_grad():
        expected = model.model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
    got = table(torch.tensor([table.rows[names[i]] for i in order]))
    pairs = [(got.pooler_output, expected.pooler_output)]
    pairs += list(zip(got.deepstack_features, expected.deepstack_features, strict=True))
    for ours, theirs in pairs:
        for mine, its in zip(ours, theirs, strict=True):
            assert mine.dtype == torch.bfloat16 and torch.equal(mine, its.bfloat16())
    on_disk = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert on_disk == pytest.approx(shard_bytes(6, 4, 32, 1), rel=0.5)  # headers
    with pytest.raises(FileNotFoundError, match="no features"):
        FeatureShards(tmp_path)


# --- options of ms-swift ---


def test_adapters_validation_and_further_options() -> None:
    config = SftConfig(
        tuner_type="lora",
        eval_samples=8,
        report_to=("tensorboard", "wandb"),
        extra_args={"max_steps": 10, "save_total_limit": 7, "packing": False, "lr_scheduler_kwargs": {"min_lr": 1e-6}},
    )
    command = swift_command(config, Path("base"), Path("data"), Path("nowhere"), 0, Path("held_out"))
    words = " ".join(command)
    for part in (
        "--tuner_type lora", "--lora_rank 64", "--modules_to_save predictive_head", "--val_dataset held_out",
        f"--eval_metric {METRIC}", "--report_to tensorboard wandb", "--max_steps 10", "--save_total_limit 7",
        "--packing false", '--lr_scheduler_kwargs {"min_lr": 1e-06}',
    ):  # fmt: skip
        assert part in words
    plain = options_of(SftConfig())
    assert plain["--report_to"] == "none" and "--val_dataset" not in plain and "--lora_rank" not in plain


def test_fsdp_writes_whole_checkpoints() -> None:
    sharded = options_of(SftConfig(fsdp="fsdp2"))
    assert json.loads(sharded["--fsdp"])["fsdp_config"]["state_dict_type"] == "FULL_STATE_DICT"
    assert sharded["--gradient_checkpointing"] == "false"
    with pytest.raises(ValueError, match="give one of them"):
        SftConfig(fsdp="fsdp2", deepspeed="zero3")


def test_several_nodes_and_processes() -> None:
    config = SftConfig(nodes=2, gpus=8)
    environment = swift_environment(config, node=Node.read(1, "first:1234"))
    expected = {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "first", "MASTER_PORT": "1234", "NPROC_PER_NODE": "8"}
    assert expected.items() <= environment.items()
    with pytest.raises(ValueError, match="say which one this is"):
        swift_environment(config)
    with pytest.raises(ValueError, match="expected 0 to 1, got 2"):
        swift_environment(config, node=Node(2, "first"))
    with pytest.raises(ValueError, match="HOST:PORT"):
        Node.read(0, "first:port")
    assert swift_environment(SftConfig(gpus=0, processes=2))["NPROC_PER_NODE"] == "2"
    with pytest.raises(ValueError, match="processes are for a training on the CPU"):
        SftConfig(gpus=1, processes=2)


# --- export ---


def test_adapters_are_merged_into_the_base(base, tmp_path) -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    model = PrediMemForConditionalGeneration.from_pretrained(base)
    lora = LoraConfig(
        r=4, target_modules=r".*language_model.*\.(q_proj|down_proj)", modules_to_save=["predictive_head"]
    )
    tuned = get_peft_model(model, lora)
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.1)
    tuned.save_pretrained(str(tmp_path / "checkpoint-1"))
    export_planner(
        tmp_path / "checkpoint-1", tmp_path / "export", PlannerSpec(PROMPT, MEMORY), torch.float32, base=base
    )
    exported = Qwen3VLForConditionalGeneration.from_pretrained(tmp_path / "export")
    ids = torch.tensor([[5, 9, 300, 7]])
    with torch.no_grad():
        got, expected = exported(input_ids=ids).logits, tuned(input_ids=ids).logits
        base_logits = Qwen3VLForConditionalGeneration.from_pretrained(base)(input_ids=ids).logits
    assert torch.allclose(got, expected, atol=1e-4) and not torch.allclose(got, base_logits, atol=1e-2)
    assert not any("lora" in name or "predictive" in name for name in exported.state_dict())


def test_the_exported_processor_leaves_small_images_as_they_are(base, tmp_path) -> None:
    """Qwen's own enlarges images below 256 x 256 px; training and the planner do not."""
    source = tmp_path / "checkpoint"
    PrediMemForConditionalGeneration.from_pretrained(base).save_pretrained(source)
    processor = AutoProcessor.from_pretrained(base)
    processor.image_processor.size = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
    processor.save_pretrained(source)
    image = np.zeros((64, 96, 3), np.uint8)
    enlarged = AutoProcessor.from_pretrained(source).image_processor(images=[image], return_tensors="pt")
    assert enlarged["image_grid_thw"].prod() > 24
    export_planner(source, tmp_path / "export", PlannerSpec(PROMPT, MEMORY), torch.float32)
    kept = AutoProcessor.from_pretrained(tmp_path / "export").image_processor(images=[image], return_tensors="pt")
    assert kept["image_grid_thw"].tolist() == [[1, 4, 6]]


# --- cost ---


def test_the_cost_is_counted_as_pytorch_counts_it(base) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from benchmarks.planner_training_cost import Model

    hf = Qwen3VLForConditionalGeneration.from_pretrained(base, attn_implementation="eager")
    sizes = Model.of(json.loads((base / "config.json").read_text()))
    assert sizes.vision_parameters == sum(p.numel() for p in hf.model.visual.parameters())
    text = sum(p.numel() for p in hf.model.language_model.parameters())
    assert sizes.text_parameters == text + (0 if sizes.tied else sizes.head)
    ids = torch.randint(300, 400, (1, 48))
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        hf(input_ids=ids)
    assert counted.get_total_flops() == pytest.approx(sizes.text_flops(48, 48), rel=0.02)
    pixels, grid = torch.zeros(16, 3 * 2 * 16 * 16), torch.tensor([[1, 4, 4]])
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        hf.model.get_image_features(pixels, grid)
    assert counted.get_total_flops() == pytest.approx(sizes.image_flops(16), rel=0.02)


def test_qwen3_vl_8b_has_its_published_size() -> None:
    from benchmarks.planner_training_cost import QWEN3_VL_8B, Model, cost, sample_of
    from planner.train_config import TrainConfig
    from predimem.core.config import load_config

    model = Model.of(QWEN3_VL_8B)
    assert model.text_parameters + model.vision_parameters == pytest.approx(8.77e9, rel=0.005)
    config = load_config(TrainConfig, Path(__file__).parents[2] / "configs" / "planner" / "qwen3vl_8b.yaml")
    sample = sample_of(config, model, 15, 256)
    full = cost(config, model, sample, 0.35, 260_000, 989e12)
    lora = cost(replace(config, sft=replace(config.sft, tuner_type="lora")), model, sample, 0.35, 260_000, 989e12)
    table = cost(replace(config, feature_table=True), model, sample, 0.35, 260_000, 989e12)
    assert lora.hours < full.hours and lora.checkpoint_gb < full.checkpoint_gb
    assert table.hours < full.hours and table.tower_share == 0 and table.features_gb > 100
