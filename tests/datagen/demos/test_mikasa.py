"""Collection end to end on a point: resuming, Ctrl-C, discarding, seeds, and what is stored."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from datagen.command import make_worker
from datagen.demos.controllers import DriverConfig, PerturbationConfig
from datagen.demos.mikasa import CollectConfig, ExpertWorker, TaskSeeds, summarise, write_summary
from datagen.demos.record import evidence_keyframes, record_driven_episode, record_episode, spans
from datagen.demos.thrift import ThriftConfig
from datagen.generation import run_generation
from datagen.keyframes import KeyframeConfig
from predimem.core.config import ConfigError, load_config
from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode
from predimem.core.scene_facts import SceneFacts
from predimem.core.types import ActionChunk, Observation
from predimem.envs.mikasa.families.family import State
from predimem.envs.mikasa.families.registry import FAMILIES
from predimem.jobs.runner import BackendConfig
from predimem.jobs.tasks import Job
from tests.envs.mikasa.point_environment import PointEnvironment, PointFamily

ROOT = Path(__file__).parents[3]
CLEAN = PerturbationConfig(noise_share=0.0, detour_share=0.0)
NOISY = PerturbationConfig(noise_share=1.0, detour_share=0.0)
MOTION = KeyframeConfig()
POINT_WORKER = partial(ExpertWorker, make_environment=PointEnvironment)
DETOUR = PerturbationConfig(noise_share=0.0, detour_share=1.0)


def record(perturbation: PerturbationConfig, keyframes: KeyframeConfig | None = MOTION) -> Episode:
    return record_episode(PointEnvironment("point"), "point", 1001, perturbation, keyframes)


def test_a_clean_episode() -> None:
    episode = record(CLEAN)
    assert episode.success and episode.goal == "touch the blue cube" and len(episode) == 16
    assert [(s.start, s.end, s.label) for s in episode.subtasks] == [
        (0, 2, "watch"),
        (2, 4, "wait"),
        (4, 16, "touch the blue cube"),
    ]
    assert episode.keyframes[0] == 0 and len(episode.keyframes) == 2  # at rest, and at rest over the cube
    assert episode.alternatives is not None
    now = episode.alternatives.chunks[:, 4, 0]  # "touch the blue cube" is what it did
    np.testing.assert_allclose(episode.actions[4:], now[4:], atol=1e-6)
    np.testing.assert_array_equal(episode.images["base_camera"][:, 0, 0, 0], range(16))


def test_perturbed_episodes_keep_the_experts_labels() -> None:
    clean, noisy, detour = record(CLEAN), record(NOISY), record(DETOUR)
    assert clean.subtasks == noisy.subtasks == detour.subtasks
    assert not np.allclose(clean.actions[4:], noisy.actions[4:], atol=0.05)
    assert not np.allclose(clean.actions[4], detour.actions[4], atol=0.05)
    assert detour.alternatives is not None and clean.alternatives is not None
    np.testing.assert_array_equal(detour.alternatives.chunks[4], clean.alternatives.chunks[4])
    assert noisy.metadata["noise_std"] == 0.35 and detour.metadata["detour_steps"] == 5


def test_noise_that_holds_takes_the_arm_beside_its_goal() -> None:
    held = record(replace(NOISY, noise_std=0.2, noise_steps=8, noise_hold_steps=4))
    assert held.alternatives is not None
    off = (held.actions - held.alternatives.chunks[:, 4, 0])[:, :3]  # from "touch the blue cube"
    off[np.abs(held.actions[:, :3]) == 1] = np.nan  # clipped
    assert not off[12:].any()
    first, second = off[4:8], off[8:12]
    spread = [np.nanmax(part, 0) - np.nanmin(part, 0) for part in (first, second)]
    assert np.nanmax(spread) < 1e-6 < np.nanmax(np.abs(np.nanmean(first, 0) - np.nanmean(second, 0)))
    with pytest.raises(ConfigError, match="noise_steps and noise_hold_steps must be >= 1, got 0 and 1"):
        PerturbationConfig(noise_steps=0)


class Eastwards:
    """A `Policy` that moves the arm along x and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, str]] = []  # the step, the step of the image, the subtask

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        self.asked.append((observation.step, int(observation.images["base_camera"][0, 0, 0]), subtask))
        actions = np.zeros((4, 7), np.float32)
        actions[:, 0] = 0.1
        return ActionChunk(observation.step, actions, subtask)


