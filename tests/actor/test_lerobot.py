"""A tiny policy that LeRobot 0.6.1 itself wrote and ran (tests/golden/make_lerobot_pi05.py): ours computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from actor.exchange.convert import export_actor, import_actor
from actor.pi05 import Prompted
from actor.preprocess import Preprocessor
from actor.tokenizer import Tokenizer, render_prompt
from actor.verify import TOLERANCE
from actor.weights import Actor, load_actor
from tests.actor import checkpoints as tiny

GOLDEN = Path(__file__).parents[1] / "golden" / "lerobot_pi05"
CONSTANT = 3  # the joint that never moved: LeRobot and openpi divide by other tiny numbers, and both give noise
MOVING = [k for k in range(tiny.ARMS) if k != CONSTANT]


class Heard(Tokenizer):
    """Keeps the texts that it is given."""

    vocab_size = 400

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.texts.append(text)
        return [2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    import_actor(GOLDEN, folder / "in", {}, tiny.write_tokenizer(folder / "tokenizer.model"))
    return folder


@pytest.fixture(scope="module")
def actor(folder: Path) -> Actor:
    return load_actor(folder / "in")


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    with np.load(GOLDEN / "expected.npz") as file:
        return dict(file)


def test_samples_the_same_actions_with_a_masked_camera(actor: Actor, expected: dict[str, np.ndarray]):
    names = ("images", "image_mask", "tokens", "token_mask")
    inputs = Prompted(*(torch.from_numpy(expected[name]) for name in names))
    got = actor.model.sample(inputs, torch.from_numpy(expected["noise"]), num_steps=10)
    assert np.abs(got.numpy() - expected["sampled"]).max() <= TOLERANCE


def test_reads_the_state_into_the_same_prompt(actor: Actor, expected: dict[str, np.ndarray]):
    """Values below the range and a joint that never moved included."""
    heard = Heard()
    preprocess = Preprocessor(actor.config, actor.stats, heard)
    black = np.zeros((1, 3, 28, 28, 3), np.uint8)
    preprocess.inputs(black, expected["state"], ["pick up the_cup"])
    assert heard.texts == expected["prompt"].tolist()
    assert " -1 " in heard.texts[0] and " 255 " in heard.texts[0]


def test_actions_become_relative_and_absolute_as_there(actor: Actor, expected: dict[str, np.ndarray]):
    preprocess = Preprocessor(actor.config, actor.stats, Heard())
    wanted = preprocess.targets(expected["actions"], expected["state"]).numpy()
    np.testing.assert_allclose(wanted[..., MOVING], expected["normalised"][..., MOVING], atol=1e-5)
    assert not wanted[..., tiny.ARMS :].any()
    commanded = preprocess.actions(torch.from_numpy(expected["sampled"]), expected["state"])
    np.testing.assert_allclose(commanded, expected["commanded"], atol=1e-5)


def test_what_is_exported_is_what_lerobot_wrote(folder: Path):
    """Byte by byte where LeRobot's file has the tensor; that LeRobot loads it again was checked with the script."""
    from safetensors.torch import load_file

    export_actor(folder / "in", folder / "out", "lerobot")
    for path in GOLDEN.glob("*.safetensors"):
        theirs, ours = load_file(path), load_file(folder / "out" / path.name)
        assert theirs.keys() <= ours.keys()
        for name, value in theirs.items():
            assert torch.equal(ours[name], value), name


def test_the_prompt_is_ours(expected: dict[str, np.ndarray]):
    bins = [int(word) for word in expected["prompt"][0].split("State: ")[1].split(";")[0].split()]
    assert render_prompt("pick up the_cup", bins) == expected["prompt"][0]
