"""Single subtasks in physics, counted; the labels themselves play."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.evaluate import counts, play_skills
from predimem.core.types import ActionChunk, Observation
from predimem.jobs.pool import WorkerError

CONFIG = ActorDataConfig(
    tasks=("18",), skills=("Move",), image_px=32, chunk_steps=8, execute_steps=4, chain_share=0.0, noise=0.0, episodes=1
)


@pytest.mark.slow
def test_attempts_are_counted_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "skills.jsonl"
    attempts = play_skills(CONFIG, 900_000, out, progress=False)
    assert counts(attempts) == {"pick": (1, 1)}
    before = out.read_text()
    assert play_skills(CONFIG, 900_000, out, progress=False) == attempts  # played no second time
    assert out.read_text() == before
    with pytest.raises(ValueError, match="holds attempts with actor 'labels' instead of 'other': give another --out"):
        play_skills(CONFIG, 900_000, out, actor="other", progress=False)
    with pytest.raises(ValueError, match="holds attempts with execute_steps 4 instead of 8: give another --out"):
        play_skills(replace(CONFIG, execute_steps=8), 900_000, out, progress=False)


@pytest.mark.slow
def test_the_policy_of_a_config_for_corrections_does_not_act(tmp_path: Path) -> None:
    config = replace(CONFIG, sampling="rollouts", policy="arena-actor", expert_share=0.2)
    attempts = play_skills(config, 900_000, tmp_path / "skills.jsonl", progress=False)
    assert attempts == play_skills(CONFIG, 900_000, tmp_path / "labels.jsonl", progress=False)


@pytest.mark.slow
def test_a_half_written_line_is_played_again(tmp_path: Path) -> None:
    out = tmp_path / "skills.jsonl"
    attempts = play_skills(CONFIG, 900_000, out, progress=False)
    out.write_text(out.read_text()[:-20])
    assert play_skills(CONFIG, 900_000, out, progress=False) == attempts


def test_training_seeds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="skills: seeds 20000"):
        play_skills(CONFIG, 20_000, tmp_path / "skills.jsonl")


class FaultyPolicy:
    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        raise ZeroDivisionError("no chunk")


@pytest.mark.slow
def test_a_crash_is_no_failure_of_the_actor(tmp_path: Path) -> None:
    out = tmp_path / "skills.jsonl"
    with pytest.raises(WorkerError, match=r"seed 900000 ended in an error, .* ZeroDivisionError: no chunk"):
        play_skills(CONFIG, 900_000, out, FaultyPolicy, "faulty", progress=False)
    assert len(out.read_text().splitlines()) == 1  # what is played, and no roll-out


def deadly_policy() -> FaultyPolicy:
    os._exit(7)


@pytest.mark.slow
def test_workers_that_die_are_told_of_with_the_place_to_look(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"a worker died \(exit code 7\).*workers\.log may say why"):
        play_skills(CONFIG, 900_000, tmp_path / "skills.jsonl", deadly_policy, "deadly", progress=False)
