"""Whole episodes from the command's own parts: stored, found again, the same for the same seed."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from datagen.dagger.config import DisturbanceConfig, OracleSpellConfig, PlannerDaggerConfig
from datagen.dagger.recorder import END_STEPS, with_ends
from datagen.dagger.worker import CALM, DaggerWorker
from datagen.generation import run_generation
from datagen.report import summary
from memory_bank import MemoryConfig
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.types import MemorySnapshot, Plan
from predimem.envs.arena.layout import draw_layout
from predimem.envs.arena.tasks import task_of
from predimem.jobs.tasks import Job, Outcome

TASK = task_of(10)
LABELS = [subtask.label for subtask in TASK.variants[draw_layout(TASK, 40_000).variant].subtasks]
CONFIG = PlannerDaggerConfig(tasks=("10",), episodes=1, image_px=16, image_every=10)


def play(config: PlannerDaggerConfig, planner: Any = None) -> Outcome:
    """One episode, in this process."""
    worker = DaggerWorker(config, planner)
    try:
        return worker.play(Job(TASK.name, config.first_seed))
    finally:
        worker.close()


@pytest.mark.slow
def test_a_disturbed_episode_is_labelled_with_what_should_have_been_said(tmp_path: Path) -> None:
    disturbances = DisturbanceConfig(undisturbed_share=0.0, late_share=1.0, late_s=(1.0, 1.0))
    config = replace(CONFIG, out=str(tmp_path / "a"), disturbances=disturbances)
    (outcome,) = run_generation(config, DaggerWorker, progress=False)
    path = episode_path(tmp_path / "a", TASK.name, 40_000)
    episode = load_episode(path)
    assert outcome.kept and outcome.steps == len(episode) and outcome.report["ended"] == "success"
    assert episode.success and [span.label for span in episode.subtasks] == LABELS
    assert episode.actions.shape[1] == 8 and episode.state.shape[1] == 17
    assert episode.image_steps.tolist() == [t % 10 == 0 for t in range(len(episode))]
    assert np.ptp(episode.images["agentview_rgb"][0]) > 50
    for span in episode.subtasks:
        assert any(span.end - END_STEPS <= step < span.end for step in episode.keyframes), "how it ended"

    spoken = episode.metadata["spoken"]
    assert spoken[:2] == [[0, ""], [4, LABELS[0]]], "asked at once, answered 4 steps later"
    assert all(step % 10 == 4 for step, _ in spoken[1:])
    said = {label: step for step, label in reversed(spoken)}
    for span in episode.subtasks[1:]:
        assert said[span.label] >= span.start, "late, and the label does not wait for it"
    assert {"late switch"} <= {event["kind"] for event in episode.metadata["events"]}

    play(replace(config, out=str(tmp_path / "b")))
    assert episode_checksum(episode_path(tmp_path / "b", TASK.name, 40_000)) == episode_checksum(path)
    before = path.stat().st_mtime_ns
    again = run_generation(config, DaggerWorker, progress=False)
    assert again == [outcome] and path.stat().st_mtime_ns == before, "nothing is made twice"
    assert "1 of 1 episodes" in summary(again, tmp_path) and "ended    1  success" in summary(again, tmp_path)


class PoursForever:
    """A planner that never counts, and nominates the frame that it was asked at."""

    spec = SimpleNamespace(memory=MemoryConfig(recent_window=2, recent_stride_steps=10))

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        assert snapshot.step % 10 == 0 and snapshot.recent[-1].images["agentview_rgb"].shape == (16, 16, 3)
        return Plan(snapshot.episode_id, snapshot.step, LABELS[2], (snapshot.step,))


class Sleeps(PoursForever):
    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, None, error="no answer")


@pytest.mark.parametrize("driver, ended", [("pours", "a pour that was not due"), ("sleeps", "no progress")])
def test_a_planner_drives_into_its_own_mistakes_and_the_labels_stay_right(
    tmp_path: Path, driver: str, ended: str
) -> None:
    config = replace(
        CONFIG,
        out=str(tmp_path),
        driver=driver,
        max_overtime_s=0.0,
        disturbances=DisturbanceConfig(undisturbed_share=1.0),
        oracle_spells=OracleSpellConfig(share=0.0, rescue_after_s=None),
    )
    outcome = play(config, PoursForever() if driver == "pours" else Sleeps())
    episode = load_episode(episode_path(tmp_path, TASK.name, 40_000))
    assert outcome.kept and not episode.success and episode.metadata["ended"] == ended == outcome.report["ended"]
    labels = [span.label for span in episode.subtasks]
    if driver == "sleeps":
        assert labels == LABELS[:1] and len(episode) == TASK.budgets_steps[0] + 1
        assert episode.metadata["nominated_steps"] == [] and episode.metadata["spoken"] == [[0, ""]]
    else:
        assert labels == LABELS
        steps, times = episode.metadata["nominated_steps"], episode.metadata["nominated_at"]
        assert steps == list(range(0, steps[-1] + 1, 10)) and times == [step + 4 for step in steps]


def test_every_subtask_has_a_keyframe_near_its_end() -> None:
    assert with_ends((5, 30, 95), (40, 60, 100)) == (5, 30, 59, 95)


@pytest.mark.slow
def test_what_comes_out_again_is_put_back_by_the_oracle_planner(tmp_path: Path) -> None:
    disturbances = replace(CALM, undisturbed_share=0.0, came_out_share=1.0)
    config = replace(CONFIG, tasks=("1",), out=str(tmp_path), disturbances=disturbances)
    (outcome,) = run_generation(config, DaggerWorker, progress=False)
    episode = load_episode(episode_path(tmp_path, task_of(1).name, 40_000))
    came_out = [event["start"] for event in episode.metadata["events"] if event["kind"] == "came out"]
    assert outcome.report["ended"] == "success" and came_out
    labels = [subtask.label for subtask in task_of(1).variants[draw_layout(task_of(1), 40_000).variant].subtasks]
    spans = [span for i, span in enumerate(episode.subtasks) if span.label in [s.label for s in episode.subtasks[:i]]]
    back = [span for span in spans if span.label in (labels[1], labels[3])]
    assert len(back) >= len(came_out)
    assert all(span.start > came_out[0] for span in back), "the label goes back when it lies still"
    assert episode.goes_back and episode.metadata["span_stages"][-1] in (1, 3)


def test_varied_scenes_are_recorded_with_what_varies(tmp_path: Path) -> None:
    config = replace(CONFIG, out=str(tmp_path), variation={"lights": 1.0}, disturbances=CALM)
    assert play(config).report["ended"] == "success"
    episode = load_episode(episode_path(tmp_path, TASK.name, config.first_seed))
    assert set(episode.metadata["changed"]) == {"brightness", "warmth", "light_turned_deg"} and episode.success


@pytest.mark.slow
def test_a_long_task_is_played_past_its_pause(tmp_path: Path) -> None:
    task = task_of("long-12")
    config = replace(CONFIG, tasks=("long-12",), out=str(tmp_path), image_every=100, disturbances=CALM)
    (outcome,) = run_generation(config, DaggerWorker, progress=False)
    assert outcome.report["ended"] == "success" and outcome.report["stages"] == task.stages
    assert outcome.steps > 1200
    events = load_episode(episode_path(tmp_path, "long-12", config.first_seed)).metadata["events"]
    assert [event["kind"] for event in events if "drawer" in event["kind"]] == ["carried into a drawer"] * 2
