"""The study of the predictive head: its config, its pieces, and all of it in miniature."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from benchmarks.planner_head.__main__ import main
from benchmarks.planner_head.config import HeadStudy, Training, load_study
from benchmarks.planner_head.episodes import EpisodeJob, EpisodeJournal, held_out
from benchmarks.planner_head.figures import ACCURACY
from benchmarks.planner_head.pictures import coloured_by, draw_states, principal_components
from benchmarks.planner_head.replay import replay_all
from benchmarks.planner_head.states import FrameReader, StatesReader
from benchmarks.planner_head.table import read_found, write_table
from benchmarks.planner_head.trainings import stage_of
from planner.checkpoint import PlannerSpec
from planner.export import export_planner
from planner.replay import Replay
from planner.tiny.base import make_tiny_base
from predimem.cli.agents import played_by
from predimem.core.config import ConfigError, read_yaml
from predimem.core.files import write_text
from predimem.core.jsonl import JsonLines
from predimem.envs.arena.tasks import TASKS
from predimem.pipelines.stage_runs import check_configs
from tests.planner.builders import MEMORY, PROMPT, encode_batch, make_episode, make_model
from tests.planner.test_train import write_small

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "configs" / "studies"


def study_of(folder: Path, **changes: Any) -> HeadStudy:
    path = folder / "study.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"extends": str(STUDIES / "planner_head.yaml"), "out": str(folder), **changes}))
    return load_study(path)


@pytest.mark.parametrize(("name", "trainings"), [("planner_head", 24), ("planner_head_mikasa", 12)])
def test_shipped_studies_load(name: str, trainings: int) -> None:
    study = load_study(STUDIES / f"{name}.yaml")
    assert len(study.trainings) == trainings and len(study.closed_loop.tasks) == 8 and study.closed_loop.episodes == 10
    evaluation = study.evaluation(study.trainings, workers=2)
    assert len(evaluation.agent_configs) == trainings and evaluation.play.weights == f"{study.out}/weights"
    for share in {training.share for training in study.trainings}:
        share_name = f"share-{share:g}"
        assert evaluation.agent_configs[f"{share_name}-weight-0.5-seed-1"].against == f"{share_name}-weight-0-seed-1"
        assert evaluation.agent_configs[f"{share_name}-weight-0-seed-1"].against is None
    known = read_yaml(ROOT / "configs" / "eval" / "mikasa_families.yaml")["tasks"]
    known += [str(task.task_id) for task in TASKS] if name == "planner_head" else []
    assert set(study.closed_loop.tasks) <= set(known)
    assert study.closed_loop.benchmark == ("arena" if name == "planner_head" else "mikasa")
    check_configs([stage_of(study, training) for training in study.trainings])


def test_trainings_differ_in_what_the_study_says_alone(tmp_path: Path) -> None:
    study = study_of(tmp_path)
    full, other = (study.train_config(Training(1.0, weight, 2)) for weight in (0.0, 0.5))
    assert replace(other, predictive_weight=0.0, out=full.out) == full and full.seed == 2
    fewer = study.train_config(Training(0.25, 0.0, 2))
    assert fewer.dataset.training_share == 0.25 and fewer.vision is not None and full.vision is not None
    assert fewer.vision == full.vision and fewer.vision.from_planner is not None
    assert replace(fewer, dataset=full.dataset, out=full.out) == full
    pretrained = study_of(tmp_path, recipe_changes={"vision": {"from_planner": None, "directory": "tower"}})
    fewer = pretrained.train_config(Training(0.25, 0.0, 2))
    assert fewer.vision is not None and fewer.vision.directory == "tower-share-0.25"


def test_the_study_of_gaps_differs_in_the_times_alone() -> None:
    gaps, head = (load_study(STUDIES / f"planner_{name}.yaml") for name in ("gaps", "head"))
    training = Training(1.0, 0.1, 0)
    ours, theirs = gaps.train_config(training), head.train_config(training)
    assert ours.prompt.timestamps == "gaps" and theirs.prompt.timestamps == "relative"
    assert replace(ours, prompt=theirs.prompt, out=theirs.out) == theirs
    assert gaps.closed_loop == head.closed_loop and [t.seed for t in gaps.trainings] == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"predictive_weights": [0.1, 0.1]}, "predictive_weights: expected one or more different numbers"),
        ({"predictive_weights": [-0.1]}, "expected none below 0"),
        ({"training_seeds": []}, "training_seeds: expected one or more"),
        ({"training_shares": [1.5]}, "training_shares: expected shares above 0 and at most 1, got 1.5"),
        ({"played_shares": [0.5]}, r"played_shares: expected some of training_shares, got \[0.5\] besides"),
        ({"actor": "arena-actor"}, "actor: expected a scripted one"),
        ({"held_out_per_task": 0}, "held_out_per_task: expected at least 1"),
        ({"closed_loop": {"agents": ["predimem"]}}, "closed_loop: agents, agent_configs and studies"),
        ({"recipe_changes": {"dataset": {"sample": 3}}}, "unknown key 'sample'"),
        ({"recipe_changes": {"export_dtype": "int8"}}, "export_dtype must be"),
        ({"recipe": "configs/planner/no_such.yaml"}, "config file not found"),
    ],
)
def test_config_errors(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        study_of(tmp_path, **changes)


def test_a_record_that_was_made_with_something_else_is_missing(tmp_path: Path) -> None:
    job = EpisodeJob(Training(1.0, 0.1, 0), "e.h5", {"weights": "a"})
    record = {"training": job.training.name, "episode": "e.h5", "made_with": {"weights": "a"}}
    with EpisodeJournal(tmp_path) as journal:
        assert not journal.has(job)
        journal.add(record)
        assert journal.has(job)
    with EpisodeJournal(tmp_path) as journal:
        assert journal.has(job) and not journal.has(replace(job, made_with={"weights": "b"}))


def test_principal_components_are_those_of_the_covariance() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 5)) * [5.0, 3.0, 1.0, 0.5, 0.1]
    projected, shares = principal_components(vectors)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    assert shares == pytest.approx(values[::-1][:2] / values.sum())
    assert np.abs(projected) == pytest.approx(np.abs((vectors - vectors.mean(0)) @ directions[:, ::-1][:, :2]))
    assert principal_components(np.ones((1, 5)))[1].tolist() == [0.0, 0.0]


def test_states_are_drawn_for_each_share(tmp_path: Path) -> None:
    study = study_of(tmp_path, training_seeds=[0])
    lines = JsonLines(tmp_path / "states" / "episodes.jsonl")
    keyframes = [[n, f"pick {n}", [float(n), 1.0, n * n]] for n in range(25)]
    lines.append({"training": "share-0.25-weight-0.1-seed-0", "episode": "e", "keyframes": keyframes})
    lines.close()
    assert draw_states(study) == [tmp_path / "states-share-0.25.png"] and (tmp_path / "states-share-0.25.png").is_file()
    assert set(coloured_by([subtask for _, subtask, _ in keyframes])) == {"pick"}
    assert coloured_by(["pick a", "pick b"]) == ["pick a", "pick b"]


@pytest.mark.parametrize("predictive_weight", [0.5, 0.0])
def test_a_frame_is_foreseen_as_in_training(processor: Any, predictive_weight: float) -> None:
    """Of a window of two timesteps without keyframes, L_Pre is the error of the newer one."""
    model = make_model(processor, predictive_weight=predictive_weight).eval()
    episode = make_episode(1000, "red")
    snapshot = Replay(episode, MEMORY, ())[6]
    found = FrameReader(model, processor, PROMPT)(snapshot)
    with torch.no_grad():
        trained = model(**encode_batch(processor, [replace(episode, keyframes=())], [6]))
    if predictive_weight:
        assert found.error == pytest.approx(float(trained.aux_loss), abs=1e-4)
    else:
        assert found.error is None and trained.aux_loss is None
    assert len(found.state) == 32 and found.unchanged > 0
    still = FrameReader(model, processor, PROMPT)(Replay(still_episode(), MEMORY, ())[6])
    assert still.unchanged == pytest.approx(0.0, abs=1e-4)


def still_episode() -> Any:
    episode = make_episode(1000, "red")
    images = {name: np.stack([np.asarray(frames[0])] * len(episode)) for name, frames in episode.images.items()}
    return replace(episode, images=images)


@pytest.fixture
def untrained(tmp_path: Path, episodes: Any) -> HeadStudy:
    """A study of one planner, whose training was left out: its checkpoint is its base, head included."""
    recipe = write_small(tmp_path, episodes)
    changes = {"episodes": str(tmp_path / "episodes"), "sft": {"epochs": 0}, "dataset": {"validation_fraction": 0.25}}
    given = {"recipe": str(recipe), "recipe_changes": changes, "predictive_weights": [0.1]}
    study = study_of(tmp_path / "study", **given, training_seeds=[0], training_shares=[1.0], held_out_per_task=2)
    (training,) = study.trainings
    config = study.train_config(training)
    out = Path(config.out)
    make_tiny_base(out / "base", config.base, config.prompt, config.objective, vision=None, seed=0)
    shutil.copytree(out / "base", out / "sft" / "checkpoint-1")
    (out / "sft" / "checkpoint-1" / "trainer_state.json").touch()
    spec = PlannerSpec(config.prompt, config.memory, config.max_new_tokens)
    export_planner(out / "base", study.weights / training.name, spec, torch.float32)
    return study


@pytest.mark.slow
def test_replays_and_states_of_a_planner(untrained: HeadStudy, tmp_path: Path) -> None:
    replay_all(untrained, workers=1)
    found = read_found(untrained)
    (training,) = untrained.trainings
    assert [Path(key[1]).name for key in found.counts[training]] == ["seed0000001009.h5", "seed0000001010.h5"]
    assert all(counts[ACCURACY][1] == 1 for counts in found.counts[training].values())  # one answer in ten steps
    journal = Path(untrained.out) / "replay" / "episodes.jsonl"
    before = journal.read_bytes()
    replay_all(untrained, workers=1)
    assert journal.read_bytes() == before
    played = played_by(untrained.evaluation([training], workers=1), [training.name])  # raises where it cannot be played
    assert played.images_every(training.name) == untrained.closed_loop.play.agent.plan_every_steps
    reader = StatesReader(untrained)
    for file in held_out(untrained):
        record = reader.do(EpisodeJob(training, file, {}))
        assert [frame[:2] for frame in record["frames"]] == [[step, step == 8] for step in range(1, 10)]
        assert [keyframe[:2] for keyframe in record["keyframes"]] == [[8, record["keyframes"][0][1]]]
        assert all(error > 0 and unchanged > 0 for _, _, error, unchanged in record["frames"])
        # The table is empty up to step 4 and shows all squares from step 5 on: that changes more than noise does.
        changes = {step: unchanged for step, _, _, unchanged in record["frames"]}
        assert max(changes, key=lambda step: changes[step]) in (2, 5)
        with EpisodeJournal(Path(untrained.out) / "states") as states:
            states.add(record)
    text = write_table(untrained).read_text()
    assert "Replay (2 episodes)" in " ".join(text.split()) and "| 1 | 0.1 | 2 | 18 |" in text
    shutil.rmtree(Path(untrained.recipe_of(training)["out"]) / "sft")
    with pytest.raises(ValueError, match="has no checkpoint: the head is in none of the exported weights"):
        StatesReader(untrained).do(EpisodeJob(training, file, {}))


MINIATURE = """
recipe: configs/planner/tiny.yaml
recipe_changes:
  episodes: data
  vision: {directory: study/vision, steps: 20, batch_size: 8, max_frames: 50}
  dataset: {samples: 64, validation_fraction: 0.25}
