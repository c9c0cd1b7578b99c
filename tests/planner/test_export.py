"""The exported planner: stock transformers, no head; and what is said when it is broken."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from transformers import AutoModelForImageTextToText, Qwen3VLForConditionalGeneration

from planner.base import make_tiny_base
from planner.checkpoint import PlannerCheckpointError, PlannerSpec, read_spec
from planner.decoding import load_planner
from planner.export import export_planner
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.replay import Replay
from predimem.interfaces import Planner
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
    export_planner(checkpoint, tmp_path / "half", SPEC, torch.float16)
    size = (tmp_path / "half" / "model.safetensors").stat().st_size
    assert size < 0.6 * (exported / "model.safetensors").stat().st_size
    assert load_planner(tmp_path / "half")._model.dtype == torch.float32


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
