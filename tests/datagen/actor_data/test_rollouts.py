"""Short episodes in physics, by the expert."""

import dataclasses
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from actor.training.config import DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.worker import ActorDataWorker
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.tasks import task_of
from predimem.jobs.tasks import Job
from predimem.pipelines.actor_rounds import rollouts_of

CONFIG = ActorDataConfig(
    sampling="rollouts", skills=("Move",), image_px=32, chunk_steps=8, execute_steps=4, chain_share=0.0, noise=0.0
)


def test_it_goes_on_for_a_while_after_a_success() -> None:
    with closing(ActorDataWorker(CONFIG)) as worker:
        rollouts = [
            worker.rollout(Job(task_of(18).name, seed), np.random.default_rng(seed)) for seed in (20_000, 20_001)
        ]
    lasted = []
    for rollout in rollouts:
        (attempt,) = rollout.attempts
        assert attempt.done and {frame.subtask for frame in rollout.frames} == {attempt.subtask.label}
        lasted.append(4 * len(rollout.frames) - attempt.steps)
    assert all(0 <= steps < CONFIG.after_steps + 4 for steps in lasted) and max(lasted) > 4


def test_what_is_saved_says_the_instruction(tmp_path: Path) -> None:
    config = ActorDataConfig(out=str(tmp_path), image_px=32, frames=1)
    task = task_of(4)
    with closing(ActorDataWorker(config)) as worker:
        worker.play(Job(task.name, 20_000))
    told = load_episode(episode_path(tmp_path, task.name, 20_000)).instruction
    assert told == task.variants[draw_layout(task, 20_000).variant].instruction


def test_rounds_of_dagger_roll_out(tmp_path: Path) -> None:
    """The config says `frames`; a round of DAgger plays all the same."""
    data = ActorDataConfig(skills=("Move",), image_px=32, chunk_steps=8, execute_steps=4)
    config = rollouts_of(data, DaggerConfig(rounds=1, expert_episodes=2, episodes=1), 0, tmp_path)
    assert (config.first_seed, config.episodes) == (60_000, 2)
    task = task_of(18).name
    with closing(ActorDataWorker(config)) as worker:
        worker.play(Job(task, config.first_seed))
    episode = load_episode(episode_path(tmp_path, task, config.first_seed))
    assert episode.metadata["attempts"] and episode.control_hz == 5.0


def test_how_long_is_not_negative() -> None:
    with pytest.raises(ConfigError, match="after_steps must be >= 0, got -1"):
        ActorDataConfig(after_steps=-1)


def test_hard_states_begin_with_hard_skills() -> None:
    plain = ActorDataConfig(image_px=32, frames=6, chunk_steps=8)
    hard = dataclasses.replace(plain, hard_share=1.0, hard_skills=("Move",))
    job = Job(task_of(18).name, 20_000)
    with closing(ActorDataWorker(plain)) as worker:
        some = {frame.subtask.split()[0] for frame in worker.frames(job, np.random.default_rng(0))}
    with closing(ActorDataWorker(hard)) as worker:
        all_hard = {frame.subtask.split()[0] for frame in worker.frames(job, np.random.default_rng(0))}
    assert "place" in some and "place" not in all_hard


def test_shares_are_shares() -> None:
    with pytest.raises(ConfigError, match=r"hard_share must be in \[0, 1\], got 2"):
        ActorDataConfig(hard_share=2)
