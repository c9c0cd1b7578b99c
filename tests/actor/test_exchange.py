"""Checkpoints of openpi and LeRobot: in, out, trained on, and served, with their real key sets at tiny sizes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from actor.exchange.convert import export_actor, import_actor
from actor.names import EMBEDDING, EXPERT_HEAD, TIED_EMBEDDING
from actor.normalize import load_stats
from actor.policy import load_policy
from actor.weights import WeightsError, load_actor, save_actor
from predimem.core.types import Observation
from tests.actor import checkpoints as tiny
from tests.actor.checkpoints import ARMS, CAMERAS, GOLDEN, RELATIVE

ROBOT = {"cameras": CAMERAS, "camera_shape": [48, 64], "state_dim": ARMS, "action_dim": ARMS}
ROBOT |= {"relative_to_state": RELATIVE}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_tokenizer(tmp_path_factory.mktemp("tokenizer") / "paligemma_tokenizer.model")


@pytest.fixture(scope="module")
def openpi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_openpi(tmp_path_factory.mktemp("openpi") / "checkpoint")


@pytest.fixture(scope="module")
def lerobot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_lerobot(tmp_path_factory.mktemp("lerobot") / "checkpoint")


@pytest.fixture
def broken(openpi: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint, for tests that break it."""
    import shutil

    return Path(shutil.copytree(openpi, tmp_path / "broken"))


def same_tensors(one: Path, other: Path) -> bool:
    """To the last bit, names and dtypes included."""
    a, b = load_file(one / "model.safetensors"), load_file(other / "model.safetensors")
    assert a.keys() == b.keys()
    return all(
        a[n].dtype == b[n].dtype
        and torch.equal(a[n].contiguous().view(torch.uint8), b[n].contiguous().view(torch.uint8))
        for n in a
    )


def observe(step: int = 0) -> Observation:
    rng = np.random.default_rng(step)
    images = {name: rng.integers(0, 255, (48, 64, 3), np.uint8) for name in CAMERAS}
    return Observation(step, images, rng.uniform(-1, 1, ARMS).astype(np.float32))


def test_the_tiny_checkpoint_has_openpis_keys():
    """Those of the recorded model of openpi's own implementation; layers are numbered."""
    kinds = {re.sub(r"\.\d+\.", ".N.", name) for name in tiny.tensors()}
    assert kinds == {re.sub(r"\.\d+\.", ".N.", name) for name in load_file(GOLDEN / "model.safetensors")}


def test_openpi_goes_in_and_out_to_the_last_bit(openpi: Path, tokenizer: Path, tmp_path: Path):
    said = import_actor(openpi, tmp_path / "in", ROBOT, tokenizer)
    assert "0.1 million parameters, chunks of 50 x 32" in said and "2 of them language heads" in said
    config = load_actor(tmp_path / "in").config
    assert config.model == tiny.MODEL and config.openpi_exact and config.relative_to_state == RELATIVE
    export_actor(tmp_path / "in", tmp_path / "out", "openpi", "trossen")
    assert same_tensors(openpi, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "assets" / "trossen" / "norm_stats.json").read_text())["norm_stats"]
    for name, given in tiny.statistics().items():  # without the padding
        assert written[name] == {field: given[field][:ARMS] for field in given}
    described = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (described["action_dim"], described["action_horizon"], described["precision"]) == (32, 50, "bfloat16")


def test_lerobot_goes_in_and_out_to_the_last_bit(lerobot: Path, tokenizer: Path, tmp_path: Path):
    import_actor(lerobot, tmp_path / "in", {}, tokenizer)
    config = load_actor(tmp_path / "in").config
    assert config.model == tiny.MODEL and config.cameras == CAMERAS and config.camera_shape == (48, 64)
    assert (config.state_dim, config.action_dim, config.relative_to_state) == (ARMS, ARMS, RELATIVE)
    export_actor(tmp_path / "in", tmp_path / "out", "lerobot")
    assert same_tensors(lerobot, tmp_path / "out")
    import_actor(tmp_path / "out", tmp_path / "again", {}, tokenizer)
    assert load_actor(tmp_path / "again").config == config
    for name in ("state", "actions"):
        first, second = (getattr(load_stats(tmp_path / run / "norm_stats.json"), name) for run in ("in", "again"))
        for field in ("q01", "q99", "mean", "std"):
            np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


