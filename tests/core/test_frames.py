"""Images read from an episode file when they are asked for, one by one, in any process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, SIGKILL

import h5py
import numpy as np
import pytest

from predimem.core.episode_folder import list_episodes, load_episodes
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.episode_writer import EpisodeWriter, save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import EpisodeError, Frames

STEPS, TAKEN = 7, (0, 2, 5)  # images are taken at three of the seven steps
ROWS = [0, 0, 1, 1, 1, 2, 2]
CAMERAS = {"agentview": (6, 8), "hand": (4, 4)}
IMAGES = {
    name: np.random.default_rng(len(name)).integers(0, 256, (3, *shape, 3), dtype=np.uint8)
    for name, shape in CAMERAS.items()
}
EXPECTED = {name: images[ROWS] for name, images in IMAGES.items()}
STATE = np.arange(STEPS * 2, dtype=np.float32).reshape(STEPS, 2)
DONE = {"instruction": "go", "success": True, "subtasks": (SubtaskSpan(0, STEPS, "walk"),), "keyframes": (2,)}


def write(path: Path, seed: int = 1000) -> Path:
    with EpisodeWriter(path, "arena", "Task", seed, 20.0, CAMERAS) as writer:
        for step in range(STEPS):
            fresh = step in TAKEN
            images = {name: images[TAKEN.index(step)] for name, images in IMAGES.items()} if fresh else None
            writer.add(images, STATE[step], -STATE[step])
        writer.finish(**DONE, goal="walk", metadata={"retries": 1})
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "seed1000.h5")


def check(frames: Frames, camera: str = "agentview") -> None:
    expected = EXPECTED[camera]
    assert len(frames) == STEPS and frames.shape == expected.shape and frames.dtype == np.uint8
    assert np.flatnonzero(frames.stored).tolist() == list(TAKEN)
    np.testing.assert_array_equal(frames, expected)
    np.testing.assert_array_equal(list(frames), expected)
    for index in (3, -1, np.int64(6), slice(1, 6, 2), slice(None, None, -1), [5, 0, 5], np.arange(7) > 4, slice(2, 2)):
        np.testing.assert_array_equal(frames[index], expected[index])
    for index in (
        (3, 2),
        (slice(None, None, 3), slice(None, None, 2), 1),
        ([1, 2], slice(1, 3)),
        (..., 0),
        (..., slice(2), 1),
    ):
        np.testing.assert_array_equal(frames[index], expected[index])
    with pytest.raises(IndexError):
        frames[STEPS]
    with pytest.raises(ValueError, match="read-only"):
        frames[0][...] = 0


@pytest.mark.parametrize("in_memory", [False, True])
def test_images_taken_less_often_than_steps(path: Path, in_memory: bool) -> None:
    episode = load_episode(path, in_memory=in_memory)
    if in_memory:
        path.unlink()
    check(episode.images["agentview"])
    check(episode.images["hand"], "hand")
    assert np.flatnonzero(episode.image_steps).tolist() == list(TAKEN)
    np.testing.assert_array_equal(episode.state, STATE)
    np.testing.assert_array_equal(episode.actions, -STATE)
    assert (episode.task, episode.seed, episode.control_hz, episode.goal) == ("Task", 1000, 20.0, "walk")
    assert {name: getattr(episode, name) for name in DONE} == DONE and episode.metadata == {"retries": 1}


def test_each_image_is_stored_once(path: Path, tmp_path: Path) -> None:
    save_episode(tmp_path / "again.h5", load_episode(path))
    assert episode_checksum(tmp_path / "again.h5") == episode_checksum(path)
    with h5py.File(tmp_path / "again.h5") as file:
        assert file["images/hand"].shape == (3, 4, 4, 3) and file["image_rows"][()].tolist() == ROWS
    check(load_episode(tmp_path / "again.h5").images["agentview"])


def test_images_of_cameras_that_look_at_different_steps(tmp_path: Path) -> None:
    one, other = Frames(IMAGES["hand"], np.array(ROWS)), Frames(EXPECTED["hand"])
    episode = Episode("arena", "Task", 1000, images={"one": one, "other": other}, state=STATE, actions=STATE,
                      control_hz=20.0, **DONE)  # fmt: skip
    save_episode(tmp_path / "seed1.h5", episode)
    for frames in load_episode(tmp_path / "seed1.h5").images.values():
        np.testing.assert_array_equal(frames, EXPECTED["hand"])


@pytest.mark.parametrize("rows", [[1, 2], [0, 1], [0, 2, 2], [0, 1, 0, 2], [0, 1, 2, 3], []])
def test_rows_that_are_no_order_of_images(rows: list[int]) -> None:
    with pytest.raises(ValueError, match="rows have to go from 0 to 2"):
        Frames(IMAGES["hand"], np.array(rows, np.int32))


def test_images_of_another_kind() -> None:
    with pytest.raises(ValueError, match=r"uint8 \[N, H, W, 3\], got float64"):
        Frames(np.zeros((2, 4, 4, 3)))


def image_place(path: Path, row: int) -> tuple[int, int]:
    with h5py.File(path) as file:
        info = file["images/hand"].id.get_chunk_info(row)
        return info.byte_offset, info.size


@pytest.mark.parametrize("row", range(3))
def test_a_flipped_bit_in_a_image(path: Path, row: int) -> None:
    offset, size = image_place(path, row)
    content = bytearray(path.read_bytes())
    content[offset + size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(EpisodeError, match=str(path)):
        load_episode(path)
    frames = load_episode(path, verify=False).images["hand"]
    np.testing.assert_array_equal(frames[TAKEN[row - 1]], IMAGES["hand"][row - 1])  # the others are whole
    with pytest.raises(EpisodeError, match="damaged"):
        frames[TAKEN[row]]


def test_other_rows_than_those_written(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["image_rows"][...] = [0, 1, 1, 1, 1, 2, 2]
    with pytest.raises(EpisodeError, match="does not match its checksum"):
        load_episode(path)
    with h5py.File(path, "r+") as file:
        file["image_rows"][...] = [0, 1, 1, 1, 1, 2, 9]
    with pytest.raises(EpisodeError, match="rows have to go from 0 to 2"):
        load_episode(path, verify=False)


def test_a_file_that_was_replaced_is_noticed(path: Path) -> None:
    frames = load_episode(path).images["hand"]
    frames[0]
    os.utime(path, ns=(0, 0))
    with pytest.raises(EpisodeError, match="replaced or altered after it was loaded"):
        frames[STEPS - 1]
    path.unlink()
    with pytest.raises(EpisodeError, match="No such file"):
        frames[2]


def read(frames: Frames) -> bytes:
    return np.asarray(frames).tobytes()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_other_processes(path: Path, method: str) -> None:
    frames = load_episode(path).images["agentview"]
    frames[0]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(read, [frames] * 4) == [EXPECTED["agentview"].tobytes()] * 4


def test_pickled_without_its_images(path: Path) -> None:
    with EpisodeWriter(path, "arena", "Task", 1, 20.0, {"cam": (64, 64)}) as writer:
        for _ in range(50):
            writer.add({"cam": np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)}, STATE[0], STATE[0])
        writer.finish(**DONE)
    content = pickle.dumps(load_episode(path))
    assert len(content) < 5_000 < 64 * 64 * 3
    assert len(np.asarray(pickle.loads(content).images["cam"])) == 50


class Dataset:
    def __init__(self, episodes: list[Episode]) -> None:
        self.items = [(episode, step) for episode in episodes for step in range(STEPS)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> np.ndarray:
        episode, step = self.items[i]
        return episode.images["agentview"][step]


def test_in_the_workers_of_a_data_loader(tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    episodes = [load_episode(write(tmp_path / f"seed{seed}.h5", seed)) for seed in range(1000, 1003)]
    loader: DataLoader = DataLoader(Dataset(episodes), batch_size=4, num_workers=2, shuffle=False)
    seen = np.concatenate([batch.numpy() for batch in loader])
    np.testing.assert_array_equal(seen, np.concatenate([EXPECTED["agentview"]] * 3))


def test_no_file_stays_open(tmp_path: Path) -> None:
    for seed in range(1000, 1040):
        write(tmp_path / f"seed{seed}.h5", seed)
    before = len(os.listdir("/proc/self/fd"))
    episodes = load_episodes(tmp_path)
    assert [episode.seed for episode in episodes] == list(range(1000, 1040))
    for episode in episodes:
        check(episode.images["agentview"])
    assert len(os.listdir("/proc/self/fd")) == before


def test_loading_all_names_the_damaged_one(tmp_path: Path) -> None:
    for seed in range(1000, 1004):
        write(tmp_path / f"seed{seed}.h5", seed)
    (tmp_path / "seed1002.h5").write_bytes(b"\0" * 100)
    with pytest.raises(EpisodeError, match=r"seed1002\.h5"):
        load_episodes(tmp_path)


def test_what_cannot_be_added(tmp_path: Path) -> None:
    images = {name: images[0] for name, images in IMAGES.items()}
    with EpisodeWriter(tmp_path / "seed1.h5", "arena", "Task", 1, 20.0, CAMERAS) as writer:
        with pytest.raises(EpisodeError, match="first step of an episode needs images"):
            writer.add(None, STATE[0], STATE[0])
        with pytest.raises(EpisodeError, match="expected images of agentview, hand, got hand"):
            writer.add({"hand": images["hand"]}, STATE[0], STATE[0])
        with pytest.raises(EpisodeError, match=r"hand: expected uint8 \[4, 4, 3\], got uint8 \[6, 8, 3\]"):
            writer.add(images | {"hand": images["agentview"]}, STATE[0], STATE[0])
        with pytest.raises(EpisodeError, match="at least one step"):
            writer.finish(**DONE)
        writer.add(images, STATE[0], STATE[0])
        with pytest.raises(EpisodeError, match=r"end=7.*expected start < end within the episode's 1 steps"):
            writer.finish(**DONE)
        writer.finish(**DONE | {"subtasks": (SubtaskSpan(0, 1, "walk"),), "keyframes": (0,)})
    assert len(load_episode(tmp_path / "seed1.h5")) == 1


def test_an_abandoned_episode_leaves_nothing(tmp_path: Path) -> None:
    images = {name: images[0] for name, images in IMAGES.items()}
    writer = EpisodeWriter(tmp_path / "seed1.h5", "arena", "Task", 1, 20.0, CAMERAS)
    writer.add(images, STATE[0], STATE[0])
    assert [p.name for p in tmp_path.iterdir()] == ["seed1.h5.partial"]
    writer.abandon()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), EpisodeWriter(tmp_path / "a.h5", "a", "T", 1, 20.0, CAMERAS) as writer:
        writer.add(images, STATE[0], STATE[0])
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from predimem.core.episode_writer import EpisodeWriter
path, image = Path(sys.argv[1]), np.zeros((32, 32, 3), np.uint8)
with EpisodeWriter(path, "arena", "Task", 1, 20.0, {"cam": image.shape[:2]}) as writer:
    while True:
        writer.add({"cam": image}, np.zeros(2), np.zeros(2))
        path.with_suffix(".begun").touch()
"""


@pytest.mark.parametrize(("signal", "left"), [(SIGINT, []), (SIGKILL, ["seed1.h5.partial"])])
def test_interrupted_writing_leaves_no_episode(tmp_path: Path, signal: int, left: list[str]) -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "seed1.h5")], stderr=subprocess.DEVNULL)
    begun = tmp_path / "seed1.begun"
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal)
    assert process.wait(60) == -signal  # once is enough, and HDF5 does not crash
    begun.unlink()
    assert [p.name for p in tmp_path.iterdir()] == left
    with pytest.raises(EpisodeError, match="no episodes"):
        list_episodes(tmp_path)
    write(tmp_path / "seed1.h5")  # what was left is not in the way
    assert [p.name for p in tmp_path.iterdir()] == ["seed1.h5"]


def test_replacing_a_field_keeps_the_images_in_the_file(path: Path) -> None:
    episode = replace(load_episode(path), success=False)
    check(episode.images["agentview"])
    assert replace(episode, images={}).images == {}
