"""One small data set from the command, as a user makes it."""

import json
from pathlib import Path

import numpy as np
import pytest

from datagen.demos.config import DecompositionConfig, GenerationConfig
from datagen.demos.worker import ArenaWorker
from datagen.generation import run_generation
from datagen.keyframes import extract_keyframes
from datagen.report import summary
from predimem.core.config import ConfigError, load_config
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.envs.arena.tasks import task_of
from predimem.jobs.tasks import Outcome

ROOT = Path(__file__).parents[3]


def test_the_shipped_recipe_is_the_default() -> None:
    assert load_config(GenerationConfig, ROOT / "configs/datagen.yaml") == GenerationConfig()


@pytest.mark.parametrize(
    "fields, says",
    [
        ({"first_seed": 900_000}, "seed 900000 is not a training seed"),
        ({"first_seed": 99_999, "episodes": 2}, "seed 100000 is not a training seed"),
        ({"episodes": 0}, "episodes must be >= 1"),
        ({"image_every": 0}, "image_every must be >= 1"),
        ({"tasks": ("4", "4")}, "each task may be listed once"),
    ],
)
def test_what_cannot_be_made_is_refused(fields: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        GenerationConfig(**fields)


def test_a_model_is_needed_where_a_model_shall_decompose() -> None:
    with pytest.raises(ConfigError, match="by: vlm"):
        DecompositionConfig(by="vlm")


def test_an_unknown_task_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown arena task '99'"):
        run_generation(GenerationConfig(out=str(tmp_path / "data"), tasks=("99",)), ArenaWorker)
    assert not (tmp_path / "data").exists()


def test_a_task_is_not_made_twice_under_two_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="each task may be named once"):
        run_generation(GenerationConfig(out=str(tmp_path / "data"), tasks=("6", task_of(6).name)), ArenaWorker)


def test_an_episode_is_recorded_annotated_and_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = GenerationConfig(out=str(tmp_path), tasks=("6",), episodes=1, image_px=32)
    (outcome,) = run_generation(config, ArenaWorker, progress=False)
    assert outcome.kept, outcome.cause
    assert set(outcome.report["stage_seconds"]) >= {"reset", "look", "images", "physics", "writing", "skills"}

    task = task_of(6)
    episode = load_episode(episode_path(tmp_path, task.name, 1000))
    assert (episode.benchmark, episode.seed, episode.success, episode.control_hz) == ("arena", 1000, True, 20.0)
    assert len(episode) == outcome.steps and episode.actions.shape[1] == 7 and episode.state.shape[1] == 17
    assert {name: f.shape for name, f in episode.images.items()} == {
        "agentview_rgb": (outcome.steps, 32, 32, 3),
        "eye_in_hand_rgb": (outcome.steps, 32, 32, 3),
    }
    assert episode.image_steps.tolist() == [t % 2 == 0 for t in range(outcome.steps)]

    labels = [subtask.label for subtask in task.variants[0].subtasks]
    assert [span.label for span in episode.subtasks] == labels
    assert episode.subtasks[0].start == 0 and episode.subtasks[-1].end == len(episode)
    assert episode.metadata["spans_memory"] == [subtask.memory or "" for subtask in task.variants[0].subtasks]
    assert episode.keyframes == extract_keyframes(episode.state[:, :3], episode.state[:, 9], 20.0)
    assert len(episode.keyframes) >= len(labels)
    assert np.abs(episode.actions).max() <= 1.0 and np.ptp(episode.images["agentview_rgb"][0]) > 50

    line = json.loads((tmp_path / "journal.jsonl").read_text())
    assert line["kept"] and line["report"]["retries"] == {}
    assert run_generation(config, ArenaWorker, progress=False) == [outcome]  # nothing is played twice


def test_the_summary_counts_causes_and_stages() -> None:
    outcomes = [
        Outcome("A", 1, True, steps=10, report={"stage_seconds": {"look": 1.0, "images": 3.0}}),
        Outcome("A", 2, False, "out of time", steps=5),
        Outcome("A", 3, False, "out of time", steps=5),
    ]
    text = summary(outcomes, "there")
    assert "1 of 3 episodes kept in there (10 control steps)" in text
    assert "2  out of time" in text and "images 75%, look 25%" in text
