"""The exported planner: stock transformers, no head; and what is said when it is broken."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForImageTextToText, Qwen3VLForConditionalGeneration

from planner.checkpoint import PlannerCheckpointError, PlannerSpec, read_spec
from planner.decoding import load_planner
from planner.export import TEXT_SHARD, TOWER_SHARD, export_planner, split_tower
from planner.instructions import trained_on
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.replay import Replay
from planner.tiny.base import make_tiny_base
from predimem.core.interfaces import Planner
from predimem.core.weight_files import place_weights
from tests.planner.builders import BASE, MEMORY, PROMPT, encode_batch

SPEC = PlannerSpec(PROMPT, MEMORY, max_new_tokens=20, training={"seed": 0})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planner") / "base"
    make_tiny_base(folder, BASE, PROMPT, ObjectiveConfig(window=2), vision=None, seed=0)
    return folder


@pytest.fixture(scope="module")
def exported(checkpoint):
    folder = checkpoint.with_name("export")
    export_planner(checkpoint, folder, SPEC, torch.float32)
    return folder


def test_stock_transformers_gives_the_training_models_logits(checkpoint, exported, processor, episodes):
    batch = encode_batch(processor, episodes[:2], steps=[7, 1])
    del batch["labels"]
    ours = PrediMemForConditionalGeneration.from_pretrained(checkpoint)
    stock, info = AutoModelForImageTextToText.from_pretrained(exported, output_loading_info=True)
    assert type(stock) is Qwen3VLForConditionalGeneration
    assert not any(info[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        assert torch.equal(stock(**batch).logits, ours(**batch).logits)


def test_nothing_of_the_training_is_exported(exported):
    config = json.loads((exported / "config.json").read_text())
    assert "predictive_coding" not in config
    assert config["architectures"] == ["Qwen3VLForConditionalGeneration"]
    assert read_spec(exported) == SPEC


def test_half_precision_halves_the_file(checkpoint, exported, tmp_path):
    export_planner(checkpoint, tmp_path / "half", SPEC, torch.float16, instructions=["b", "a", "b"])
    assert trained_on(tmp_path / "half", SPEC) == (("a", "b"), False)
    assert trained_on(exported, SPEC) == ((), False)
    size = (tmp_path / "half" / "model.safetensors").stat().st_size
    assert size < 0.6 * (exported / "model.safetensors").stat().st_size
    assert load_planner(tmp_path / "half")._model.dtype == torch.float32


@pytest.fixture(scope="module")
def sharded(checkpoint):
    folder = checkpoint.with_name("sharded")
    export_planner(checkpoint, folder, SPEC, torch.float32, tower_shard=True)
    return folder


def test_the_tower_in_a_file_of_its_own_is_the_same_stock_checkpoint(exported, sharded):
    assert not (sharded / "model.safetensors").exists()
    whole = Qwen3VLForConditionalGeneration.from_pretrained(exported).state_dict()
    split, info = AutoModelForImageTextToText.from_pretrained(sharded, output_loading_info=True)
    assert not any(info[problem] for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert all(torch.equal(tensor, whole[name]) for name, tensor in split.state_dict().items())


def test_the_towers_file_depends_on_the_tower_alone(checkpoint, sharded, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(checkpoint, tmp_path / "other")
    tensors = load_file(checkpoint / "model.safetensors")
    text = {name: tensor + 1 if "language_model" in name else tensor for name, tensor in tensors.items()}
    save_file(text, tmp_path / "other" / "model.safetensors", {"format": "pt"})
    export_planner(tmp_path / "other", tmp_path / "export", SPEC, torch.float32, tower_shard=True)
    assert (tmp_path / "export" / TOWER_SHARD).read_bytes() == (sharded / TOWER_SHARD).read_bytes()
    assert (tmp_path / "export" / TEXT_SHARD).read_bytes() != (sharded / TEXT_SHARD).read_bytes()


def test_an_export_is_split_afterwards(exported, sharded, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "export")
    for _ in range(2):
        split_tower(folder)
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in sharded.iterdir()}


@pytest.mark.parametrize("shard", [TOWER_SHARD, TEXT_SHARD])
@pytest.mark.parametrize("keep", [None, 0, 1000, 0.999])
def test_a_shard_that_is_missing_or_truncated(sharded, tmp_path, shard, keep):
    folder = shutil.copytree(sharded, tmp_path / "broken")
    data = (folder / shard).read_bytes()
    (folder / shard).unlink()
    if keep is not None:
        (folder / shard).write_bytes(data[: keep if keep >= 1 else int(keep * len(data))])
    with pytest.raises(PlannerCheckpointError, match="missing or truncated"):
        load_planner(folder)


def test_a_planner_that_shares_its_tower(sharded, tmp_path, episodes):
    first, second = (place_weights(sharded, tmp_path, name) for name in ("a", "b"))
    assert (second / TOWER_SHARD).is_symlink()
    assert load_planner(second)._model.dtype == torch.float32
    (first / TOWER_SHARD).unlink()
    with pytest.raises(PlannerCheckpointError, match="missing or truncated"):
        load_planner(second)


def test_a_planner_that_is_its_seed(checkpoint, exported, tmp_path):
    drawn = replace(SPEC, drawn_seed=0)
    export_planner(checkpoint, tmp_path / "drawn", drawn, torch.float16)
    assert not list((tmp_path / "drawn").glob("*.safetensors"))
    before = torch.random.get_rng_state()
    weights = load_planner(tmp_path / "drawn")._model.state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    trained = load_planner(exported)._model.state_dict()
    assert weights.keys() == trained.keys() and all(torch.equal(weights[name], trained[name]) for name in weights)
    with pytest.raises(RuntimeError, match="other weights than those drawn from seed 1"):
        export_planner(checkpoint, tmp_path / "other", replace(SPEC, drawn_seed=1), torch.float16)
    assert not (tmp_path / "other").exists()


def test_an_untrained_planner_gives_an_invalid_plan_not_a_crash(exported, episodes):
    planner = load_planner(exported)
    assert isinstance(planner, Planner)
    plan = planner.plan(Replay(episodes[0], MEMORY, [0])[7])
    assert plan.subtask is None and plan.error and plan.step == 7


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(PlannerCheckpointError, match=r"planner weights not found.*predimem train planner"):
        load_planner(tmp_path / "nothing")


@pytest.fixture
def broken(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "broken")


def test_missing_weights(broken):
    (broken / "model.safetensors").unlink()
    with pytest.raises(PlannerCheckpointError, match="missing or truncated"):
        load_planner(broken)


@pytest.mark.parametrize("keep", [0, 4, 1000, 0.5, 0.999])
def test_truncated_weights(broken, keep):
    data = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(data[: keep if keep > 1 else int(keep * len(data))])
    with pytest.raises(PlannerCheckpointError, match="missing or truncated"):
        load_planner(broken)


def test_weights_that_lack_a_tensor(broken):
    from safetensors.torch import load_file, save_file

    tensors = load_file(broken / "model.safetensors")
    name = next(n for n in tensors if "layers.0" in n)
    save_file({n: t for n, t in tensors.items() if n != name}, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(PlannerCheckpointError, match=r"lacks 1 weights.*layers\.0"):
        load_planner(broken)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "processor_config.json"])
def test_a_truncated_companion_file(broken, name):
    (broken / name).write_text((broken / name).read_text()[:30])
    with pytest.raises(PlannerCheckpointError):
        load_planner(broken)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (None, "not found"),
        ("{", "not JSON"),
        ("{}", "not a predimem-planner file"),
        ('{"format": "predimem-planner", "version": 99}', "version 99; this code reads 1"),
        ('{"format": "predimem-planner", "version": 1, "windw": 2}', "unknown key 'windw'"),
        ('{"format": "predimem-planner", "version": 1, "prompt": {"recent_window": 3}}', "must be equal"),
    ],
)
def test_a_broken_predimem_json(broken, change, says):
    (broken / "predimem.json").unlink()
    if change is not None:
        (broken / "predimem.json").write_text(change)
    with pytest.raises(PlannerCheckpointError, match=says):
        load_planner(broken)