def test_both_tools_give_the_same_actor(openpi: Path, lerobot: Path, tokenizer: Path, tmp_path: Path):
    """The same weights in two layouts: the same actions, to what float32 statistics differ by."""
    import_actor(openpi, tmp_path / "openpi", ROBOT, tokenizer)
    import_actor(lerobot, tmp_path / "lerobot", {"camera_shape": [48, 64]}, tokenizer)
    one, other = (
        load_policy(tmp_path / name).infer(observe(), tiny.SUBTASKS[0]).actions for name in ("openpi", "lerobot")
    )
    assert one.shape == (50, ARMS) and np.isfinite(one).all()
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("mode", "low", "high"), [("MEAN_STD", ("mean", "std", -1), ("mean", "std", 1))])
def test_other_normalisers_of_lerobot_become_quantiles(
    tokenizer: Path, tmp_path: Path, mode: str, low: tuple, high: tuple
):
    import_actor(tiny.write_lerobot(tmp_path / "from", mode), tmp_path / "in", {}, tokenizer)
    got, given = load_stats(tmp_path / "in" / "norm_stats.json").state, tiny.statistics(ARMS)["state"]
    for value, (mean, std, sign) in ((got.q01, low), (got.q99, high)):
        np.testing.assert_allclose(value, np.array(given[mean]) + sign * np.array(given[std]), rtol=1e-6)


def test_a_trained_actor_gets_the_heads_that_it_has_not(openpi: Path, tokenizer: Path, tmp_path: Path):
    """Our own folders have neither language head; openpi and LeRobot refuse a checkpoint without."""
    import_actor(openpi, tmp_path / "in", ROBOT, tokenizer)
    save_actor(tmp_path / "ours", load_actor(tmp_path / "in"), torch.bfloat16)
    assert EXPERT_HEAD not in load_file(tmp_path / "ours" / "model.safetensors")
    export_actor(tmp_path / "ours", tmp_path / "openpi", "openpi")
    export_actor(tmp_path / "ours", tmp_path / "lerobot", "lerobot")
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("openpi", "lerobot"))
    assert first.keys() | {TIED_EMBEDDING} == load_file(openpi / "model.safetensors").keys()
    assert not first[EXPERT_HEAD].any() and first[EXPERT_HEAD].shape == (400, 16)
    assert {f"model.{name}" for name in first} - second.keys() == {f"model.{EMBEDDING}"}
    assert torch.equal(second[f"model.{TIED_EMBEDDING}"], first[EMBEDDING])


