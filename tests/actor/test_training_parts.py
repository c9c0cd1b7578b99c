"""What is trained, in which type, what is kept of it, and that none of the machine's settings changes the result."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from actor.names import to_openpi
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.siglip import SiglipConfig
from actor.train import train
from actor.training.average import Average
from actor.training.config import ActorTrainConfig, ComputeConfig, LoraConfig
from actor.training.launch import processes_wanted
from actor.training.log import LOG_FILE, Log
from actor.training.parts import add_lora, checkpoint_layers, freeze, freeze_unread, merge_lora, set_precision
from actor.training.processes import make_accelerator
from actor.weights import load_actor
from predimem.core.config import ConfigError, from_dict
from predimem.core.weight_files import weights_folder
from tests.actor.test_train import CONFIG, MODEL

SIGLIP = dataclasses.replace(
    MODEL,
    vision="siglip",
    siglip=SiglipConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=128, patch_size=32
    ),
)
LORA = LoraConfig(prefix_rank=2, expert_rank=4, expert_alpha=8.0)
INPUTS = Prompted(
    torch.linspace(-1, 1, 2 * 2 * 3 * 128 * 128).view(2, 2, 3, 128, 128),
    torch.ones(2, 2, dtype=torch.bool),
    torch.arange(20).view(2, 10),
    torch.ones(2, 10, dtype=torch.bool),
)


def model(config: Pi05Config = MODEL) -> Pi05:
    torch.manual_seed(0)
    return Pi05(config)


def loss(of: Pi05) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    actions, noise = (torch.randn(2, MODEL.action_horizon, 7, generator=generator) for _ in range(2))
    return of.loss(of.encode(INPUTS), actions, noise, torch.tensor([0.3, 0.8])).mean()


def test_unread_weights_are_those_without_a_gradient():
    one = model()
    loss(one).backward()
    without = {name for name, parameter in one.named_parameters() if parameter.grad is None}
    freeze_unread(one)
    assert {name for name, parameter in one.named_parameters() if not parameter.requires_grad} == without != set()


def test_adapters_change_nothing_at_first_and_are_merged_in_the_end():
    plain, adapted = model(), model()
    add_lora(adapted, LORA)
    torch.testing.assert_close(loss(adapted), loss(plain))
    trained = {name for name, parameter in adapted.named_parameters() if parameter.requires_grad}
    assert any(name.startswith("vision.") for name in trained)  # as in openpi, adapters are for the transformers
    assert all("lora_" in n for n in trained if n.startswith(("language_model.", "action_expert.layers.")))
    assert "action_expert.action_in_proj.weight" in trained
    ranks = {n.split(".")[0]: p.shape[0] for n, p in adapted.named_parameters() if "lora_A" in n}
    assert ranks == {"language_model": 2, "action_expert": 4}
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    before = loss(adapted)
    assert abs(before - loss(plain)) > 1e-3
    merge_lora(adapted)
    assert adapted.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(loss(adapted), before)


def test_a_locator_is_frozen_whole_and_alone():
    one = load_actor(weights_folder(None, "arena-actor")).model
    freeze(one, ("locator",))
    parts = {n: n.split(".")[0] for n, p in one.named_parameters() if not p.requires_grad}
    assert set(parts.values()) == {"locator"}
    assert len(parts) == sum(n.startswith("locator.") for n, _ in one.named_parameters())


def test_frozen_parts_and_types():
    one = model(SIGLIP)
    freeze(one, ("vision", "action_head"))
    frozen = {n for n, p in one.named_parameters() if not p.requires_grad}
    assert {n.split(".")[0] for n in frozen} == {"vision", "action_expert"}
    assert {n.split(".")[1] for n in frozen if n.startswith("action_expert")} == {
        "action_in_proj",
        "action_out_proj",
        "time_mlp_in",
        "time_mlp_out",
    }
    plain = loss(one).detach()
    set_precision(one, "bfloat16_weights")
    kept = {n for n, p in one.named_parameters() if p.dtype == torch.float32}
    assert "action_expert.layers.0.input_layernorm.dense.weight" in kept and "language_model.norm.weight" in kept
    assert "vision.patch_embedding.weight" in kept and "vision.layers.0.q_proj.weight" not in kept
    assert "language_model.embed_tokens.weight" not in kept and "action_expert.action_in_proj.weight" in kept
    with torch.autocast("cpu", torch.bfloat16):
        assert float(loss(one)) == pytest.approx(float(plain), rel=0.03)


def test_layers_computed_again_give_the_same_gradients():
    one, other = model(SIGLIP), model(SIGLIP)
    checkpoint_layers(other)
    kept: list[int] = []
    for each in (one, other):
        total = 0

        def note(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.nbytes
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            value = loss(each)
        kept.append(total)
        value.backward()
    assert kept[1] < 0.7 * kept[0]
    for (name, first), (_, second) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        if first.grad is not None:
            torch.testing.assert_close(first.grad, second.grad, msg=name)


def test_the_average_changes_places_with_the_weights():
    layer = torch.nn.Linear(2, 1)
    average, began = Average(layer, 0.5), copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        layer.weight += 1
    average.update(100)
    with average.in_place():
        torch.testing.assert_close(layer.weight.detach(), began["weight"] + 0.5)
    torch.testing.assert_close(layer.weight.detach(), began["weight"] + 1)
    none = Average(layer, 0.0)
    with none.in_place():
        torch.testing.assert_close(layer.weight.detach(), began["weight"] + 1)


def test_accumulation_workers_and_recomputing_do_not_change_the_result(episodes: Path, tmp_path: Path):
    """With adapters, so that what is exported is the merged average, and with TensorBoard."""
    base = dataclasses.replace(CONFIG, steps=3, log_every=1, lora=LORA, frozen=("vision",))
    other = ComputeConfig(accumulation=2, workers=1, gradient_checkpointing=True)
    changed = dataclasses.replace(base, compute=other, trackers=("tensorboard",), save_optimiser=False)
    folders = [
        train(config, episodes=episodes, out=tmp_path / name, progress=False)
        for name, config in (("one", base), ("other", changed))
    ]
    logs = [[json.loads(line) for line in (f.parent / "log.jsonl").read_text().splitlines()] for f in folders]
    for first, second in zip(*logs, strict=True):
        for name in set(first) - {"seconds"}:
            assert first[name] == pytest.approx(second[name], rel=1e-3), name
    weights = [load_file(folder / "model.safetensors") for folder in folders]
    for name in weights[0]:
        np.testing.assert_allclose(weights[0][name], weights[1][name], atol=2e-3, err_msg=name)
    assert not any("lora" in name for name in weights[0])
    assert list((tmp_path / "other" / "predimem-actor").rglob("events.out.tfevents.*"))
    with pytest.raises(ValueError, match="was saved without the optimiser's state"):
        train(changed, episodes=episodes, out=tmp_path / "other", resume=True, progress=False)


def test_what_is_exported_is_the_average(episodes: Path, tmp_path: Path):
    folder = train(dataclasses.replace(CONFIG, steps=2), episodes=episodes, out=tmp_path / "run", progress=False)
    dcp_to_torch_save(tmp_path / "run" / "checkpoint-00000002", tmp_path / "whole.pt")
    state = torch.load(tmp_path / "whole.pt", weights_only=False)
    exported, name = load_file(folder / "model.safetensors"), "action_expert.action_in_proj.weight"
    average, last = (state[kind][f"model.{name}"].half().numpy() for kind in ("average", "weights"))
    np.testing.assert_array_equal(exported[to_openpi(name)], average)
    assert np.abs(average.astype(float) - last).max() > 0


def test_settings_that_cannot_be_are_refused(tmp_path: Path):
    assert from_dict(ActorTrainConfig, {"bfloat16": True}).precision == "bfloat16"
    for data, message in (
        ({"bfloat16": True, "precision": "float32"}, "'bfloat16' is the former word"),
        ({"frozen": ["wheels"]}, "frozen may hold vision, .* got 'wheels'"),
        ({"trackers": ["paper"]}, "trackers may hold tensorboard, wandb, got 'paper'"),
        ({"precision": "bfloat16_weights", "actor": {"model": {"vision": "conv"}}}, "is openpi's, for vision: siglip"),
        ({"precision": "bfloat16_weights", "compute": {"parallel": "fsdp"}}, "fsdp shards weights of one type"),
        ({"compute": {"accumulation": 0}}, "compute.accumulation must be at least 1"),
        ({"val_every": 1}, "val_every: 1 keeps every episode for the validation"),
        ({"dagger": {"expert_episodes": 8}}, "are played where there are rounds: set it to 0, as dagger.rounds is"),
        ({"lora": {"prefix_rank": -1}}, "lora.prefix_rank must be at least 0"),
    ):
        with pytest.raises((ValueError, ConfigError), match=message):
            from_dict(ActorTrainConfig, data)
    uneven = dataclasses.replace(CONFIG, compute=ComputeConfig(accumulation=3))
    with pytest.raises(ValueError, match=r"2 frames cannot be divided equally among 1 processes .* multiple of 3"):
        train(uneven, episodes=tmp_path, out=tmp_path / "run", progress=False)
    with pytest.raises(ValueError, match=r"device: cuda:1: say `cuda`, and choose with CUDA_VISIBLE_DEVICES"):
        make_accelerator(dataclasses.replace(CONFIG, device="cuda:1"), tmp_path)
    assert processes_wanted("cpu", None) == 1 and processes_wanted("cpu", 3) == 3
    with pytest.raises(ValueError, match="--processes must be at least 1"):
        processes_wanted("cpu", 0)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="each needs a GPU of its own, and this machine has 0"):
            processes_wanted("cuda", 2)


def test_a_log_whose_last_line_was_cut_short_goes_on(tmp_path: Path):
    path = tmp_path / LOG_FILE
    path.write_text('{"step": 10, "seconds": 5.0}\n{"step": 20, "seconds": 9.0}\n{"step": 30, "sec')
    log = Log(path, 20, make_accelerator(CONFIG, tmp_path))
    assert path.read_text().splitlines() == ['{"step": 10, "seconds": 5.0}', '{"step": 20, "seconds": 9.0}']
    assert log.seconds >= 9.0
