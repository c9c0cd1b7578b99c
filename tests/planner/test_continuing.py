"""A training that begins with the weights of an exported planner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from planner.tiny.base import BaseConfig
from planner.train import TrainConfig, _Run, train
from predimem.core.config import ConfigError, load_config
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


def test_tokens_that_are_new_to_the_planner_begin_anew(planner, tmp_path, capsys):
    path = continued(planner, tmp_path, lambda text: text.replace("subtasks: [watch,", "subtasks: [stare,"))
    _Run(replace(load_config(TrainConfig, path), out=str(tmp_path / "out"))).base()
    assert "'stare'" in capsys.readouterr().out
    base = tmp_path / "out" / "base"
    vocabulary = {folder: AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (base, planner[1])}
    shared = sorted(vocabulary[base].keys() & vocabulary[planner[1]].keys())
    name = "model.language_model.embed_tokens.weight"
    now, before = (weights(folder)[name][[ids[token] for token in shared]] for folder, ids in vocabulary.items())
    assert torch.equal(now.half(), before)
    assert any(vocabulary[base][token] != vocabulary[planner[1]][token] for token in shared)
    assert weights(base)[name][vocabulary[base]["stare"]].abs().sum() > 0


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
    with pytest.raises(ValueError, match="go on from a planner"):
        _Run(replace(load_config(TrainConfig, path), continue_from=None, out=str(tmp_path / "other")))._vision()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("hidden_size: 32, intermediate", "hidden_size: 48, intermediate", "another size"),
        ("layers: 2, heads: 2", "layers: 1, heads: 2", "differ in their weights"),
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
