"""Detectors from configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from datagen.grasp.antipodal import AntipodalDetector
from datagen.grasp.make import GraspConfig, make_detector
from predimem.core.config import ConfigError, load_config


def loaded(tmp_path: Path, text: str) -> GraspConfig:
    (tmp_path / "grasp.yaml").write_text(text)
    return load_config(GraspConfig, tmp_path / "grasp.yaml")


def test_from_a_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, "antipodal: {directions: 24, tilts_rad: [0.2], friction: 0.4}\nanygrasp: {dense: true}\n")
    assert (config.antipodal.directions, config.antipodal.tilts_rad, config.anygrasp.dense) == (24, (0.2,), True)
    assert isinstance(make_detector(config), AntipodalDetector)


def test_an_unknown_detector(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'antipodal', 'anygrasp'"):
        loaded(tmp_path, "detector: graspnet\n")