out: study
predictive_weights: [0.1]
training_seeds: [0]
training_shares: [0.5]
actor: expert
closed_loop:
  benchmark: mikasa
  tasks: [RememberColor3-VLA-v0, RememberColor5-VLA-v0]
  episodes: 1
  play: {environment: {rendering: fast}, actor_camera_every: 1}
replay: {latency_steps: 2, tolerance_steps: 3, keyframe_tolerance_steps: 2}
"""
MINIATURE_DATA = """
extends: configs/datagen_mikasa.yaml
out: data
tasks:
  - {task: RememberColor3-VLA-v0, episodes: 4, first_seed: 1000}
  - {task: RememberColor5-VLA-v0, episodes: 4, first_seed: 1000}
"""


@pytest.mark.slow
@pytest.mark.needs("vulkan")
@pytest.mark.needs("suite")
@pytest.mark.timeout(7200)
def test_the_whole_study_in_miniature(tmp_path: Path) -> None:
    """Every piece for real: demonstrations, a training, replays, states, episodes in closed loop; then nothing anew."""
    write_text(tmp_path / "data.yaml", MINIATURE_DATA)
    write_text(tmp_path / "study.yaml", MINIATURE)

    def run(*words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run("predimem.cli", "datagen", "--config", "data.yaml")
    printed = run("benchmarks.planner_head", "--config", "study.yaml")
    name = "share-0.5-weight-0.1-seed-0"
    assert (tmp_path / "study" / "weights" / name / "predimem.json").is_file()
    table = (tmp_path / "study" / "table.md").read_text()
    assert table.strip() in printed and "## Missing" not in table and "Replay (2 episodes)" in table
    assert (tmp_path / "study" / "states-share-0.5.png").is_file()
    (row,) = (line for line in table.splitlines() if line.startswith("| 0.5 | 0.1 | ") and "[" in line)
    keyframes, frames = (int(cell) for cell in row.split("|")[3:5])
    assert 0 < keyframes < frames
    kept = {path: path.read_bytes() for path in (tmp_path / "study").rglob("episodes.jsonl")}
    assert len(kept) == 3
    assert "is there" in run("benchmarks.planner_head", "--config", "study.yaml")
    assert all(path.read_bytes() == before for path, before in kept.items())


def test_a_study_says_what_is_to_be_run_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study_of(tmp_path)
    for piece in ("replay", "states", "play"):
        monkeypatch.setattr(sys, "argv", ["planner_head", "--config", str(tmp_path / "study.yaml"), "--only", piece])
        with pytest.raises(SystemExit, match=r"planner_head: no planner .* run it with `--only train` first"):
            main()
    monkeypatch.setattr(sys, "argv", ["planner_head", "--config", str(tmp_path / "study.yaml"), "--only", "table"])
    main()
    assert (tmp_path / "table.md").read_text().startswith("# What the predictive head does")