def test_an_actor_drives_and_the_expert_labels_and_takes_over() -> None:
    policy, driver = Eastwards(), DriverConfig("weights", execute_steps=4, subtask_steps=6)
    environment = PointEnvironment("point")
    thrift = ThriftConfig(every=2, around_steps=0)
    episode = record_driven_episode(environment, "point", 1001, policy, driver, None, thrift)
    seen, clean = [(step, step) for step in range(0, len(episode), 4)], record(CLEAN)
    assert [(step, image) for step, image, _ in policy.asked] == seen and environment.look_steps is None
    assert [subtask for *_, subtask in policy.asked] == ["watch", "touch the blue cube"] + ["touch the blue cube"] * (
        len(seen) - 2
    )
    assert episode.alternatives is not None and clean.alternatives is not None
    own, labels = episode.actions, episode.alternatives.chunks[:, 4, 0]
    np.testing.assert_allclose(own[4:10], [[0.1, 0, 0, 0, 0, 0, 0]] * 6)
    np.testing.assert_array_equal(episode.alternatives.chunks[4], clean.alternatives.chunks[4])
    np.testing.assert_allclose(own[10:], labels[10:], atol=1e-6)  # the expert, to the end
    assert not np.allclose(own[4:10], labels[4:10], atol=0.05)
    assert episode.alternatives.valid[4, 4] and not episode.alternatives.valid[5].any()  # no image of its own
    assert episode.metadata["driver_steps"] == 6


def test_a_driver_hears_late_what_is_due() -> None:
    heard = set()
    for seed in range(1001, 1013):
        policy, environment = Eastwards(), PointEnvironment("point")
        driver = DriverConfig("weights", execute_steps=1, subtask_steps=40, delay_steps=3)
        episode = record_driven_episode(environment, "point", seed, policy, driver, None, ThriftConfig(1, 0))
        told = [step for step, _, subtask in policy.asked if subtask.startswith("touch")]
        assert episode.subtask_at(3) == "wait" and episode.subtask_at(4).startswith("touch")  # labels are not late
        assert told == list(range(told[0], len(episode)))
        heard.add(told[0])
    assert heard == {4, 5, 6, 7}
    with pytest.raises(ConfigError, match="delay_steps must be >= 0, got -1"):
        DriverConfig("weights", delay_steps=-1)


class Numbered:
    """A `Policy` whose actions along x say from which look they are, and how old it is."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        actions = np.zeros((4, 7), np.float32)
        actions[:, 0] = observation.step / 100 + np.arange(4) / 1000
        return ActionChunk(observation.step, actions, subtask)


def test_the_chunk_of_a_driver_comes_late() -> None:
    driver = DriverConfig("weights", execute_steps=2, subtask_steps=40, latency_steps=1)
    episode = record_driven_episode(
        PointEnvironment("point"), "point", 1001, Numbered(), driver, None, ThriftConfig(2, 0)
    )
    assert episode.actions[0, 0] == record(CLEAN).actions[0, 0]  # the expert, until the first chunk comes
    looks = [(step - 1) // 2 * 2 for step in range(1, len(episode))]
    expected = [look / 100 + (step - look) / 1000 for step, look in enumerate(looks, 1)]
    np.testing.assert_allclose(episode.actions[1:, 0], expected, atol=1e-6)
    assert episode.metadata["latency_steps"] == 1
    with pytest.raises(ConfigError, match="latency_steps must be >= 0, got -1"):
        DriverConfig("weights", latency_steps=-1)


class BriefCue(PointFamily):
    """What has to be remembered is seen at steps 1 and 6 alone, the second time after the arm has moved."""

    def evidence(self, state: State) -> str:
        return {1: "first", 6: "second"}.get(state["step"], "")


class BriefCueEnvironment(PointEnvironment):
    family = BriefCue("Point", ("",), lambda base: base.target)


def test_what_a_driven_episode_has_to_remember_is_seen() -> None:
    """Also where the actor did not look."""
    driver, environment = DriverConfig("weights", execute_steps=4), BriefCueEnvironment("point")
    episode = record_driven_episode(environment, "point", 1001, Eastwards(), driver, None, ThriftConfig(4, 0))
    assert episode.keyframes == (1, 6) and environment.look_steps is None
    assert [int(episode.images["base_camera"][step][0, 0, 0]) for step in range(8)] == [0, 1, 1, 1, 4, 4, 6, 6]


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_the_shipped_actor_drives_in_the_simulator(tmp_path: Path) -> None:
    config = CollectConfig(
        out=str(tmp_path),
        tasks=(TaskSeeds("RememberColor3-VLA-v0", 2, 1003),),
        driver=DriverConfig("actor", execute_steps=4, latency_steps=1),
        images=ThriftConfig(every=4, around_steps=0),
        keyframes=None,
    )
    outcomes = run_generation(config, make_worker, progress=False)
    for outcome in outcomes:
        episode = load_episode(episode_path(tmp_path, outcome.task, outcome.seed))
        touch = episode.subtasks[-1]
        assert outcome.kept and touch.label.startswith("touch the ") and touch.label == episode.goal
        assert episode.alternatives is not None and episode.metadata["driver_steps"] == 40
        labels = episode.alternatives.chunks[:, episode.alternatives.subtasks.index(touch.label), 0]
        valid = np.flatnonzero(episode.alternatives.valid.any(1) & (np.arange(len(episode)) >= touch.start))
        assert len(valid) and not np.allclose(episode.actions[valid], labels[valid], atol=1e-3), "the actor moved"


def test_an_actor_looks_at_fresh_images_alone() -> None:
    with pytest.raises(ConfigError, match=r"looks every 3 steps .* every 2 .*multiple"):
        CollectConfig(driver=DriverConfig("weights", execute_steps=3), images=ThriftConfig(every=2))
    with pytest.raises(ConfigError, match="subtask_steps must be >= 1, got 0"):
        DriverConfig("weights", subtask_steps=0)


def test_keyframes_may_be_what_has_to_be_remembered() -> None:
    assert record(CLEAN, keyframes=None).keyframes == (0,)
    assert evidence_keyframes(["", "red", "red", "", "blue", "red", "blue again"]) == (1, 4, 6)


def test_facts_say_what_each_image_shows() -> None:
    facts = SceneFacts.of_metadata(record(CLEAN).metadata, "the episode")
    assert facts.objects == ("blue cube", "lime cube", "red cube") and len(facts) == 16
    assert np.isnan(facts.pixels[:4]).all()  # the table is empty
    np.testing.assert_allclose(facts.pixels[4, :, 0, 0], [0.704, 0.5, 0.296], atol=0.001)
    np.testing.assert_allclose(facts.openings, 1.0)


def test_the_seed_determines_an_episode() -> None:
    np.testing.assert_array_equal(record(NOISY).actions, record(NOISY).actions)


def test_collect_discards_failures_resumes_and_counts(tmp_path: Path) -> None:
    tasks = (TaskSeeds("point", 3), TaskSeeds("deaf", 2, first_seed=2000))
    config = CollectConfig(out=str(tmp_path), tasks=tasks, perturbation=CLEAN)
    outcomes = run_generation(config, POINT_WORKER, BackendConfig(workers=2), progress=False)
    write_summary(config, outcomes)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["tasks"]["point"]["episodes"] == 3 and summary["tasks"]["point"]["yield"] == 1.0
    assert summary["tasks"]["point"]["lengths"] == {"16": 3}
    assert summary["tasks"]["deaf"]["discarded"] == {"expert failed": 2}
    assert len(list_episodes(tmp_path)) == 3
    kept = {path: path.stat().st_mtime_ns for path in list_episodes(tmp_path)}
    episode_path(tmp_path, "point", 1001).unlink()
    run_generation(config, POINT_WORKER, progress=False)
    new = {path: path.stat().st_mtime_ns for path in list_episodes(tmp_path)}
    assert {path.name for path in new if new[path] != kept[path]} == {"seed0000001001.h5"}


def test_a_perturbed_failure_is_kept(tmp_path: Path) -> None:
    config = CollectConfig(out=str(tmp_path), perturbation=NOISY)
    assert ExpertWorker(config, PointEnvironment).play(Job("deaf", 1000)).kept
    assert not load_episode(episode_path(tmp_path, "deaf", 1000)).success


def test_ctrl_c_leaves_whole_episodes_and_the_next_run_goes_on(tmp_path: Path) -> None:
    script = f"""
