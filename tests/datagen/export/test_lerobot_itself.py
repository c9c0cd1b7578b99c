"""LeRobot reads the export and trains on it: in processes of its own, since its versions and ours exclude each other.

`python -m benchmarks.lerobot_roundtrip` makes the environments and runs these tests in each.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest

from datagen.export.lerobot import export_lerobot
from predimem.core.episodes import Episode
from tests.datagen.export.builders import make_episode, save

PYTHON = os.environ.get("PREDIMEM_LEROBOT_PYTHON", "")
CAMERA = "observation.images.agentview_rgb"
PX = 96
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="PREDIMEM_LEROBOT_PYTHON names no Python that has lerobot"),
]
# The smallest ACT: it needs no pretrained weights.
ACT = {
    "type": "act",
    "device": "cpu",
    "push_to_hub": "false",
    "pretrained_backbone_weights": "null",
    "dim_model": 32,
    "n_heads": 2,
    "dim_feedforward": 64,
    "n_encoder_layers": 1,
    "n_vae_encoder_layers": 1,
    "latent_dim": 8,
    "chunk_size": 8,
    "n_action_steps": 8,
    "normalization_mapping": '{"VISUAL": "MEAN_STD", "STATE": "QUANTILES", "ACTION": "QUANTILES"}',
}
TRAINING = {"batch_size": 4, "steps": 3, "log_freq": 1, "num_workers": 0, "save_freq": 3, "wandb.enable": "false"}


def lerobot_version() -> tuple[int, ...]:
    question = "from importlib.metadata import version; print(version('lerobot'))"
    answer = subprocess.run([PYTHON, "-c", question], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in answer.strip().split(".")[:2])


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    """In the order of their files: by task, then seed. Two tasks, 36 + 20 + 20 steps, shared subtasks."""
    return [make_episode(4, 1001, steps_each=4, px=PX), make_episode(1, 1000, px=PX), make_episode(1, 1002, px=PX)]


@pytest.fixture(scope="module", params=[False, True], ids=["indices", "language"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, episodes: list[Episode]) -> Path:
    if request.param and lerobot_version() < (0, 6):
        pytest.skip("this LeRobot knows no language columns")
    root = tmp_path_factory.mktemp("lerobot")
    export_lerobot(save(root / "episodes", *episodes), root / "out", language=request.param, progress=False)
    return root / "out"


def run(tmp_path: Path, *command: object) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    subprocess.run([str(part) for part in command], env=environment, check=True)


def test_it_reads_the_data_set(
    request: pytest.FixtureRequest, exported: Path, episodes: list[Episode], tmp_path: Path
) -> None:
    run(tmp_path, PYTHON, Path(__file__).with_name("read_with_lerobot.py"), exported, tmp_path / "read.npz")
    read = dict(np.load(tmp_path / "read.npz"))
    states, actions = (np.concatenate([getattr(e, name) for e in episodes]) for name in ("state", "actions"))
    assert list(read["episodes"]) == [3, 76, 20]
    np.testing.assert_array_equal(read["observation.state"], states)
    np.testing.assert_array_equal(read["action"], actions)
    assert list(read["task"]) == [e.instruction for e in episodes for _ in range(len(e))]
    np.testing.assert_array_equal(read["index"], np.arange(76))
    keyframes = np.concatenate([np.isin(np.arange(len(e)), e.keyframes) for e in episodes])
    np.testing.assert_array_equal(read["is_keyframe"], keyframes)
    frames = np.concatenate([e.images["agentview_rgb"] for e in episodes]).transpose(0, 3, 1, 2)
    assert np.abs(read[CAMERA].astype(int) - frames).mean(axis=(1, 2, 3)).max() < 4
    second = episodes[1].actions
    np.testing.assert_array_equal(read["ahead"][0], second[:3])
    np.testing.assert_array_equal(read["ahead"][-1], second[[-1, -1, -1]])
    assert read["ahead_is_pad"][-1].tolist() == [False, True, True]
    assert read[f"stats/{CAMERA}/mean"].shape == (3, 1, 1)
    np.testing.assert_allclose(read["stats/action/q01"], np.quantile(actions.astype(float), 0.01, axis=0))
    assert read["names/action"][-1] == "gripper" and read["names/observation.state"][0] == "tcp_x_m"

    labels = [e.subtask_at(step) for e in episodes for step in range(len(e))]
    table = pandas.read_parquet(exported / "meta/subtasks.parquet")
    assert [table.iloc[index].name for index in read["subtask_index"]] == labels
    if lerobot_version() < (0, 6) or "language" in request.node.name:  # 0.6 resolves no `subtask_index`
        assert list(read["subtask"]) == labels


def test_it_trains_a_policy_on_the_data_set(exported: Path, tmp_path: Path) -> None:
    options = {f"policy.{name}": value for name, value in ACT.items()} | TRAINING
    options |= {"dataset.repo_id": "local/predimem", "dataset.root": exported, "dataset.video_backend": "pyav"}
    train = Path(PYTHON).with_name("lerobot-train")
    run(tmp_path, train, f"--output_dir={tmp_path / 'run'}", *(f"--{k}={v}" for k, v in options.items()))
    assert list((tmp_path / "run/checkpoints").rglob("model.safetensors"))