def test_a_checkpoint_in_several_files(openpi: Path, tokenizer: Path, tmp_path: Path, broken: Path):
    whole = load_file(openpi / "model.safetensors")
    (broken / "model.safetensors").unlink()
    names = sorted(whole)
    parts = {"model-00001-of-00002.safetensors": names[:40], "model-00002-of-00002.safetensors": names[40:]}
    for file, held in parts.items():
        save_file({name: whole[name] for name in held}, broken / file)
    weight_map = {name: file for file, held in parts.items() for name in held}
    (broken / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    import_actor(broken, tmp_path / "in", ROBOT, tokenizer)
    assert same_tensors(openpi, tmp_path / "in")
    shard = broken / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(WeightsError, match=r"model-00002-of-00002\.safetensors should have \d+ bytes by its header"):
        import_actor(broken, tmp_path / "cut", ROBOT, tokenizer)
    shard.unlink()
    with pytest.raises(WeightsError, match=r"model-00002-of-00002\.safetensors of 2 files missing"):
        import_actor(broken, tmp_path / "cut", ROBOT, tokenizer)
    assert not (tmp_path / "cut").exists()


def test_missing_and_unexpected_tensors_are_named(broken: Path, tokenizer: Path, tmp_path: Path):
    weights = load_file(broken / "model.safetensors")
    del weights["time_mlp_in.weight"]
    weights["left_over.weight"] = torch.zeros(1)
    save_file(weights, broken / "model.safetensors")
    with pytest.raises(
        WeightsError, match=r"1 tensors missing: time_mlp_in\.weight; 1 tensors unexpected: left_over\.weight"
    ):
        import_actor(broken, tmp_path / "in", ROBOT, tokenizer)
    weights["state_proj.weight"] = torch.zeros(1)
    save_file(weights, broken / "model.safetensors")
    with pytest.raises(WeightsError, match="is a π0 checkpoint"):
        import_actor(broken, tmp_path / "in", ROBOT, tokenizer)


def test_a_checkpoint_without_statistics_names_the_file(broken: Path, tokenizer: Path, lerobot: Path, tmp_path: Path):
    stats = broken / "assets" / "trossen" / "norm_stats.json"
    (broken / "assets" / "other").mkdir()
    (broken / "assets" / "other" / "norm_stats.json").write_bytes(stats.read_bytes())
    with pytest.raises(WeightsError, match="choose with --asset: other, trossen"):
        import_actor(broken, tmp_path / "in", ROBOT, tokenizer)
    stats.unlink()
    with pytest.raises(WeightsError, match=r"trossen/norm_stats\.json is missing; .* there are: other"):
        import_actor(broken, tmp_path / "in", ROBOT, tokenizer, asset="trossen")
    (broken / "assets" / "other" / "norm_stats.json").unlink()
    with pytest.raises(WeightsError, match=r"assets/<name>/norm_stats\.json is missing"):
        import_actor(broken, tmp_path / "in", ROBOT, tokenizer)
    import shutil

    copy = Path(shutil.copytree(lerobot, tmp_path / "lerobot"))
    (copy / "policy_preprocessor_step_3_normalizer_processor.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"step_3_normalizer_processor\.safetensors is missing"):
        import_actor(copy, tmp_path / "in", {}, tokenizer)
    (copy / "policy_preprocessor.json").unlink()
    with pytest.raises(WeightsError, match=r"policy_preprocessor\.json names no file with statistics"):
        import_actor(copy, tmp_path / "in", {}, tokenizer)


def test_what_a_user_has_to_say(openpi: Path, lerobot: Path, tokenizer: Path, tmp_path: Path):
    with pytest.raises(ValueError, match=r"give --cameras, --state-dim, --action-dim, or a recipe with --config"):
        import_actor(openpi, tmp_path / "in", {}, tokenizer)
    with pytest.raises(ValueError, match=r"paligemma_tokenizer\.model with --tokenizer"):
        import_actor(openpi, tmp_path / "in", ROBOT)
    undescribed = tiny.write_openpi(tmp_path / "undescribed", described=False)
    with pytest.raises(ValueError, match="say it with --horizon"):
        import_actor(undescribed, tmp_path / "in", ROBOT, tokenizer)
    import_actor(undescribed, tmp_path / "in", ROBOT | {"action_horizon": 50}, tokenizer)
    with pytest.raises(ValueError, match="holds files already"):
        import_actor(openpi, tmp_path / "in", ROBOT, tokenizer)
    with pytest.raises(
        WeightsError, match=r"statistics for 14 dimensions of state, and the robot has 16.*--state-dim 14"
    ):
        import_actor(lerobot, tmp_path / "wide", {"state_dim": 16}, tokenizer)


def test_what_cannot_be_exported(openpi: Path, tokenizer: Path, tmp_path: Path):
    from predimem.core.weight_files import weights_folder

    with pytest.raises(ValueError, match=r"model\.vision is 'conv'.*configs/actor/pi05\.yaml"):
        export_actor(weights_folder(None, "actor"), tmp_path / "out", "openpi")
    shifted = ROBOT | {"relative_to_state": [*RELATIVE[:-2], 3, None]}
    import_actor(openpi, tmp_path / "in", shifted, tokenizer)
    with pytest.raises(ValueError, match=r"those of the actions \[12\] have other ones"):
        export_actor(tmp_path / "in", tmp_path / "out", "lerobot")
    assert not (tmp_path / "out").exists()


def test_a_tiny_tokenizer_keeps_its_kind(openpi: Path, tmp_path: Path):
    from actor.tokenizer import save_tokenizer, train_word_tokenizer

    save_tokenizer(train_word_tokenizer(tiny.SUBTASKS), tmp_path / "words.json")
    import_actor(openpi, tmp_path / "in", ROBOT, tmp_path / "words.json")
    assert load_policy(tmp_path / "in", num_steps=1).infer(observe(), tiny.SUBTASKS[0]).actions.shape == (50, ARMS)
