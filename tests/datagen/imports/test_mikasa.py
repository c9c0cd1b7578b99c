"""MIKASA-Robo-VLA's releases as episodes: files of the two formats, written by LeRobot and TensorFlow Datasets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from datagen.imports import mikasa
from datagen.imports.mikasa import mikasa_source, task_of
from datagen.imports.source import store
from datagen.imports.subtasks import read_spans
from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import SubtaskSpan
from predimem.core.frames import EpisodeError
from tests.datagen.export.builders import run_command
from tests.datagen.imports.released import ENV_ID, FOLDER, INSTRUCTION, LENGTHS, episode

HERE = Path(__file__).parent
KNOWN = (ENV_ID, "RememberColor9-VLA-v0")
LOSS = {"lerobot": 8, "rlds": 0}


@pytest.fixture
def rlds(tmp_path: Path) -> Path:
    """A copy that may be changed: the folder of the version."""
    return Path(shutil.copytree(HERE / "rlds" / FOLDER, tmp_path / "released" / FOLDER)) / "1.0.0"


@pytest.mark.parametrize("kind", ["lerobot", "rlds"])
def test_both_formats_hold_the_same(kind: str, tmp_path: Path) -> None:
    source = mikasa_source(HERE / kind, KNOWN)
    seen = set()
    for job in source.jobs():
        store(source, job, tmp_path)
        found = load_episode(episode_path(tmp_path, job.task, job.seed))
        number = next(n for n, steps in enumerate(LENGTHS) if steps == len(found))  # TensorFlow Datasets shuffles
        made = episode(number)
        seen.add(number)
        np.testing.assert_array_equal(found.state, made["proprio"])
        np.testing.assert_array_equal(found.actions, made["action"])
        for camera, images in (("base_camera", "image"), ("hand_camera", "wrist_image")):
            assert np.abs(np.asarray(found.images[camera]).astype(int) - made[images]).max() <= LOSS[kind]
        assert (found.benchmark, found.task, found.instruction) == ("mikasa", ENV_ID, INSTRUCTION)
        assert (found.control_hz, found.success) == (20.0, True)  # the files say 10 Hz; the simulator has 20
        assert found.subtasks == (SubtaskSpan(0, len(found), INSTRUCTION),)
        assert found.metadata["state_names"][6] == "gripper_opening_m"
    assert seen == {0, 1, 2} and [job.seed for job in source.jobs()] == [1000, 1001, 1002]


@pytest.mark.needs("suite")
def test_the_import_agrees_with_the_suite(tmp_path: Path) -> None:
    """By the command; names of data sets, cameras and rate are compared with the suite's own."""
    from mikasa_robo_suite.vla.utils.dataset_naming import env_id_to_dataset_name

    from predimem.envs.mikasa import suite

    for task in suite.tasks():
        assert task_of(Path("/data") / env_id_to_dataset_name(task), suite.tasks()) == task
        assert task_of(Path("/data") / task / "mikasa_dataset/1.0.0", suite.tasks()) == task
    assert (mikasa.CAMERAS, mikasa.CONTROL_HZ) == (suite.CAMERAS, suite.CONTROL_HZ)
    output = run_command("import", "mikasa", HERE / "rlds", "--out", tmp_path / "out", "--workers", 2)
    assert "3 of 3 episodes kept" in output and "the releases name none" in output
    assert len(list_episodes(tmp_path / "out")) == 3
    assert "3 of 3 episodes kept" in run_command("import", "mikasa", HERE / "rlds", "--out", tmp_path / "out")


def test_subtasks_of_a_table(tmp_path: Path) -> None:
    """Episodes of several data sets are told apart by their task."""
    other = shutil.copytree(HERE / "lerobot" / FOLDER, tmp_path / "data/remember_color_9_vla_v0")
    shutil.copytree(HERE / "lerobot" / FOLDER, tmp_path / "data" / FOLDER)
    rows = [f"{task},{n},0,{steps},{task} {n}" for task in KNOWN for n, steps in enumerate(LENGTHS)]
    path = tmp_path / "spans.csv"
    path.write_text("\n".join(["task,episode,start,end,label", *rows]))
    source = mikasa_source(tmp_path / "data", KNOWN, read_spans(path))
    assert [source.read(job).subtasks[0].label for job in source.jobs()] == [
        f"{t} {n}" for t in KNOWN for n in range(3)
    ]
    path.write_text("\n".join(["episode,start,end,label", *(f"{n},0,{steps},x" for n, steps in enumerate(LENGTHS))]))
    with pytest.raises(ValueError, match="for 2 data sets it needs a column `task` with RememberColor3-VLA-v0"):
        mikasa_source(tmp_path / "data", KNOWN, read_spans(path))
    assert mikasa_source(other, KNOWN, read_spans(path)).read(source.jobs()[3]).subtasks[0].label == "x"


def test_folders_that_are_no_release(rlds: Path, tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"no data sets below .*remember_color_3_vla_v0 with meta/info\.json"):
        mikasa_source(tmp_path / "empty", KNOWN)
    shutil.copytree(HERE / "lerobot", tmp_path / "released/lerobot")
    with pytest.raises(ValueError, match="are both of RememberColor3-VLA-v0: import one of them by itself"):
        mikasa_source(tmp_path, KNOWN)
    with pytest.raises(ValueError, match="is not called as a task of MIKASA-Robo-VLA"):
        mikasa_source(rlds, ["RememberShape3-VLA-v0"])


def test_other_features(tmp_path: Path) -> None:
    root = Path(shutil.copytree(HERE / "lerobot" / FOLDER, tmp_path / FOLDER))
    info = json.loads((root / "meta/info.json").read_text())
    info["features"]["observation.state"]["shape"] = [25]
    (root / "meta/info.json").write_text(json.dumps(info))
    with pytest.raises(EpisodeError, match=r"has observation\.state \[7\]; this one has .*observation\.state \[25\]"):
        mikasa_source(root, KNOWN)


def test_files_of_rlds_that_are_missing_or_damaged(rlds: Path, tmp_path: Path) -> None:
    source = mikasa_source(rlds, KNOWN)
    path = rlds / "mikasa_dataset-train.tfrecord-00000-of-00002"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    last_of_file = source.jobs()[1]
    with pytest.raises(EpisodeError, match="00000-of-00002: record 1 is truncated or altered"):
        source.read(last_of_file)
    path.unlink()
    with pytest.raises(EpisodeError, match=r"lacks 1 of 2 files, such as mikasa_dataset-train\.tfrecord-00000"):
        mikasa_source(rlds, KNOWN)
    info = json.loads((rlds / "dataset_info.json").read_text())
    (rlds / "dataset_info.json").write_text(json.dumps(info | {"fileFormat": "array_record"}))
    with pytest.raises(EpisodeError, match="files of the format 'array_record'"):
        mikasa_source(rlds, KNOWN)


def test_episodes_of_the_older_release_are_told_of(tmp_path: Path) -> None:
    """Theirs had a `state` of 25 joint values in place of `proprio`."""
    from datagen.imports.rlds import RldsEpisode

    episode = RldsEpisode("file, record 0", {"steps/is_first": [1, 0], "steps/observation/state": [0.0] * 50})
    with pytest.raises(EpisodeError, match=r"has no steps/observation/proprio; it has .*steps/observation/state"):
        episode.vectors("steps/observation/proprio", 7)
    with pytest.raises(EpisodeError, match="has 50 numbers, not 7 for 2 steps"):
        episode.vectors("steps/observation/state", 7)
