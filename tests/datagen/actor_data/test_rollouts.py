"""Short episodes in physics, by the expert."""

import dataclasses
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from actor.training.config import DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.own_chunks import OwnChunks, load_actors
from datagen.actor_data.rollouts import late
from datagen.actor_data.worker import ActorDataWorker
from predimem.core.config import ConfigError
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.types import Observation
from predimem.core.weight_files import weights_folder
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.tasks import task_of
from predimem.jobs.tasks import Job
from predimem.pipelines.actor_rounds import rollouts_of

CONFIG = ActorDataConfig(
    sampling="rollouts", skills=("Move",), image_px=32, chunk_steps=8, execute_steps=4, chain_share=0.0, noise=0.0
)


@pytest.mark.slow
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
    """The config says `frames`; a round of DAgger plays all the same, and with nobody else's actor."""
    corrections = ActorDataConfig(sampling="rollouts", policy="another", expert_share=0.2, expert_labels=("pick *",))
    own = rollouts_of(corrections, DaggerConfig(rounds=1, episodes=1), 1, tmp_path)
    assert (own.policy, own.expert_share, own.expert_labels) == (None, 0.0, ("*",))
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


@pytest.mark.slow
def test_an_actor_labels_what_the_expert_does_not() -> None:
    """Its chunks are those of the flow, neither cut nor rounded to open and closed."""
    actor = str(weights_folder(None, "arena-actor"))
    config = dataclasses.replace(CONFIG, policy=actor, expert_labels=("place *",), image_px=128)
    job = Job(task_of(18).name, 20_000)
    with closing(ActorDataWorker(config)) as worker:
        rollout = worker.rollout(job, np.random.default_rng(0))
    frames = rollout.frames
    assert rollout.attempts[0].done
    with closing(ActorDataWorker(dataclasses.replace(config, expert_labels=("*",)))) as worker:
        expert_frames = worker.rollout(job, np.random.default_rng(0)).frames
    for frame, other in zip(frames, expert_frames, strict=True):
        assert np.array_equal(frame.state, other.state)  # labels change nothing that is played
        for label, chunk in frame.chunks.items():
            experts = frame.motions[label].startswith("place ")
            assert np.allclose(chunk, other.chunks[label], atol=0.01) == experts
            assert (set(np.unique(chunk[:, 6])) <= {-1.0, 1.0}) == experts


@pytest.mark.slow
def test_an_actor_labels_how_it_picks_up_what_is_to_be_placed() -> None:
    """In task 4 the butter lies on the table when it is due in its drawer."""
    config = dataclasses.replace(
        CONFIG, skills=("Place",), policy=str(weights_folder(None, "arena-actor")), image_px=128, expert_share=1.0
    )
    frames = []
    for labels in ("*",), ("place *",), ("pick *",):
        with closing(ActorDataWorker(dataclasses.replace(config, expert_labels=labels))) as worker:
            frames.append(worker.rollout(Job(task_of(4).name, 20_000), np.random.default_rng(5)).frames[0])
    due = frames[0].subtask
    assert due.startswith("place butter") and frames[0].motions[due] == "pick butter"
    expert, own, picked = (frame.chunks[due] for frame in frames)
    assert np.array_equal(picked, expert) and not np.allclose(own, expert, atol=0.01)


def test_an_actor_labels_independent_states() -> None:
    """Of the same states, for it draws nothing."""
    config = ActorDataConfig(
        image_px=128, frames=3, chunk_steps=10, skills=("Move",), policy=str(weights_folder(None, "arena-actor"))
    )
    job, frames = Job(task_of(18).name, 20_000), []
    for labels in ("place *",), ("pick *", "free *", "place *"):
        with closing(ActorDataWorker(dataclasses.replace(config, expert_labels=labels))) as worker:
            frames.append(worker.frames(job, np.random.default_rng(0)))
    for own, expert in zip(*frames, strict=True):
        assert np.array_equal(own.state, expert.state) and own.subtask == expert.subtask
        chunk, experts = own.chunks[own.subtask], expert.chunks[own.subtask]
        assert chunk.shape == experts.shape == (10, 7)
        assert set(np.unique(experts[:, 6])) <= {-1.0, 1.0} and not set(np.unique(chunk[:, 6])) <= {-1.0, 1.0}


