"""The JSONL as ms-swift's own loader reads it, with images as files and inside the lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.dataset import DatasetConfig
from planner.parsing import parse_answer
from planner.training_data import write_training_data
from tests.planner.builders import MEMORY, PROMPT, make_episode

PLAIN = DatasetConfig(
    samples=12, counterfactual_probability=0.0, late_probability=0.0, extra_probability=0.0, validation_fraction=0.25
)


@pytest.mark.parametrize("image_format", ["png", "base64"])
def test_ms_swift_loads_every_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image_format: str) -> None:
    from swift.dataset import load_dataset
    from swift.template.vision_utils import load_image

    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    episodes = {seed: make_episode(seed, colour) for seed, colour in enumerate(("red", "lime", "blue", "red"), 1000)}
    config = replace(PLAIN, image_format=image_format)
    path = write_training_data(tmp_path / "data", list(episodes.values()), PROMPT, MEMORY, config, seed=0)
    train, validation = load_dataset([str(path)], load_from_cache_file=False, remove_unused_columns=False, strict=True)
    assert len(train) == 12 and validation is None
    for row in train:
        meta, messages = row["metadata"], row["messages"]
        episode = episodes[meta["seed"]]
        assert meta["seed"] != 1003  # held out
        assert [message["role"] for message in messages] == ["system", "user", "assistant"]
        subtask, _ = parse_answer(messages[2]["content"], window=meta["num_context_frames"])
        assert subtask == episode.subtask_at(meta["step"])
        assert messages[1]["content"].count("<image>") == len(row["images"])
        images = [np.asarray(load_image(image["bytes"] or image["path"])) for image in row["images"]]
        for camera, image in zip(PROMPT.cameras, images[-2:], strict=True):
            np.testing.assert_array_equal(image, episode.images[camera][meta["step"]])
