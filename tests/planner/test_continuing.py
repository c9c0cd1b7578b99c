"""A training that begins with the weights of an exported planner."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

from planner.checkpoint import PlannerCheckpointError
from planner.model import CONFIG_KEY, PrediMemForConditionalGeneration
from planner.prompt import render_answer
from planner.tiny.base import BaseConfig
from planner.tiny.tokenizer import answer_token_ids, extend_tokenizer, train_tokenizer
from planner.tiny.tokenizer_config import TokenizerConfig
from planner.train import TrainConfig, _Run, train
from predimem.core.config import ConfigError, load_config
from tests.planner.builders import INSTRUCTION, PROMPT
from tests.planner.test_train import write_small


@pytest.fixture(scope="module")
def planner(tmp_path_factory, episodes) -> tuple[Path, Path]:
    """(the config of a small training without steps, the planner that it exports)."""
    folder = tmp_path_factory.mktemp("planner")
    path = write_small(folder, episodes)
    path.write_text(path.read_text().replace("epochs: 1", "epochs: 0"))
    return path, train(path, episodes=str(folder / "episodes"), out=str(folder / "out"))


def continued(planner: tuple[Path, Path], out: Path, edit=lambda text: text) -> Path:
    path, exported = planner
    text = edit(path.read_text()).replace(f"directory: {path.parent / 'vision'}", f"directory: {out / 'features'}")
    config = out / "continued.yaml"
    config.write_text(f"continue_from: {exported}\n{text}")
    return config


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_begins_with_the_planner_and_a_new_head(planner, tmp_path):
    path = continued(planner, tmp_path)
    again = train(path, episodes=str(planner[0].parent / "episodes"), out=str(tmp_path / "out"), seed=7)
    before, now = weights(planner[1]), weights(again)
    assert before.keys() == now.keys()
    assert all(torch.equal(before[name], now[name]) for name in before)
    assert "predictive_head.0.weight" in weights(tmp_path / "out" / "base")


def test_what_the_planner_read_before_it_reads_as_before_and_new_words_begin_anew(planner, tmp_path, capsys):
    path = continued(planner, tmp_path, lambda text: text.replace("[red, lime, blue]", "[red, lime, blue, aquamarine]"))
    _Run(replace(load_config(TrainConfig, path), out=str(tmp_path / "out"))).base()
    assert "1 tokens are new" in (said := capsys.readouterr().out) and "aquamarine" in said
    base = tmp_path / "out" / "base"
    now, before = (AutoTokenizer.from_pretrained(folder) for folder in (base, planner[1]))
    assert now.get_vocab().items() > before.get_vocab().items()
    known = f"Global task: {INSTRUCTION}\n" + render_answer("touch the lime cube", [2])
    assert now(known).input_ids == before(known).input_ids
    name = "model.language_model.embed_tokens.weight"
    rows, old_rows = weights(base)[name], weights(planner[1])[name]
    assert torch.equal(rows[: len(before)].half(), old_rows[: len(before)])
    (new,) = now(" aquamarine", add_special_tokens=False).input_ids
    assert new == len(before) and rows[new].abs().sum() > 0
    objective = json.loads((base / "config.json").read_text())[CONFIG_KEY]
    assert new in objective["answer_token_ids"]


def test_more_layers_answer_as_the_planner_does_and_can_learn(planner, tmp_path):
    few = load_config(TrainConfig, continued(planner, tmp_path))
    sizes = replace(few.base.tiny, layers=few.base.tiny.layers + 2)
    deep = replace(few, base=replace(few.base, tiny=sizes), out=str(tmp_path / "out"))
    _Run(deep).base()
    model = PrediMemForConditionalGeneration.from_pretrained(tmp_path / "out" / "base", dtype=torch.float32)
    before = Qwen3VLForConditionalGeneration.from_pretrained(planner[1], dtype=torch.float32)
    ids = torch.arange(40)[None]
    torch.testing.assert_close(model(input_ids=ids).logits, before(input_ids=ids).logits)
    model(input_ids=ids, labels=ids).loss.backward()
    assert len(model.model.language_model.layers) == sizes.layers
    for layer in model.model.language_model.layers:
        for branch in (layer.self_attn.o_proj, layer.mlp.down_proj):
            assert branch.weight.grad is not None and branch.weight.grad.abs().sum() > 0


def test_new_labels_are_one_token_each():
    old = TokenizerConfig(vocab_size=400, instructions=("Tidy up.",), subtasks=("pick butter",), label_tokens=True)
    tokenizer = train_tokenizer(old, PROMPT)
    before = {
        text: tokenizer(text).input_ids for text in (render_answer("pick butter", [1]), "Global task: Tidy up.\n")
    }
    new = replace(old, instructions=("Tidy up.", "Lay the table."), subtasks=("pick butter", "pick butter knife"))
    added = extend_tokenizer(tokenizer, new, PROMPT)
    assert added == ["Global task: Lay the table.\n", "pick butter knife"]
    assert {text: tokenizer(text).input_ids for text in before} == before
    (label,) = tokenizer("pick butter knife", add_special_tokens=False).input_ids
    assert tokenizer(render_answer("pick butter knife", [1])).input_ids.count(label) == 1
    assert label in answer_token_ids(tokenizer, new)
    assert extend_tokenizer(tokenizer, new, PROMPT) == []


def test_what_is_no_planner_is_named(planner, tmp_path):
    config = replace(
        load_config(TrainConfig, continued(planner, tmp_path)), continue_from="no/planner", out=str(tmp_path)
    )
    with pytest.raises(PlannerCheckpointError, match=r"no/planner/predimem.json not found"):
        _Run(config).base()


def test_trains_no_tower_and_looks_for_no_episodes(planner, tmp_path):
    config = replace(
        load_config(TrainConfig, continued(planner, tmp_path)), episodes="nowhere", out=str(tmp_path / "out")
    )
    _Run(config).base()
    assert not (tmp_path / "features" / "vision.json").exists()
    tower = load_file(tmp_path / "features" / "vision.safetensors")
    assert all(torch.equal(t.half(), weights(planner[1])[f"model.visual.{name}"]) for name, t in tower.items())


def test_features_of_another_tower_are_refused(planner, tmp_path):
    path = continued(planner, tmp_path)
    _Run(replace(load_config(TrainConfig, path), out=str(tmp_path / "out"))).base()
    noted = tmp_path / "features" / "vision.safetensors"
    save_file({name: tensor + 1 for name, tensor in load_file(noted).items()}, noted)
    with pytest.raises(ConfigError, match="another vision tower"):
        _Run(replace(load_config(TrainConfig, path), out=str(tmp_path / "other"))).base()


def test_no_tower_is_taken_from_a_folder_of_features(planner, tmp_path):
    path = continued(planner, tmp_path)
    _Run(replace(load_config(TrainConfig, path), out=str(tmp_path / "out"))).base()
    with pytest.raises(ValueError, match="of a planner's tower"):
        _Run(replace(load_config(TrainConfig, path), continue_from=None, out=str(tmp_path / "other")))._vision()


def of_the_tower(config: TrainConfig, planner: Path, out: Path) -> TrainConfig:
    vision = replace(config.vision, from_planner=str(planner), directory=str(out / "features"))
    return replace(config, vision=vision, episodes="nowhere", out=str(out), seed=7)


def test_a_tower_alone_is_taken_without_pretraining(planner, tmp_path):
    config = of_the_tower(load_config(TrainConfig, planner[0]), planner[1], tmp_path)
    _Run(config).base()
    before, now = weights(planner[1]), weights(tmp_path / "base")
    same = {name: torch.equal(now[name].half(), before[name]) for name in before}
    assert all(same[name] for name in same if name.startswith("model.visual."))
    assert not same["model.language_model.embed_tokens.weight"]  # it begins anew, with another seed
    assert not (tmp_path / "features" / "vision.json").exists()
    with pytest.raises(ValueError, match="of a planner's tower"):
        _Run(replace(config, vision=replace(config.vision, from_planner=None), out=str(tmp_path / "other")))._vision()


def test_a_tower_of_another_size_or_of_no_planner_is_refused(planner, tmp_path):
    config = load_config(TrainConfig, planner[0])
    with pytest.raises(PlannerCheckpointError, match=r"no/planner/predimem.json not found"):
        _Run(of_the_tower(config, Path("no/planner"), tmp_path)).base()
    tiny = replace(config.base.tiny, vision_intermediate_size=config.base.tiny.vision_intermediate_size * 2)
    wider = replace(config, base=replace(config.base, tiny=tiny))
    with pytest.raises(ConfigError, match=r"vision.from_planner: the tower of .* has another size"):
        _Run(of_the_tower(wider, planner[1], tmp_path)).base()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("hidden_size: 32, intermediate", "hidden_size: 48, intermediate", "another size"),
        ("layers: 2, heads: 2", "layers: 1, heads: 2", "differ in their weights"),
        ("image_size: 64", "image_size: 64, rope_theta: 1.0e+6", r"set base: {tiny: {rope_theta: 10000.0}}"),
    ],
)
def test_a_planner_of_another_kind_is_refused(planner, tmp_path, before, after, message):
    path = continued(planner, tmp_path, lambda text: text.replace(before, after, 1))
    with pytest.raises(ConfigError, match=message):
        train(path, episodes=str(planner[0].parent / "episodes"), out=str(tmp_path / "out"))
    assert not (tmp_path / "out" / "base").exists()


def test_one_place_to_start_from():
    with pytest.raises(ValueError, match="both say where"):
        TrainConfig(continue_from="a/planner", base=BaseConfig(pretrained="a/model"))
