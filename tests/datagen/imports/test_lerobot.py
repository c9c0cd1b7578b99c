"""LeRobotDatasets as episodes: one that LeRobot 0.4.4 wrote (write_lerobot.py), and our own exports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from datagen.export.lerobot import export_lerobot
from datagen.imports.lerobot import Arm, LeRobotSource, lerobot_source
from datagen.imports.source import SourceEpisode, store
from datagen.imports.subtasks import read_spans
from datagen.keyframes import extract_keyframes
from predimem.core.episode_folder import episode_path, list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import EpisodeError
from predimem.jobs.tasks import Job
from tests.datagen.export.builders import make_episode, run_command, save
from tests.datagen.imports.released import FOLDER, INSTRUCTION, LENGTHS, episode

RELEASED = Path(__file__).with_name("lerobot") / FOLDER
LOSS = 8  # of a value in a video


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(RELEASED, tmp_path / FOLDER))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of the arena with their subtasks and keyframes."""
    folder = tmp_path_factory.mktemp("exported")
    episodes = save(folder / "episodes", make_episode(1, 1000), make_episode(1, 1007), make_episode(10, 1001))
    export_lerobot(episodes, folder / "lerobot", progress=False)
    return folder


def read(source: LeRobotSource, number: int = 0) -> SourceEpisode:
    return source.read(source.jobs()[number])


