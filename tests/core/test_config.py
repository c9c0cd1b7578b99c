"""YAML to dataclasses: what is accepted, and that each mistake names its place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from predimem.core.config import ConfigError, from_dict, load_config, to_dict


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
    assert json.loads(json.dumps(to_dict(config))) == to_dict(config)  # what was written down is compared with it


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
        ("- steps", "expected a mapping, got a list"),
        ("steps: [", "not valid YAML"),
    ],
)
def test_mistakes_name_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(Training, write(tmp_path, text))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not found"):
        load_config(Training, tmp_path / "none.yaml")


def test_a_file_states_what_differs_from_the_one_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("steps: 10\noptimiser: {learning_rate: 2.0, kind: sgd}\ncameras: [a, b]\n")
    (tmp_path / "middle.yaml").write_text("extends: base.yaml\noptimiser: {kind: adamw}\nseed: 3\n")
    folder = tmp_path / "studies"
    folder.mkdir()
    path = write(folder, "extends: ../middle.yaml\ncameras: [c]\nseed: null\n")
    assert load_config(Training, path) == Training(steps=10, optimiser=Optimiser(2.0, "adamw"), cameras=("c",))


def test_what_is_extended_must_exist_and_lead_somewhere(tmp_path: Path) -> None:
    path = write(tmp_path, "extends: none.yaml\nsteps: 1\n")
    with pytest.raises(ConfigError, match=r"none\.yaml, which .*training\.yaml extends"):
        load_config(Training, path)
    write(tmp_path, "extends: training.yaml\nsteps: 1\n")
    with pytest.raises(ConfigError, match="extends itself"):
        load_config(Training, path)
    write(tmp_path, "extends: [a.yaml]\nsteps: 1\n")
    with pytest.raises(ConfigError, match=r"extends: expected the name of a YAML file"):
        load_config(Training, path)
    (tmp_path / "list.yaml").write_text("[1, 2]")
    write(tmp_path, "extends: list.yaml\nsteps: 1\n")
    with pytest.raises(ConfigError, match="expected a mapping, got a list"):
        load_config(Training, path)


def test_former_names_of_fields_are_read(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Renamed:
        FORMER_NAMES: ClassVar[dict[str, str]] = {"old": "new"}
        new: int = 1

    assert from_dict(Renamed, {"old": 3}) == from_dict(Renamed, {"new": 3})
    with pytest.raises(ConfigError, match="'old' is the former name of 'new'"):
        from_dict(Renamed, {"old": 3, "new": 3})
