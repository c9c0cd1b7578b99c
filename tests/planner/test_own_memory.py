"""A memory of one's own in training, in replays and in prompts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from memory_bank import MemoryConfig
from planner.checkpoint import PlannerSpec, changed_spec, read_spec, untrained_prompt, write_spec
from planner.dataset import DatasetConfig, DatasetError
from planner.prompt import PromptConfig, render_prompt
from planner.replay import Replay
from planner.training_data import write_training_data
from predimem.core.config import ConfigError
from predimem.core.episodes import Episode
from tests.memory_bank import own_memories
from tests.planner.builders import COLOURS, make_episode

FILE = Path(own_memories.__file__)
PROMPT = PromptConfig(recent_window=2)


def own(name: str, **options: object) -> MemoryConfig:
    return MemoryConfig(recent_window=2, implementation=f"{FILE}:{name}", options=options)


def made() -> list[Episode]:
    return [make_episode(1000 + i, colour, length=50, cue=2 + i) for i, colour in enumerate(COLOURS)]


def data(tmp_path: Path, memory: MemoryConfig, **dataset: object) -> list[dict]:
    config = DatasetConfig(samples=40, validation_fraction=0.0, **dataset)  # type: ignore[arg-type]
    path = write_training_data(tmp_path, made(), PROMPT, memory, config, seed=0)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_training_shows_what_the_memory_would_have_held() -> None:
    episode = make_episode(1000, "red", length=50)
    replay = Replay(episode, own("Sound"), nominated=[3])
    assert [f.step for f in replay[45].keyframes] == [0, 20, 40] and [f.step for f in replay[45].recent] == [44, 45]
    image = replay[45].keyframes[1].images["hand_camera"]
    np.testing.assert_array_equal(image, episode.images["hand_camera"][20])


def test_an_exchanged_memory_is_what_it_held_of_the_other_episode(tmp_path: Path) -> None:
    records = data(tmp_path, own("Sound"), counterfactual="progress", counterfactual_probability=1.0)
    exchanged = [r for r in records if r["metadata"]["counterfactual"]]
    assert exchanged
    seen = {
        image.tobytes(): (episode.seed, step)
        for episode in made()
        for images in episode.images.values()
        for step, image in enumerate(np.asarray(images))
    }
    for record in exchanged:
        shown = record["images"][: -2 * record["metadata"]["num_context_frames"]]
        keyframes = [seen[np.asarray(Image.open(name)).tobytes()] for name in shown]
        assert {step % 20 for _, step in keyframes} == {0}
        assert record["metadata"]["seed"] not in {seed for seed, _ in keyframes}


def test_images_that_a_memory_makes_are_written_as_they_are(tmp_path: Path) -> None:
    records = data(tmp_path, own("Darkens"), counterfactual="progress")
    shown = next(r for r in records if r["metadata"]["history_keyframe_count"])["images"][0]
    assert np.asarray(Image.open(shown)).max() < 128
    with pytest.raises(DatasetError, match="counterfactual: progress"):
        data(
            tmp_path / "cue", own("Darkens"), counterfactual="cue", cue_subtask="watch", counterfactual_probability=1.0
        )


def test_a_spec_remembers_its_memory(tmp_path: Path) -> None:
    spec = PlannerSpec(PROMPT, own("Sound", most=2))
    write_spec(tmp_path, spec)
    assert read_spec(tmp_path) == spec


def test_a_prompt_follows_the_memory_that_an_agent_changes() -> None:
    trained = PlannerSpec(PROMPT, own("Sound", most=2))
    assert changed_spec(trained, {}, {}) == trained and untrained_prompt(trained, trained) == ""
    text = changed_spec(trained, {"keyframes": False, "past_subtasks": True}, {"timestamps": "none"})
    assert (text.prompt.keyframes, text.prompt.past_subtasks) == (False, True)
    assert 'timestamps (was "absolute", is "none")' in untrained_prompt(trained, text)
    snapshot = Replay(make_episode(1000, "red"), text.memory, [])[8]
    content = render_prompt(snapshot, text.prompt).messages[1]["content"]
    assert "Subtasks so far" in content and "keyframes, oldest" not in content and "\n<image><image>\n" in content
    other = changed_spec(trained, {"implementation": f"{FILE}:Writeable"}, {})
    assert other.memory.options == {}  # those of the trained class
    for memory, prompt, said in (
        ({"keyframes": False}, {"keyframes": True}, "they must be equal"),
        ({}, {"cameras": ["base_camera", "wrist"]}, "knows no 'wrist'"),
        ({}, {"image_patch_size": 14}, "cannot be changed"),
        ({}, {"crop": {"base_camera": [0, 0, 0.5, 0.5]}}, "cannot be changed"),
        ({"window": 3}, {}, "unknown key 'window'"),
    ):
        with pytest.raises(ConfigError, match=said):
            changed_spec(trained, memory, prompt)
