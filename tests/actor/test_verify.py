"""π0.5 against openpi's own PyTorch implementation, on recorded tensors."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from actor.names import from_openpi, to_openpi
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.verify import TOLERANCE, verify
from actor.weights import WeightsError
from predimem.core.config import load_config

GOLDEN = Path(__file__).parents[1] / "golden" / "pi05_a"
CONFIGS = Path(__file__).parents[2] / "configs" / "actor"
EMBEDDING = "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight"


def copy_golden(folder: Path) -> Path:
    for name in ("config.json", "inputs.npz", "expected.npz", "model.safetensors"):
        shutil.copyfile(GOLDEN / name, folder / name)
    return folder


def test_equals_openpi():
    errors = verify(GOLDEN)
    assert list(errors) == ["actions_10_steps", "actions_1_step", "loss"]
    assert max(errors.values()) <= TOLERANCE


def test_a_changed_weight_is_noticed(tmp_path: Path):
    folder = copy_golden(tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["action_out_proj.bias"] = weights["action_out_proj.bias"] + 0.01
    save_file(weights, folder / "model.safetensors")
    errors = verify(folder)
    assert errors["actions_1_step"] == pytest.approx(0.01, rel=1e-3)
    assert min(errors.values()) > TOLERANCE


def test_not_a_number_is_an_infinite_error(tmp_path: Path):
    folder = copy_golden(tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["action_out_proj.bias"][0] = float("nan")
    save_file(weights, folder / "model.safetensors")
    assert verify(folder)["loss"] == float("inf")


def test_the_tied_embedding_may_be_stored_as_the_language_head(tmp_path: Path):
    folder = copy_golden(tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights[EMBEDDING]
    save_file(weights, folder / "model.safetensors")
    assert max(verify(folder).values()) <= TOLERANCE


def test_missing_file_and_missing_weight_are_named(tmp_path: Path):
    with pytest.raises(ValueError, match=r"config\.json is missing"):
        verify(tmp_path)
    folder = copy_golden(tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["time_mlp_in.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(WeightsError, match=r"1 weights missing \(first: time_mlp_in\.weight\)"):
        verify(folder)


def test_names_go_to_openpi_and_back():
    weights = load_file(GOLDEN / "model.safetensors")
    ours = from_openpi(weights)
    assert {to_openpi(name) for name in ours} == {name for name in weights if "lm_head" not in name}


def test_full_size_on_the_meta_device():
    """The H100 run's config: 3.3 billion parameters under the names and shapes of pi05_base."""
    from actor.training.config import ActorTrainConfig

    config = load_config(ActorTrainConfig, CONFIGS / "pi05.yaml")
    with torch.device("meta"):
        model = Pi05(config.actor.model)
        inputs = Prompted(
            images=torch.zeros(1, 2, 3, 224, 224),
            image_mask=torch.ones(1, 2, dtype=torch.bool),
            tokens=torch.zeros(1, 200, dtype=torch.int64),
            token_mask=torch.ones(1, 200, dtype=torch.bool),
        )
        prefix = model.encode(inputs)
        velocity = model.velocity(prefix, torch.zeros(1, 8, 32), torch.zeros(1))
    assert 3.2e9 < sum(p.numel() for p in model.parameters()) < 3.5e9
    assert prefix.mask.shape == (1, 2 * 256 + 200)
    assert velocity.shape == (1, 8, 32)
    shapes = {to_openpi(name): tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes[EMBEDDING] == (257_152, 2048)
    layer = "paligemma_with_expert.gemma_expert.model.layers.17."
    assert shapes[layer + "input_layernorm.dense.weight"] == (3072, 1024)
    assert shapes[layer + "self_attn.q_proj.weight"] == (2048, 1024)


def test_prefix_and_expert_must_fit_each_other():
    golden = json.loads((GOLDEN / "config.json").read_text())
    assert golden["paligemma"]["head_dim"] == golden["action_expert"]["head_dim"]
    from actor.gemma import GemmaConfig

    with pytest.raises(ValueError, match=r"paligemma\.depth and action_expert\.depth must be equal"):
        Pi05Config(paligemma=GemmaConfig(depth=3), action_expert=GemmaConfig(depth=4))
