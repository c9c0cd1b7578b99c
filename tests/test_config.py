"""YAML to dataclasses: what is accepted, and that each mistake names its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from predimem.config import ConfigError, from_dict, load_config, to_dict


@dataclass(frozen=True)
class Optimiser:
    learning_rate: float = 1e-3
    kind: Literal["adamw", "sgd"] = "adamw"


@dataclass(frozen=True)
class Training:
    steps: int
    optimiser: Optimiser = Optimiser()
    cameras: tuple[str, ...] = ("base_camera",)
    stages: tuple[Optimiser, ...] = ()
    seed: int | None = None
    weights: dict[str, float] = field(default_factory=dict)
    resume: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"steps must be at least 1, got {self.steps}")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "training.yaml"
    path.write_text(text)
    return path


def test_everything_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "steps: 10\noptimiser: {learning_rate: 1e-5, kind: sgd}\ncameras: [a, b]\n"
        "stages: [{learning_rate: 2}]\nseed: null\nweights: {text: 1}\n",
    )
    assert load_config(Training, path) == Training(
        steps=10,
        optimiser=Optimiser(1e-5, "sgd"),
        cameras=("a", "b"),
        stages=(Optimiser(2.0),),
        weights={"text": 1.0},
    )


def test_there_and_back() -> None:
    config = Training(steps=3, stages=(Optimiser(0.5),), seed=4)
    assert from_dict(Training, to_dict(config)) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: 1\nstep: 2", "unknown key 'step'; Training knows: steps, optimiser"),
        ("steps: 1\noptimiser: {lr: 1}", "optimiser: unknown key 'lr'"),
        ("steps: ten", "steps: expected int, got 'ten'"),
        ("steps: true", "steps: expected int, got True"),
        ("steps: 1\noptimiser: {kind: lion}", "kind: expected one of 'adamw', 'sgd', got 'lion'"),
        ("steps: 1\ncameras: base", "cameras: expected a list"),
        ("steps: 1\nstages: [{}, {kind: 3}]", r"stages\[1\]: kind: expected one of"),
        ("steps: 1\noptimiser: fast", "expected a mapping for Optimiser, got str"),
        ("steps: 0", "steps must be at least 1, got 0"),
        ("seed: 1", "missing 1 required"),
        ("- steps", "expected a mapping for Training, got list"),
        ("steps: [", "not valid YAML"),
    ],
)
def test_mistakes_name_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(Training, write(tmp_path, text))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not found"):
        load_config(Training, tmp_path / "none.yaml")