from tests.datagen.demos.test_mikasa import *
if __name__ == "__main__":
    tasks = (TaskSeeds("point", 5000),)
    run_generation(CollectConfig(out={str(tmp_path)!r}, tasks=tasks), POINT_WORKER)
"""
    path = tmp_path / "run.py"
    path.write_text(script)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, path], env=environ, stderr=subprocess.PIPE)
    deadline = time.time() + 60
    while len(list(tmp_path.rglob("seed*.h5"))) < 3 and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in stderr and process.returncode != 0
    stored = list_episodes(tmp_path)
    assert 3 <= len(stored) < 5000
    for episode in stored:
        load_episode(episode)  # verifies the checksum
    config = CollectConfig(out=str(tmp_path), tasks=(TaskSeeds("point", 4),))
    outcomes = run_generation(config, POINT_WORKER, progress=False)
    assert summarise(config, outcomes)["tasks"]["point"]["episodes"] == 4


@pytest.mark.parametrize(("first", "count"), [(900_000, 1), (99_990, 20), (999, 5), (4_242_424_242, 1)])
def test_evaluation_seeds_are_refused(first: int, count: int) -> None:
    with pytest.raises(ValueError, match="is not a training seed"):
        TaskSeeds("point", count, first_seed=first)


def test_the_shipped_config_is_the_default() -> None:
    assert load_config(CollectConfig, ROOT / "configs/datagen_mikasa.yaml") == CollectConfig()


def test_another_config_has_every_family() -> None:
    config = load_config(CollectConfig, ROOT / "configs/datagen_mikasa_families.yaml")
    tasks = {spec.task for spec in config.tasks}
    assert config.keyframes is None
    for family in FAMILIES:
        assert tasks & set(family.tasks), f"no demonstrations of {family.name}"
        tasks -= set(family.tasks)
    assert not tasks, "these are of no family"


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("tasks:\n  - {task: point, episodes: 1, seeds: 3}\n")
    with pytest.raises(ConfigError, match="unknown key 'seeds'"):
        load_config(CollectConfig, path)


def test_spans() -> None:
    assert [(s.start, s.end, s.label) for s in spans(["a", "a", "b", "a"])] == [
        (0, 2, "a"),
        (2, 3, "b"),
        (3, 4, "a"),
    ]
