"""Episode files: everything comes back, and nothing damaged is ever read as an episode."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.core.frames import EpisodeError

STEPS, STATE, ACTION, HORIZON = 6, 7, 4, 3


def make_episode(seed: int = 1000, alternatives: bool = True) -> Episode:
    rng = np.random.default_rng(seed)
    subtasks = ("touch the red cube", "touch the teal cube")
    alternative = Alternatives(
        subtasks=subtasks,
        chunks=rng.normal(size=(STEPS, 2, HORIZON, ACTION)).astype(np.float32),
        valid=rng.random((STEPS, 2)) < 0.5,
        targets_m=np.full((STEPS, 2, 3), np.nan, np.float32),
        pixels=rng.random((STEPS, 2, 2, 2)).astype(np.float32),
    )
    return Episode(
        benchmark="mikasa",
        task="RememberColor3-VLA-v0",
        seed=seed,
        instruction="remember the colour",
        control_hz=20.0,
        success=True,
        images={
            name: rng.integers(0, 256, (STEPS, 8, 10, 3), dtype=np.uint8) for name in ("hand_camera", "base_camera")
        },
        state=rng.normal(size=(STEPS, STATE)).astype(np.float32),
        actions=rng.normal(size=(STEPS, ACTION)).astype(np.float32),
        subtasks=(SubtaskSpan(0, 2, "watch"), SubtaskSpan(2, STEPS, subtasks[1])),
        keyframes=(0, 4),
        goal=subtasks[1],
        alternatives=alternative if alternatives else None,
        metadata={"noise": 0.3, "steps": [1, 2]},
    )


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = episode_path(tmp_path, "RememberColor3-VLA-v0", 1000)
    save_episode(path, make_episode())
    return path


def test_round_trip(stored: Path) -> None:
    written, read = make_episode(), load_episode(stored)
    for name in ("benchmark", "task", "seed", "instruction", "control_hz", "success", "subtasks", "keyframes"):
        assert getattr(read, name) == getattr(written, name)
    assert (read.goal, read.metadata, len(read)) == (written.goal, written.metadata, STEPS)
    assert list(read.images) == ["hand_camera", "base_camera"]  # the order of cameras is kept
    for name, frames in written.images.items():
        np.testing.assert_array_equal(read.images[name], frames)
    np.testing.assert_array_equal(read.state, written.state)
    np.testing.assert_array_equal(read.actions, written.actions)
    assert read.alternatives is not None and written.alternatives is not None
    assert read.alternatives.subtasks == written.alternatives.subtasks
    for name in ("chunks", "valid", "targets_m", "pixels"):
        expected = getattr(written.alternatives, name)
        np.testing.assert_array_equal(getattr(read.alternatives, name), expected)
        assert getattr(read.alternatives, name).dtype == expected.dtype


def test_the_checksum_tells_episodes_apart(stored: Path, tmp_path: Path) -> None:
    checksum = episode_checksum(stored)
    save_episode(tmp_path / "same.h5", load_episode(stored))
    save_episode(tmp_path / "other.h5", replace(load_episode(stored), success=False))
    assert len(checksum) == 64 and episode_checksum(tmp_path / "same.h5") == checksum
    assert episode_checksum(tmp_path / "other.h5") != checksum
    stored.write_bytes(b"something else")
    with pytest.raises(EpisodeError, match="not a PrediMem episode"):
        episode_checksum(stored)


def test_without_alternatives(tmp_path: Path) -> None:
    save_episode(tmp_path / "seed1.h5", make_episode(alternatives=False))
    assert load_episode(tmp_path / "seed1.h5").alternatives is None


def test_subtask_at(stored: Path) -> None:
    episode = load_episode(stored)
    assert [episode.subtask_at(t) for t in (0, 1, 2, 5)] == ["watch", "watch"] + ["touch the teal cube"] * 2
    with pytest.raises(IndexError, match="step 6"):
        episode.subtask_at(6)


def test_nothing_but_whole_files_under_the_final_name(stored: Path) -> None:
    assert [p.name for p in stored.parent.iterdir()] == ["seed0000001000.h5"]


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_truncated_file(stored: Path, kept: float) -> None:
    content = stored.read_bytes()
    stored.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(EpisodeError, match=str(stored)):
        load_episode(stored)


@pytest.mark.parametrize("dataset", ["state", "actions", "images/base_camera", "alternatives/valid"])
def test_one_altered_value(stored: Path, dataset: str) -> None:
    with h5py.File(stored, "r+") as file:
        values = file[dataset][()]
        values.reshape(-1).view(np.uint8)[-1] ^= 1
        file[dataset][...] = values
    with pytest.raises(EpisodeError, match="does not match its checksum"):
        load_episode(stored)


def test_altered_bytes_of_the_file_never_pass_unseen(stored: Path) -> None:
    """A flipped bit anywhere is either refused, or lies where HDF5 keeps nothing of the episode."""
    content, written = stored.read_bytes(), make_episode()
    refused = 0
    for position in range(0, len(content), max(1, len(content) // 60)):
        altered = bytearray(content)
        altered[position] ^= 0x10
        stored.write_bytes(bytes(altered))
        try:
            read = load_episode(stored)
        except EpisodeError:
            refused += 1
            continue
        np.testing.assert_array_equal(read.state, written.state)
        np.testing.assert_array_equal(read.images["base_camera"], written.images["base_camera"])
        assert (read.seed, read.subtasks) == (written.seed, written.subtasks)
    assert refused > 5


def test_altered_labels(stored: Path) -> None:
    with h5py.File(stored, "r+") as file:
        file.attrs["meta"] = str(file.attrs["meta"]).replace("teal", "blue")
    with pytest.raises(EpisodeError, match="checksum"):
        load_episode(stored)


def test_another_version(stored: Path) -> None:
    with h5py.File(stored, "r+") as file:
        file.attrs["version"] = 3
    with pytest.raises(EpisodeError, match="version 3; this code reads 1 and 2"):
        load_episode(stored)


def write_version_1(path: Path, episode: Episode) -> None:
    """As version 1 was written: an image for each step, the checksum over all bytes in the order of the names."""
    assert episode.alternatives is not None
    arrays = {f"images/{name}": np.asarray(frames) for name, frames in episode.images.items()}
    arrays |= {"state": episode.state, "actions": episode.actions}
    arrays |= {
        f"alternatives/{k}": getattr(episode.alternatives, k) for k in ("chunks", "valid", "targets_m", "pixels")
    }
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            packed = {"chunks": (1, *array.shape[1:]), "compression": "gzip"} if name.startswith("images/") else {}
            file.create_dataset(name, data=array, **packed)
        meta = json.dumps(
            {
                "suite": episode.benchmark, "task": episode.task, "seed": episode.seed,
                "instruction": episode.instruction,
                "control_hz": episode.control_hz, "success": episode.success, "cameras": list(episode.images),
                "subtasks": [vars(span) for span in episode.subtasks], "keyframes": list(episode.keyframes),
                "goal": episode.goal, "alternative_subtasks": list(episode.alternatives.subtasks),
                "metadata": dict(episode.metadata),
            },
            sort_keys=True,
        )  # fmt: skip
        digest = hashlib.sha256(meta.encode())
        for name in sorted(arrays):
            digest.update(f"{name}{arrays[name].shape}{arrays[name].dtype}".encode() + arrays[name].tobytes())
        file.attrs.update(format="predimem-episode", version=1, meta=meta, checksum=digest.hexdigest())


def test_version_1_is_read(tmp_path: Path) -> None:
    path, written = tmp_path / "seed1.h5", make_episode()
    write_version_1(path, written)
    read = load_episode(path)
    assert read.image_steps.all() and (read.seed, read.subtasks) == (written.seed, written.subtasks)
    for name, frames in written.images.items():
        np.testing.assert_array_equal(read.images[name], frames)
    save_episode(tmp_path / "new.h5", read)
    save_episode(tmp_path / "made.h5", written)
    assert episode_checksum(tmp_path / "new.h5") == episode_checksum(tmp_path / "made.h5") != episode_checksum(path)
    with h5py.File(path, "r+") as file:
        file["images/hand_camera"][2, 0, 0, 0] ^= 1
    with pytest.raises(EpisodeError, match="does not match its checksum"):
        load_episode(path)


def test_another_hdf5_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["state"] = np.zeros(3)
    with pytest.raises(EpisodeError, match="not a PrediMem episode"):
        load_episode(tmp_path / "other.h5")


def test_unequal_lengths_are_not_written(tmp_path: Path) -> None:
    episode = replace(make_episode(), state=np.zeros((STEPS + 1, STATE), np.float32))
    with pytest.raises(EpisodeError, match="same number of steps"):
        save_episode(tmp_path / "seed1.h5", episode)
    assert not list(tmp_path.iterdir())


def test_listing_is_sorted_and_never_empty(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match="predimem datagen"):
        list_episodes(tmp_path)
    for seed in (1010, 1002):
        save_episode(episode_path(tmp_path, "task", seed), make_episode(seed))
    (tmp_path / "task" / "seed0000001011.h5.partial").write_bytes(b"interrupted")
    assert [load_episode(p).seed for p in list_episodes(tmp_path)] == [1002, 1010]


@pytest.mark.parametrize("limit_bytes", [1, 300, 2000, 6000])
def test_a_full_disk_is_an_error_with_its_path_and_not_a_crash(tmp_path: Path, limit_bytes: int) -> None:
    """In a process of its own, since what HDF5 does where a write fails ends the process."""
    code = (
        "import resource, sys; from pathlib import Path; from predimem.core.episode_writer import save_episode;"
        "from predimem.jobs.tasks import Job; from tests.jobs.small_worker import small_episode;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY));"
        "save_episode(sys.argv[1], small_episode(Job('Pour', 1001)))"
    )
    path = tmp_path / "episode.h5"
    command = [sys.executable, "-c", code, str(path), str(limit_bytes)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert result.returncode == 1 and result.stderr.splitlines()[-1].startswith("OSError: [Errno 27] File too large: ")
    assert not list(tmp_path.iterdir())