@pytest.mark.parametrize(("labels", "images"), [("place *", 0), ("pick *", 2)])
def test_what_an_actor_does_in_vain_is_no_label(tmp_path: Path, labels: str, images: int) -> None:
    """Two looks are too few to pick anything up."""
    actor = str(weights_folder(None, "arena-actor"))
    config = dataclasses.replace(CONFIG, out=str(tmp_path), policy=actor, image_px=128, subtask_steps=8)
    with closing(ActorDataWorker(dataclasses.replace(config, expert_labels=(labels,)))) as worker:
        outcome = worker.play(Job(task_of(18).name, 20_000))
    (attempt,) = outcome.report["attempts"]
    assert attempt["done"] is False and (outcome.steps, outcome.kept) == (images, images > 0)
    assert outcome.cause == ("" if images else "the actor failed at what it labels itself")


def test_own_chunks_are_as_long_as_labels() -> None:
    _, actor = load_actors(str(weights_folder(None, "arena-actor")))
    size = actor.config.camera_shape
    images = {name: np.zeros((*size, 3), np.uint8) for name in actor.config.cameras}
    state = np.float32([0.1, 0, 0.3, 1, 0, 0, 0, -1, 0, 0.08, *np.zeros(7)])
    longer = OwnChunks(actor, (), 16)(Observation(0, images, state), {"pick cookies": "pick cookies"})["pick cookies"]
    assert longer.shape == (16, 7) and np.array_equal(longer[9:], np.repeat(longer[9:10], 7, axis=0))
    assert (longer[:10].std(axis=0) > 0).all()
    shared, due = OwnChunks(actor, ("place *",), 16), "place cookies: plate"
    assert shared(Observation(0, images, state), {due: due}) == {}
    assert shared(Observation(0, images, state), {due: "pick cookies"}).keys() == {due}


def test_the_expert_plays_its_share() -> None:
    """With all of the looks it plays whatever actor there is."""
    actor = str(weights_folder(None, "arena-actor"))
    played = dataclasses.replace(CONFIG, policy=actor, expert_share=1.0, image_px=128)
    job = Job(task_of(18).name, 20_000)
    with closing(ActorDataWorker(played)) as worker:
        (attempt,) = worker.rollout(job, np.random.default_rng(0)).attempts
    assert attempt.done


def test_a_late_chunk_follows_what_is_queued() -> None:
    new, queued = np.full((8, 7), 1.0, np.float32), np.full((4, 7), 2.0, np.float32)
    assert late(new, queued, 0)[:, 0].tolist() == [1] * 8
    assert late(new, queued, 2)[:, 0].tolist() == [2, 2] + [1] * 6
    assert late(new, queued[:1], 3)[:, 0].tolist() == [2] + [1] * 7  # the chunk before was cut
    assert late(new, np.empty((0, 0), np.float32), 3)[:, 0].tolist() == [1] * 8  # there was none


def test_an_actor_plays_as_late_as_in_an_evaluation() -> None:
    """The second chunk is late, so that what is seen from the third look on differs."""
    actor = str(weights_folder(None, "arena-actor"))
    config = dataclasses.replace(CONFIG, policy=actor, image_px=128, subtask_steps=16)
    job, states = Job(task_of(18).name, 20_000), []
    for steps in (0, 2):
        with closing(ActorDataWorker(dataclasses.replace(config, latency_steps=steps))) as worker:
            states.append([frame.state for frame in worker.rollout(job, np.random.default_rng(0)).frames[:3]])
    in_time, after = states
    assert np.array_equal(in_time[:2], after[:2]) and not np.allclose(in_time[2], after[2])


def test_who_labels_is_said_for_an_actor_alone() -> None:
    with pytest.raises(ConfigError, match="name its weights in `policy`"):
        ActorDataConfig(sampling="rollouts", expert_share=0.2)
    with pytest.raises(ConfigError, match="nothing is played with `sampling: frames`"):
        ActorDataConfig(policy="weights", expert_share=0.2)


def test_the_actor_is_found_from_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    own, shipped = (
        ActorDataConfig(sampling="rollouts", policy=name).for_workers() for name in ("weights", "arena-actor")
    )
    monkeypatch.chdir("/")
    assert own.policy == str(tmp_path / "weights")
    assert shipped.policy == str(weights_folder(None, "arena-actor").resolve())


def test_shares_are_shares() -> None:
    with pytest.raises(ConfigError, match=r"hard_share must be in \[0, 1\], got 2"):
        ActorDataConfig(hard_share=2)