def change(path: Path, update: Callable[[dict[str, Any]], None]) -> None:
    """Update every row of a table."""
    rows = pyarrow.parquet.read_table(path).to_pylist()
    for row in rows:
        update(row)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def change_info(root: Path, **changes: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_lerobot_wrote_is_read_back(tmp_path: Path) -> None:
    """Three episodes in one file; each is cut out of the same video."""
    source = lerobot_source(RELEASED, "instruction")
    for number, steps in enumerate(LENGTHS):
        job = Job(FOLDER, 1000 + number)
        assert store(source, job, tmp_path) == steps
        found, made = load_episode(episode_path(tmp_path, *vars(job).values())), episode(number)
        np.testing.assert_array_equal(found.state, made["proprio"])
        np.testing.assert_array_equal(found.actions, made["action"])
        for camera, images in (("top", "image"), ("wrist", "wrist_image")):
            assert np.abs(np.asarray(found.images[camera]).astype(int) - made[images]).max() <= LOSS
        assert (found.benchmark, found.instruction, found.control_hz) == ("lerobot", INSTRUCTION, 10)
        assert found.subtasks == (SubtaskSpan(0, steps, INSTRUCTION),) and found.success


@pytest.mark.slow
def test_our_exports_come_back(exported: Path, tmp_path: Path) -> None:
    output = run_command("import", "lerobot", exported / "lerobot", "--out", tmp_path, "--workers", 2)
    assert "3 of 3 episodes kept" in output
    before, after = (list_episodes(folder) for folder in (exported / "episodes", tmp_path))
    assert [p.relative_to(tmp_path) for p in after] == [p.relative_to(exported / "episodes") for p in before]
    for one, other in zip(map(load_episode, before), map(load_episode, after), strict=True):
        for name in ("task", "seed", "instruction", "control_hz", "success", "subtasks", "keyframes"):
            assert getattr(one, name) == getattr(other, name), name
        np.testing.assert_array_equal(one.state, other.state)
        np.testing.assert_array_equal(one.actions, other.actions)
        assert list(one.images) == list(other.images)
        for camera, frames in one.images.items():
            assert np.abs(np.asarray(frames).astype(int) - np.asarray(other.images[camera])).mean() < 3
        assert other.metadata["state_names"][9] == "gripper_opening_m" and len(other.metadata["action_names"]) == 7


def by_names(root: Path, labels: list[str]) -> None:
    def update(row: dict[str, Any]) -> None:
        starts = [0, row["length"] // 2]
        row |= {"sparse_subtask_names": ["task"], "sparse_subtask_start_frames": [0]}
        row |= {"dense_subtask_names": labels, "dense_subtask_start_frames": starts}

    change(root / "meta/episodes/chunk-000/file-000.parquet", update)


def by_index(root: Path, labels: list[str]) -> None:
    import pandas

    pandas.DataFrame({"subtask_index": [0, 1]}, index=pandas.Index(labels, name="subtask")).to_parquet(
        root / "meta/subtasks.parquet"
    )
    by_step(root, "subtask_index", lambda label: labels.index(label), labels, "int64")


def by_words(root: Path, labels: list[str]) -> None:
    by_step(root, "subtask", str, labels, "string")


def by_language(root: Path, labels: list[str]) -> None:
    def update(row: dict[str, Any]) -> None:
        half = LENGTHS[row["episode_index"]] // 2
        said = [{"style": "subtask", "content": labels[1], "timestamp": half / 10}]
        said += [{"style": "plan", "content": "no subtask", "timestamp": 0.0}]
        row["language_persistent"] = [*said, {"style": "subtask", "content": labels[0], "timestamp": 0.0}]

    change(root / "data/chunk-000/file-000.parquet", update)
    add_feature(root, "language_persistent", "language")


def by_step(root: Path, name: str, value: Callable[[str], Any], labels: list[str], dtype: str) -> None:
    def update(row: dict[str, Any]) -> None:
        row[name] = value(labels[int(row["frame_index"] >= LENGTHS[row["episode_index"]] // 2)])

    change(root / "data/chunk-000/file-000.parquet", update)
    add_feature(root, name, dtype)


def add_feature(root: Path, name: str, dtype: str) -> None:
    features = json.loads((root / "meta/info.json").read_text())["features"]
    change_info(root, features=features | {name: {"dtype": dtype, "shape": [1], "names": None}})


@pytest.mark.parametrize("write", [by_names, by_index, by_words, by_language])
def test_subtasks_of_the_data_set(released: Path, write: Callable[[Path, list[str]], None]) -> None:
    write(released, ["look", "touch"])
    source = lerobot_source(released)
    for number, steps in enumerate(LENGTHS):
        found = read(source, number)
        half = steps // 2
        assert found.subtasks == (SubtaskSpan(0, half, "look"), SubtaskSpan(half, steps, "touch"))
        assert list(found.keyframes) == [half - 1]  # the last step of each subtask but the last


def test_without_subtasks_it_is_said_what_can_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no subtasks in its columns: `--subtasks instruction` .* `--subtasks FILE"):
        run_command("import", "lerobot", RELEASED, "--out", tmp_path / "out")
    with pytest.raises(ValueError, match=r"--subtasks instrction: .*did you mean `?instruction"):
        run_command("import", "lerobot", RELEASED, "--out", tmp_path / "out", "--subtasks", "instrction")
    assert not (tmp_path / "out").exists()


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "spans.csv"
    path.write_text(text)
    return path


def test_subtasks_of_a_table(tmp_path: Path) -> None:
    text = "episode,label,start,end,note\n0,touch,5,14,x\n0,look,0,5,\n1,all,0,3,\n2,all,0,5,\n"
    source = lerobot_source(RELEASED, read_spans(table(tmp_path, text)))
    assert read(source).subtasks == (SubtaskSpan(0, 5, "look"), SubtaskSpan(5, 14, "touch"))
    assert read(source, 2).subtasks == (SubtaskSpan(0, 5, "all"),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("episode,start,label\n", "expected a first line with the columns episode, start, end, label; missing: end"),
        ("episode,start,end,label\n0,a,3,x\n", "line 2: expected whole numbers and a label"),
        ("episode,start,end,label\n0,0,14,x\n1,0,3,x\n", r"has no rows for 1 of 3 episodes: 2"),
    ],
)
def test_tables_that_cannot_be_used_at_all(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        lerobot_source(RELEASED, read_spans(table(tmp_path, text)))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("0,1,14,x", "the first subtask has to begin at step 0"),
        ("0,0,13,x", "the last subtask ends at 13, the episode has 14 steps"),
        ("0,0,4,x\n0,5,14,y", "'x' ends at 4, 'y' begins at 5"),
        ("0,0,5,x\n0,4,14,y", "'x' ends at 5, 'y' begins at 4"),
        ("0,0,14,", "expected a label"),
    ],
)
def test_spans_that_do_not_cover_an_episode(tmp_path: Path, rows: str, expected: str) -> None:
    others = "1,0,3,x\n2,0,5,x\n"
    source = lerobot_source(RELEASED, read_spans(table(tmp_path, f"episode,start,end,label\n{rows}\n{others}")))
    with pytest.raises(EpisodeError, match=expected):
        read(source)


def test_keyframes_by_the_motion_of_each_arm() -> None:
    arms = (Arm((0, 1, 2), 6), Arm((3, 4, 5), 6))
    state = episode(0)["proprio"]
    first, second = (extract_keyframes(state[:, arm.tcp], state[:, arm.gripper], 10) for arm in arms)
    assert list(read(lerobot_source(RELEASED, "instruction", arms=arms[:1])).keyframes) == list(first)
    assert read(lerobot_source(RELEASED, "instruction", arms=arms)).keyframes == sorted({*first, *second})
    assert {*first, *second} > set(first)
    with pytest.raises(ValueError, match="the state has 7 numbers, 0 to 6: there is no 9"):
        lerobot_source(RELEASED, "instruction", arms=[Arm((0, 1, 9), 6)])


def test_exported_copies_of_an_episode_are_numbered_anew(tmp_path: Path) -> None:
    """Copies have the task and seed of the recording that they were made of, so that their names would be the same."""
    for folder in ("episodes", "episodes/copy_2"):
        save(tmp_path / folder, make_episode(1, 1000))
    export_lerobot(tmp_path / "episodes", tmp_path / "lerobot", progress=False)
    with pytest.raises(EpisodeError, match=r"some of its 2 episodes have the same task_name and seed.* give --task"):
        lerobot_source(tmp_path / "lerobot", "columns")
    jobs = lerobot_source(tmp_path / "lerobot", "columns", task="put").jobs()
    assert jobs == [Job("put", 1000), Job("put", 1001)]


def test_cameras_sizes_names_and_numbers(tmp_path: Path) -> None:
    source = lerobot_source(RELEASED, "instruction", ["wrist"], 16, "touch", 1500)
    assert source.jobs() == [Job("touch", 1500), Job("touch", 1501), Job("touch", 1502)]
    store(source, source.jobs()[1], tmp_path)
    found = load_episode(episode_path(tmp_path, "touch", 1501))
    assert list(found.images) == ["wrist"] and found.images["wrist"].shape == (3, 16, 16, 3)
    with pytest.raises(ValueError, match="no camera 'front'; it has top, wrist"):
        lerobot_source(RELEASED, "instruction", ["front"])
    with pytest.raises(ValueError, match="seed 900000 is not a training seed"):
        lerobot_source(RELEASED, "instruction", first_seed=900_000)


def test_images_in_parquet_and_names_of_an_axis(released: Path) -> None:
    import io

    from PIL import Image

    def update(row: dict[str, Any]) -> None:
        file = io.BytesIO()
        Image.fromarray(episode(row["episode_index"])["image"][row["frame_index"]]).save(file, "PNG")
        row["observation.images.top"] = {"bytes": file.getvalue(), "path": "frame.png"}

    change(released / "data/chunk-000/file-000.parquet", update)
    features = json.loads((released / "meta/info.json").read_text())["features"]
    features["observation.images.top"]["dtype"] = "image"
    features["observation.images.wrist"]["info"]["video.is_depth_map"] = True
    features["observation.state"]["names"] = {"motors": list("abcdefg")}
    features["action"]["names"] = ["one", "name"]  # not one for each number
    change_info(released, features=features)
    found = read(lerobot_source(released, "instruction"), 2)
    shown = list(found.images)
    assert [list(images) for images in shown] == [["top"]] * 5  # depth is no image for a planner
    np.testing.assert_array_equal(np.stack([images["top"] for images in shown]), episode(2)["image"])
    assert found.metadata["state_names"] == list("abcdefg") and "action_names" not in found.metadata


def cut_video(root: Path) -> None:
    path = root / "videos/observation.images.top/chunk-000/file-000.mp4"
    path.write_bytes(path.read_bytes()[:900])


def no_video(root: Path) -> None:
    (root / "videos/observation.images.wrist/chunk-000/file-000.mp4").unlink()


def late_video(root: Path) -> None:
    key = "videos/observation.images.top/from_timestamp"
    change(root / "meta/episodes/chunk-000/file-000.parquet", lambda row: row.update({key: row[key] + 20 / 10}))


def lost_rows(root: Path) -> None:
    path = root / "data/chunk-000/file-000.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(1), path)


def not_a_number(root: Path) -> None:
    change(root / "data/chunk-000/file-000.parquet", lambda row: row["action"].__setitem__(3, float("nan")))


def other_tasks(root: Path) -> None:
    change(root / "data/chunk-000/file-000.parquet", lambda row: row.update(task_index=row["frame_index"] // 2))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (cut_video, r"file-000\.mp4 has no frame at 0\.000 s, .* it is truncated, or meta/episodes does not belong"),
        (no_video, r"file-000\.mp4 cannot be decoded \(missing, truncated or damaged\?\)"),
        (late_video, r"file-000\.mp4 has no frame at 2\.200 s, which is step 2 of the episode"),
        (lost_rows, r"episode 0 has 14 steps by meta/episodes, there are 13 rows"),
        (not_a_number, r"episode 0: the actions of step 0 are not finite"),
        (other_tasks, r"expected one task for all of its steps"),
    ],
)
def test_damaged_episodes_are_told_of(
    released: Path, tmp_path: Path, damage: Callable[[Path], None], expected: str
) -> None:
    damage(released)
    source = lerobot_source(released, "instruction")
    with pytest.raises(EpisodeError, match=expected):
        store(source, source.jobs()[0], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.h5*"))


def test_damaged_data_sets_are_told_of_at_once(released: Path, tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"is no LeRobotDataset: it has no meta/info\.json"):
        lerobot_source(tmp_path)
    change_info(released, codebase_version="v2.1")
    with pytest.raises(EpisodeError, match=r"a LeRobotDataset v2\.1; this reads v3\.0.*convert_dataset_v21_to_v30"):
        lerobot_source(released)
    change_info(released, codebase_version="v3.0", total_episodes=4)
    with pytest.raises(EpisodeError, match="tells of 4 episodes, meta/episodes of 3"):
        lerobot_source(released)
    (released / "meta/tasks.parquet").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(EpisodeError, match=r"tasks\.parquet cannot be read .*a pointer of git LFS"):
        lerobot_source(released)


def test_an_import_goes_on_and_keeps_to_its_options(released: Path, tmp_path: Path) -> None:
    """One video is broken: its episode is told of, the others are there, and it comes with --retry-errors."""
    by_words(released, ["look", "touch"])
    whole = tmp_path / "whole.parquet"
    data = released / "data/chunk-000/file-000.parquet"
    shutil.copy(data, whole)
    change(data, lambda row: row.update(subtask="" if row["episode_index"] == 1 else row["subtask"]))
    command = ("import", "lerobot", released, "--out", tmp_path / "out")
    assert "2 of 3 episodes kept" in run_command(*command)
    assert "has no subtask" in next((tmp_path / "out/errors").iterdir()).read_text()
    gone = episode_path(tmp_path / "out", FOLDER, 1002)
    gone.unlink()
    kept = episode_path(tmp_path / "out", FOLDER, 1000)
    written_ns = kept.stat().st_mtime_ns
    shutil.copy(whole, data)
    assert "3 of 3 episodes kept" in run_command(*command, "--retry-errors")
    assert gone.exists() and kept.stat().st_mtime_ns == written_ns
    with pytest.raises(ValueError, match=r"was made with something else: .*cameras"):
        run_command(*command, "--cameras", "top")


def test_an_imported_episode_can_be_trained_on(tmp_path: Path) -> None:
    """As its user goes on: SFT data for the planner."""
    text = "episode,start,end,label\n" + "".join(f"{n},0,1,look\n{n},1,{s},touch\n" for n, s in enumerate(LENGTHS))
    options = ("--subtasks", table(tmp_path, text), "--task", "t")
    run_command("import", "lerobot", RELEASED, "--out", tmp_path / "episodes", *options)
    run_command("export", "sft", "--episodes", tmp_path / "episodes", "--out", tmp_path / "sft", "--samples", 6)
    answers = [
        json.loads(json.loads(line)["messages"][-1]["content"])
        for line in (tmp_path / "sft/train.jsonl").read_text().splitlines()
    ]
    assert {"look", "touch"} >= {next(v for v in answer.values() if isinstance(v, str)) for answer in answers}
    assert isinstance(load_episode(list_episodes(tmp_path / "episodes")[0]), Episode)
