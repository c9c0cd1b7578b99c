"""The LeRobotDataset, read with pyarrow, pandas and PyAV; test_lerobot_itself.py reads it with LeRobot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet as parquet
import pytest

from datagen.export.lerobot import export_lerobot
from datagen.export.lerobot_stats import column_stats, exact_quantiles, image_stats, merge_stats
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.episodes import Episode
from predimem.core.frames import EpisodeError
from tests.datagen.export.builders import PX, make_episode, save

CAMERA = "observation.images.agentview_rgb"
FILE = "chunk-000/file-{:03d}"


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    """In the order of their files: by task, then seed. Two tasks, 36 + 20 + 20 steps, shared subtasks."""
    return [make_episode(4, 1001, steps_each=4), make_episode(1, 1000), make_episode(1, 1002)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, episodes: list[Episode]) -> Path:
    root = tmp_path_factory.mktemp("lerobot")
    assert export_lerobot(save(root / "episodes", *episodes), root / "out", progress=False) == 3
    return root / "out"


def table(path: Path) -> dict[str, list]:
    return parquet.ParquetFile(path).read().to_pydict()


def decode(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(frames [T, H, W, 3], times in seconds) as PyAV reads them."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        frames = list(container.decode(stream))
        times = [float(frame.pts * stream.time_base) for frame in frames]
    return np.stack([frame.to_ndarray(format="rgb24") for frame in frames]), np.array(times)


def test_info(exported: Path, episodes: list[Episode]) -> None:
    info = json.loads((exported / "meta/info.json").read_text())
    assert (info["codebase_version"], info["fps"], info["robot_type"]) == ("v3.0", 20, "panda")
    assert (info["total_episodes"], info["total_frames"], info["total_tasks"]) == (3, 76, 2)
    assert info["splits"] == {"train": "0:3"}
    shapes = {name: (feature["dtype"], feature["shape"]) for name, feature in info["features"].items()}
    assert shapes == {
        "observation.state": ("float32", [17]),
        "action": ("float32", [7]),
        CAMERA: ("video", [PX, PX, 3]),
        "observation.images.eye_in_hand_rgb": ("video", [PX, PX, 3]),
        "timestamp": ("float32", [1]),
        "frame_index": ("int64", [1]),
        "episode_index": ("int64", [1]),
        "index": ("int64", [1]),
        "task_index": ("int64", [1]),
        "subtask_index": ("int64", [1]),
        "is_keyframe": ("bool", [1]),
    }
    assert info["data_path"].format(chunk_index=1, file_index=2) == "data/chunk-001/file-002.parquet"
    video = info["video_path"].format(video_key=CAMERA, chunk_index=0, file_index=2)
    assert (exported / video).is_file()


def test_steps(exported: Path, episodes: list[Episode]) -> None:
    tasks = pandas.read_parquet(exported / "meta/tasks.parquet")
    subtasks = pandas.read_parquet(exported / "meta/subtasks.parquet")
    assert (tasks.index.name, subtasks.index.name) == ("task", "subtask")
    assert list(tasks["task_index"]) == [0, 1]
    assert list(subtasks["subtask_index"]) == list(range(len(subtasks))) and subtasks.index.is_unique
    first = 0
    for number, episode in enumerate(episodes):
        steps = table(exported / f"data/{FILE.format(number)}.parquet")
        np.testing.assert_array_equal(steps["observation.state"], episode.state)
        np.testing.assert_array_equal(steps["action"], episode.actions)
        count = len(episode)
        np.testing.assert_allclose(steps["timestamp"], np.arange(count) / 20, rtol=1e-7)
        assert steps["frame_index"] == list(range(count))
        assert steps["index"] == list(range(first, first + count))
        assert steps["episode_index"] == [number] * count
        assert {tasks.iloc[index].name for index in steps["task_index"]} == {episode.instruction}
        labels = [subtasks.iloc[index].name for index in steps["subtask_index"]]
        assert labels == [episode.subtask_at(step) for step in range(count)]
        assert tuple(np.flatnonzero(steps["is_keyframe"])) == episode.keyframes
        first += count


def test_types_are_those_that_the_features_state(exported: Path) -> None:
    schema = parquet.read_schema(exported / f"data/{FILE.format(0)}.parquet")
    types = {name: str(schema.field(name).type) for name in schema.names}
    assert types["observation.state"].startswith("fixed_size_list") and types["observation.state"].endswith("[17]")
    assert types["action"].startswith("fixed_size_list") and types["action"].endswith("[7]")
    assert schema.field("action").type.value_type == pyarrow.float32()
    assert (types["timestamp"], types["index"], types["is_keyframe"]) == ("float", "int64", "bool")


def test_images(exported: Path, episodes: list[Episode]) -> None:
    for number, episode in enumerate(episodes):
        for camera, frames in episode.images.items():
            path = exported / f"videos/observation.images.{camera}/{FILE.format(number)}.mp4"
            decoded, times = decode(path)
            assert decoded.shape == frames.shape
            np.testing.assert_allclose(times, np.arange(len(episode)) / 20, atol=1e-6)
            error = np.abs(decoded.astype(int) - frames).mean(axis=(1, 2, 3))
            assert error.max() < 4  # each step its own image: different ones differ by tens
            assert np.abs(np.diff(np.asarray(frames, int), axis=0)).mean(axis=(1, 2, 3)).mean() > 20


def test_rows_of_the_episodes(exported: Path, episodes: list[Episode]) -> None:
    first = 0
    for number, episode in enumerate(episodes):
        (row,) = parquet.ParquetFile(exported / f"meta/episodes/{FILE.format(number)}.parquet").read().to_pylist()
        assert (row["episode_index"], row["length"], row["tasks"]) == (number, len(episode), [episode.instruction])
        assert (row["dataset_from_index"], row["dataset_to_index"]) == (first, first + len(episode))
        for prefix in ("data", "meta/episodes", f"videos/{CAMERA}"):
            assert (row[f"{prefix}/chunk_index"], row[f"{prefix}/file_index"]) == (0, number)
        assert row[f"videos/{CAMERA}/from_timestamp"] == 0.0
        assert row[f"videos/{CAMERA}/to_timestamp"] == pytest.approx(len(episode) / 20)
        spans = zip(row["subtask_names"], row["subtask_start_frames"], row["subtask_end_frames"], strict=True)
        assert list(spans) == [(s.label, s.start, s.end - 1) for s in episode.subtasks]
        assert (row["task_name"], row["seed"], row["success"]) == (episode.task, episode.seed, True)
        source = episode_path(exported.parent / "episodes", episode.task, episode.seed)
        assert row["source_checksum"] == episode_checksum(source)
        first += len(episode)


def test_statistics(exported: Path, episodes: list[Episode]) -> None:
    stats = json.loads((exported / "meta/stats.json").read_text())
    actions = np.concatenate([e.actions for e in episodes]).astype(np.float64)
    for name, expected in (("mean", actions.mean(0)), ("std", actions.std(0)), ("min", actions.min(0))):
        np.testing.assert_allclose(stats["action"][name], expected, rtol=1e-9)
    assert stats["action"]["count"] == [76]
    images = np.concatenate([e.images["agentview_rgb"] for e in episodes]) / 255
    assert np.shape(stats[CAMERA]["mean"]) == (3, 1, 1)
    np.testing.assert_allclose(np.ravel(stats[CAMERA]["mean"]), images.mean((0, 1, 2)), rtol=1e-9)
    np.testing.assert_allclose(np.ravel(stats[CAMERA]["std"]), images.std((0, 1, 2)), rtol=1e-9)
    assert stats["is_keyframe"]["mean"] == pytest.approx([sum(len(e.keyframes) for e in episodes) / 76])


def test_quantiles_are_those_of_all_values(tmp_path: Path) -> None:
    """In the first episode the last joint stays, in the others it moves: means of quantiles would leave out most."""
    episodes = [make_episode(1, 1000 + k) for k in range(3)]
    for episode in episodes[1:]:
        episode.state[:, -1] += 7
    export_lerobot(save(tmp_path / "episodes", *episodes), tmp_path / "out", progress=False)
    stats = json.loads((tmp_path / "out/meta/stats.json").read_text())
    for name, field in (("observation.state", "state"), ("action", "actions")):
        values = np.concatenate([getattr(episode, field) for episode in episodes]).astype(np.float64)
        for quantile, share in (("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99)):
            np.testing.assert_allclose(stats[name][quantile], np.quantile(values, share, axis=0), rtol=1e-12)
        inside = (values >= stats[name]["q01"]) & (values <= stats[name]["q99"])
        assert inside.mean(axis=0).min() >= 0.95  # 57 of 60: the two ends are cut off
    assert np.shape(stats["timestamp"]["q50"]) == (1,) and np.shape(stats[CAMERA]["q50"]) == (3, 1, 1)


@pytest.mark.parametrize("memory_bytes", [1, 8 * 25 * 2, 2**28])
def test_quantiles_do_not_depend_on_how_many_values_are_held(memory_bytes: int) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(length, 5)) for length in (3, 20, 2)]
    reads: list[int] = []

    def read(number: int) -> np.ndarray:
        reads.append(number)
        return parts[number]

    found = exact_quantiles(read, [3, 20, 2], 5, memory_bytes)
    np.testing.assert_array_equal(found["q99"], np.quantile(np.concatenate(parts), 0.99, axis=0))
    np.testing.assert_array_equal(found["q50"], np.median(np.concatenate(parts), axis=0))
    assert reads == [0, 1, 2] * {1: 5, 400: 3, 2**28: 1}[memory_bytes]


def test_all_but_quantiles_of_several_parts_are_exact() -> None:
    one, other = np.arange(101.0)[:, None], np.full((303, 1), 8.0)
    first, second = column_stats(one), column_stats(other)
    assert [first[q].item() for q in ("q01", "q10", "q50", "q90", "q99")] == [1, 10, 50, 90, 99]
    merged = merge_stats([first, second])
    assert merged["q50"] == (101 * 50 + 303 * 8) / 404 and merged["count"] == 404
    np.testing.assert_allclose(merged["std"], np.concatenate([one, other]).std())


def test_names_of_state_and_actions(exported: Path, tmp_path: Path) -> None:
    """Of a benchmark that is known, of the metadata, and numbers where nothing is known."""

    def names(out: Path) -> list[list[str]]:
        features = json.loads((out / "meta/info.json").read_text())["features"]
        return [features[name]["names"] for name in ("observation.state", "action")]

    state, action = names(exported)
    assert (len(state), state[0], state[9], state[16]) == (17, "tcp_x_m", "gripper_opening_m", "joint7_rad")
    assert (len(action), action[2], action[5], action[6]) == (7, "tcp_delta_z", "tcp_delta_rotation_z", "gripper")

    joints = replace(make_episode(1, 1000), actions=np.zeros((20, 8), np.float32))
    export_lerobot(save(tmp_path / "joints", joints), tmp_path / "out0", progress=False)
    assert names(tmp_path / "out0")[1] == [*(f"joint{n}_rad" for n in range(1, 8)), "gripper"]

    mine = replace(
        make_episode(1, 1000),
        benchmark="my-robot",
        state=np.zeros((20, 2), np.float32),
        metadata={"action_names": list("abcdefg")},
    )
    export_lerobot(save(tmp_path / "mine", mine), tmp_path / "out1", progress=False)
    assert names(tmp_path / "out1") == [["state_0", "state_1"], list("abcdefg")]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (["x", "y"], r"action_names have to be 7 different names, they are \['x', 'y'\]"),
        (["x"] * 7, "7 different names"),
        ("x,y", "have to be a list of names, they are 'x,y'"),
        ([1, 2, 3, 4, 5, 6, 7], "have to be a list of names"),
    ],
)
def test_names_that_do_not_fit(tmp_path: Path, named: object, message: str) -> None:
    save(tmp_path / "episodes", replace(make_episode(1, 1000), metadata={"action_names": named}))
    with pytest.raises(EpisodeError, match=rf"seed0000001000\.h5: the metadata .*{message}"):
        export_lerobot(tmp_path / "episodes", tmp_path / "out", progress=False)


def test_subtasks_as_language(exported: Path, episodes: list[Episode], tmp_path: Path) -> None:
    assert not any("language" in name for name in table(exported / f"data/{FILE.format(0)}.parquet"))
    out = tmp_path / "out"
    export_lerobot(exported.parent / "episodes", out, language=True, progress=False)
    features = json.loads((out / "meta/info.json").read_text())["features"]
    assert features["language_persistent"]["dtype"] == features["language_events"]["dtype"] == "language"
    for number, episode in enumerate(episodes):
        steps = table(out / f"data/{FILE.format(number)}.parquet")
        assert steps["language_events"] == [[]] * len(episode)
        for step, (time, said) in enumerate(zip(steps["timestamp"], steps["language_persistent"], strict=True)):
            assert {(row["role"], row["style"], row["camera"]) for row in said} == {("assistant", "subtask", None)}
            assert [row["content"] for row in said if row["timestamp"] <= time][-1] == episode.subtask_at(step)


def test_an_export_goes_on_as_it_was_begun(exported: Path, tmp_path: Path) -> None:
    episodes, out = exported.parent / "episodes", tmp_path / "out"
    export_lerobot(episodes, out, language=True, progress=False)
    (out / "meta/info.json").unlink()
    with pytest.raises(ValueError, match="was begun with --language: go on with it, or choose another --out"):
        export_lerobot(episodes, out, progress=False)
    assert export_lerobot(episodes, out, language=True, progress=False) == 3


def test_images_are_sampled_for_statistics() -> None:
    frames = np.zeros((250, 4, 6, 3), np.uint8)
    frames[::3, ..., 1] = 255
    stats = image_stats(frames)
    assert stats["count"] == [84] and stats["mean"].shape == (3, 1, 1)  # every third
    np.testing.assert_array_equal(stats["max"].ravel(), [0, 1, 0])


def test_an_interrupted_export_goes_on_and_ends_the_same(exported: Path, tmp_path: Path) -> None:
    episodes, out = exported.parent / "episodes", tmp_path / "out"
    export_lerobot(episodes, out, progress=False)
    (out / "meta/info.json").unlink()
    (out / f"meta/episodes/{FILE.format(1)}.parquet").unlink()
    (out / f"meta/episodes/{FILE.format(2)}.parquet").unlink()
    (out / f"data/{FILE.format(2)}.parquet").write_bytes(b"interrupted")
    kept = out / f"videos/{CAMERA}/{FILE.format(0)}.mp4"
    stamp = kept.stat().st_mtime_ns
    export_lerobot(episodes, out, progress=False)
    assert kept.stat().st_mtime_ns == stamp
    files = sorted(p.relative_to(exported) for p in exported.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(out) for p in out.rglob("*") if p.is_file())
    for file in files:
        assert (out / file).read_bytes() == (exported / file).read_bytes(), file


def test_nothing_is_overwritten(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds a whole data set already: choose another --out"):
        export_lerobot(exported.parent / "episodes", exported, progress=False)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="holds other files"):
        export_lerobot(exported.parent / "episodes", tmp_path, progress=False)


def test_an_export_does_not_go_on_with_other_episodes(tmp_path: Path) -> None:
    first, second = make_episode(1, 1000), make_episode(1, 1001)
    export_lerobot(save(tmp_path / "one", first, second), tmp_path / "out", progress=False)
    (tmp_path / "out/meta/info.json").unlink()
    with pytest.raises(ValueError, match="begun with other episodes: it has 2, now there are 1"):
        export_lerobot(save(tmp_path / "two", first), tmp_path / "out", progress=False)
    with pytest.raises(ValueError, match=r"begun with other episodes: .*seed0000001002\.h5 is not its number 1"):
        export_lerobot(save(tmp_path / "three", first, make_episode(1, 1002)), tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"control_hz": 10.0}, EpisodeError, "seed0000001001.h5: cameras, sizes, rate or names of numbers differ"),
        ({"control_hz": 12.5}, EpisodeError, "whole number of steps a second"),
        ({"control_hz": 0.0}, EpisodeError, "whole number of steps a second, more than none"),
        ({"images": {}}, EpisodeError, "expected images"),
        ({"metadata": {"action_names": list("abcdefg")}}, EpisodeError, "names of numbers differ"),
        ({"subtasks": ()}, EpisodeError, "step 0 is in no subtask span"),
    ],
)
def test_episodes_that_do_not_fit(tmp_path: Path, changes: dict, error: type[Exception], message: str) -> None:
    save(tmp_path / "episodes", make_episode(1, 1000), replace(make_episode(1, 1001), **changes))
    with pytest.raises(error, match=message):
        export_lerobot(tmp_path / "episodes", tmp_path / "out", progress=False)
    assert not (tmp_path / "out/meta/info.json").exists()


def test_images_of_an_odd_size_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "episodes", make_episode(1, 1000, px=33))
    with pytest.raises(ValueError, match="even width and height, got 33 x 33"):
        export_lerobot(tmp_path / "episodes", tmp_path / "out", progress=False)


def test_the_episodes_are_left_as_they_were(exported: Path, episodes: list[Episode]) -> None:
    for episode in episodes:
        read = load_episode(episode_path(exported.parent / "episodes", episode.task, episode.seed))
        np.testing.assert_array_equal(read.images["agentview_rgb"], episode.images["agentview_rgb"])
