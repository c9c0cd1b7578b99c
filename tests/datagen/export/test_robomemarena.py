"""RoboMemArena's layout, read with h5py; and back into episodes, with everything that can be wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from datagen.export.arena_state import OPENING, POSITION
from datagen.export.robomemarena import CAMERAS, export_robomemarena
from datagen.imports.robomemarena import BLOCK, group_files, import_episode, import_robomemarena, parse_name
from datagen.imports.robomemarena_command import import_in_workers
from datagen.keyframes import KeyframeConfig, extract_keyframes
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import EpisodeError
from predimem.envs.arena.tasks import TASKS
from tests.datagen.export.builders import PX, make_episode, play_episode, run_command, save

FOLDER = "sequence/1_cookies_sauce_into_target_container_dataset/subtask_data"
FIRST = f"{FOLDER}/pick_cookies_0_seed1000_task1.hdf5"
SIMPLE = [
    "benchmark",
    "task",
    "seed",
    "instruction",
    "control_hz",
    "success",
    "subtasks",
    "keyframes",
    "goal",
    "metadata",
]
SECOND = f"{FOLDER}/place_cookies_into_basket_1_seed1000_task1.hdf5"


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    save(tmp_path / "episodes", make_episode(1, 1000))
    export_robomemarena(tmp_path / "episodes", tmp_path / "out", PX, progress=False)
    return tmp_path / "out"


def check_equal(read: Episode, written: Episode) -> None:
    """All but the rotation, which is turned into another representation, exactly."""
    names = (
        "benchmark",
        "task",
        "seed",
        "instruction",
        "control_hz",
        "success",
        "subtasks",
        "keyframes",
        "goal",
        "metadata",
    )
    for name in names:
        assert getattr(read, name) == getattr(written, name), name
    assert list(read.images) == list(CAMERAS)
    for camera, frames in written.images.items():
        np.testing.assert_array_equal(read.images[camera], frames)
    np.testing.assert_array_equal(read.actions, written.actions)
    np.testing.assert_array_equal(np.delete(read.state, np.s_[3:9], 1), np.delete(written.state, np.s_[3:9], 1))
    np.testing.assert_allclose(read.state[:, 3:9], written.state[:, 3:9], atol=1e-6)
    assert (read.state.dtype, read.actions.dtype) == (np.float32, np.float32)


def test_names_shapes_and_types_are_the_released_ones(exported: Path) -> None:
    files = sorted(p.relative_to(exported).as_posix() for p in exported.rglob("*") if p.is_file())
    labels = ["pick_cookies_0", "pick_tomato_sauce_2", "place_cookies_into_basket_1", "place_tomato_into_basket_3"]
    assert files == [f"{FOLDER}/{label}_seed1000_task1.hdf5" for label in labels]
    expected = {
        "actions": ((5, 7), "float64"),
        "obs/agentview_rgb": ((5, PX, PX, 3), "uint8"),
        "obs/eye_in_hand_rgb": ((5, PX, PX, 3), "uint8"),
        "obs/ee_states": ((5, 6), "float64"),
        "obs/gripper_states": ((5, 2), "float64"),
        "obs/joint_states": ((5, 7), "float64"),
    }
    with h5py.File(exported / SECOND) as file:
        found = {}
        file["data/demo_0"].visititems(
            lambda name, item: found.update({name: (item.shape, item.dtype.name)}) if hasattr(item, "shape") else None
        )
        assert found == expected
        np.testing.assert_array_equal(file["data/demo_0/actions"], make_episode(1, 1000).actions[5:10])


def test_every_task_comes_back(tmp_path: Path) -> None:
    episodes = [make_episode(task.task_id, 1000 + task.task_id, steps_each=2, px=4) for task in TASKS]
    save(tmp_path / "episodes", *episodes)
    files = export_robomemarena(tmp_path / "episodes", tmp_path / "out", 4, progress=False)
    assert len(files) == sum(task.stages for task in TASKS)
    assert import_robomemarena(tmp_path / "out", tmp_path / "back", progress=False) == len(TASKS)
    for episode in episodes:
        check_equal(load_episode(episode_path(tmp_path / "back", episode.task, episode.seed)), episode)


def test_what_the_oracle_played_comes_back(tmp_path: Path) -> None:
    episode = play_episode()
    assert [span.label for span in episode.subtasks] == ["pick cookies", "place cookies into basket: basket right"]
    save(tmp_path / "episodes", episode)
    export_robomemarena(tmp_path / "episodes", tmp_path / "out", 64, progress=False)
    import_robomemarena(tmp_path / "out", tmp_path / "back", progress=False)
    check_equal(load_episode(episode_path(tmp_path / "back", episode.task, episode.seed)), episode)


def as_released(root: Path, episode: Episode, task_id: int, folder: str) -> None:
    """Files as others write them: no notes of ours, more datasets than we read, another number of the demo."""
    bounds = [(span.start, span.end, span.label) for span in episode.subtasks]
    where = root / folder / "subtask_data"
    where.mkdir(parents=True)
    for order, (start, end, label) in enumerate(bounds):
        name = f"{label.replace(' ', '_')}_{order}_seed{episode.seed}_task{task_id}.hdf5"
        with h5py.File(where / name, "w") as file:
            demo = file.create_group("data/demo_7")
            demo["actions"] = episode.actions[start:end].astype(np.float64)
            demo["rewards"] = np.zeros(end - start, np.uint8)
            demo["obs/ee_pos"] = episode.state[start:end, POSITION]
            demo["obs/ee_states"] = np.pad(episode.state[start:end, POSITION], ((0, 0), (0, 3))).astype(np.float64)
            half_m = episode.state[start:end, OPENING] / 2
            demo["obs/gripper_states"] = np.stack([half_m, -half_m], axis=1)
            demo["obs/joint_states"] = episode.state[start:end, 10:]
            for camera in CAMERAS:
                demo[f"obs/{camera}"] = episode.images[camera][start:end]


@pytest.mark.parametrize("variant", [0, 1, 5])
def test_files_of_others_become_episodes(tmp_path: Path, variant: int) -> None:
    """In task 11 the drawers, and with them subtasks and instruction, differ from variant to variant."""
    task = TASKS[10]
    made = make_episode(11, 1002 + variant)  # 1002 is a multiple of the 6 variants
    as_released(tmp_path / "data", made, 11, "Some Category/11_cookies_chocolate_drawer_dataset")
    assert import_robomemarena(tmp_path / "data", tmp_path / "out", progress=False) == 1
    read = load_episode(episode_path(tmp_path / "out", task.name, made.seed))
    assert (read.benchmark, read.task, read.control_hz, read.success) == ("robomemarena", task.name, 20.0, True)
    assert read.instruction == task.variants[variant].instruction != task.variants[variant - 1].instruction
    assert read.subtasks == made.subtasks and read.keyframes == made.keyframes
    np.testing.assert_array_equal(read.images["agentview_rgb"], made.images["agentview_rgb"])
    np.testing.assert_array_equal(read.actions, made.actions)
    np.testing.assert_array_equal(read.state[:, POSITION], made.state[:, POSITION])
    np.testing.assert_array_equal(read.state[:, 3:9], np.tile([1, 0, 0, 0, 1, 0], (len(read), 1)))  # not turned
    np.testing.assert_array_equal(read.state[:, 9:], made.state[:, 9:])


def test_keyframes_are_recomputed_by_the_given_thresholds(exported: Path) -> None:
    (files,) = group_files(exported).values()
    config = KeyframeConfig(speed_epsilon_m_s=0.3, direction_theta_deg=60.0)
    read, made = import_episode(files, config), make_episode(1, 1000)
    expected = extract_keyframes(made.state[:, POSITION], made.state[:, OPENING], 20.0, config)
    assert read.keyframes == expected != made.keyframes


def test_orders_of_two_digits_are_numbers() -> None:
    file = parse_name(Path("a/b_dataset/subtask_data/pour_sauce_2_10_seed104_task7.hdf5"))
    assert (file.label, file.order, file.seed, file.task_id) == ("pour sauce 2", 10, 104, 7)


@pytest.mark.parametrize(("gone", "named"), [(0, "0"), (1, "1"), (3, "3")])
def test_a_missing_subtask(exported: Path, tmp_path: Path, gone: int, named: str) -> None:
    next(exported.rglob(f"*_{gone}_seed*.hdf5")).unlink()
    with pytest.raises(EpisodeError, match=rf"{FOLDER}, seed 1000, task 1: the files of the subtasks {named} are"):
        import_robomemarena(exported, tmp_path / "back", progress=False)
    assert not list((tmp_path / "back").rglob("*.h5"))


def test_a_missing_last_subtask_of_a_released_episode(tmp_path: Path) -> None:
    made = make_episode(1, 1000)
    short = replace(made, subtasks=made.subtasks[:3])
    as_released(tmp_path / "data", short, 1, "1_cookies_dataset")
    with pytest.raises(EpisodeError, match="the files of the subtasks 3 are missing"):
        import_robomemarena(tmp_path / "data", tmp_path / "back", progress=False)


def alter(path: Path, name: str, values: np.ndarray) -> None:
    with h5py.File(path, "r+") as file:
        del file[f"data/demo_0/{name}"]
        file[f"data/demo_0/{name}"] = values


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("obs/ee_states", np.zeros((4, 6)), "obs/ee_states has 4 steps, the actions have 5"),
        ("obs/agentview_rgb", np.zeros((6, PX, PX, 3), np.uint8), "obs/agentview_rgb has 6 steps"),
        ("obs/gripper_states", np.zeros((5, 1)), r"numbers \[T, 2\], it is float64 \[5, 1\]"),
        ("obs/agentview_rgb", np.zeros((5, PX, PX, 3)), r"uint8 \[T, H, W, 3\], it is float64"),
        ("obs/joint_states", np.full((5, 7), np.nan), "not finite"),
        ("obs/eye_in_hand_rgb", np.zeros((5, 8, 8, 3), np.uint8), r"eye_in_hand_rgb is \(8, 8, 3\)"),
    ],
)
def test_a_file_that_does_not_fit_is_named(
    exported: Path, tmp_path: Path, name: str, values: np.ndarray, message: str
) -> None:
    alter(exported / SECOND, name, values)
    with pytest.raises(EpisodeError, match=message) as caught:
        import_robomemarena(exported, tmp_path / "back", progress=False)
    assert str(exported / SECOND) in str(caught.value)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(exported: Path, tmp_path: Path, kept: float) -> None:
    content = (exported / SECOND).read_bytes()
    (exported / SECOND).write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(EpisodeError, match="cannot be read") as caught:
        import_robomemarena(exported, tmp_path / "back", progress=False)
    assert str(exported / SECOND) in str(caught.value)


def test_a_damaged_image_is_named(exported: Path, tmp_path: Path) -> None:
    with h5py.File(exported / SECOND, "r") as file:
        place = file["data/demo_0/obs/agentview_rgb"].id.get_chunk_info(3)
    content = bytearray((exported / SECOND).read_bytes())
    content[place.byte_offset + place.size // 2] ^= 1
    (exported / SECOND).write_bytes(content)
    with pytest.raises(EpisodeError, match="cannot be read") as caught:
        import_robomemarena(exported, tmp_path / "back", progress=False)
    assert str(exported / SECOND) in str(caught.value)
    assert not [path for path in (tmp_path / "back").rglob("*") if path.is_file()]


def test_images_are_read_in_blocks_and_in_any_order(tmp_path: Path) -> None:
    made = make_episode(1, 1000, steps_each=2 * BLOCK + 3)
    export_robomemarena(save(tmp_path / "episodes", made), tmp_path / "hdf5", PX, progress=False)
    (files,) = group_files(tmp_path / "hdf5").values()
    frames = import_episode(files).images["agentview_rgb"]
    order = np.random.default_rng(0).permutation(len(made))
    np.testing.assert_array_equal(frames[order], made.images["agentview_rgb"][order])
    np.testing.assert_array_equal(frames, made.images["agentview_rgb"])


def test_other_things_that_are_wrong_with_files(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match="no files <category>"):
        import_robomemarena(tmp_path / "episodes", tmp_path / "back", progress=False)
    with h5py.File(exported / FIRST, "r+") as file:
        file.create_group("data/demo_1")
    with pytest.raises(EpisodeError, match="expected one group data/demo_<n>, found 2"):
        import_robomemarena(exported, tmp_path / "back", progress=False)
    shutil.copytree(exported / FOLDER, exported / "other/other_dataset/subtask_data")
    with pytest.raises(EpisodeError, match="the same subtask of the same episode"):
        import_robomemarena(exported, tmp_path / "back", progress=False)
    shutil.rmtree(exported / "other")
    (exported / FOLDER / "pick_cookies.hdf5").touch()
    with pytest.raises(EpisodeError, match=r"pick_cookies\.hdf5: expected a name <primitive>"):
        import_robomemarena(exported, tmp_path / "back", progress=False)


def test_an_unknown_task(exported: Path, tmp_path: Path) -> None:
    stray = exported / FOLDER / "pick_cookies_0_seed1_task99.hdf5"
    shutil.rmtree(stray.parent)
    stray.parent.mkdir()
    stray.touch()
    with pytest.raises(EpisodeError, match=r"task99\.hdf5: there is no task 99; known are 1 to 26"):
        import_robomemarena(exported, tmp_path / "back", progress=False)


def test_an_interrupted_export_goes_on(exported: Path, tmp_path: Path) -> None:
    kept, gone = exported / FIRST, exported / SECOND
    stamp, content = kept.stat().st_mtime_ns, gone.read_bytes()
    gone.unlink()
    gone.with_name(f"{gone.name}.partial").write_bytes(b"interrupted")
    assert len(export_robomemarena(tmp_path / "episodes", exported, PX, progress=False)) == 4
    assert kept.stat().st_mtime_ns == stamp and len(gone.read_bytes()) == len(content)
    assert not list(exported.rglob("*.partial"))


def test_files_of_another_episode_are_not_overwritten(exported: Path, tmp_path: Path) -> None:
    save(tmp_path / "others", replace(make_episode(1, 1000), success=False))
    with pytest.raises(ValueError, match=r"does not come from .*choose another --out"):
        export_robomemarena(tmp_path / "others", exported, PX, progress=False)
    with pytest.raises(ValueError, match=r"is there already with images of 32 px, not 64: choose another --out"):
        export_robomemarena(tmp_path / "episodes", exported, 2 * PX, progress=False)
    (exported / FIRST).write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"cannot be read .*choose another --out"):
        export_robomemarena(tmp_path / "episodes", exported, PX, progress=False)
    assert (exported / FIRST).read_bytes() == b"something else"


def test_an_interrupted_import_goes_on(exported: Path, tmp_path: Path) -> None:
    assert import_robomemarena(exported, tmp_path / "back", progress=False) == 1
    (path,) = (tmp_path / "back").rglob("*.h5")
    stamp = path.stat().st_mtime_ns
    assert import_robomemarena(exported, tmp_path / "back", progress=False) == 1
    assert path.stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subtasks": (SubtaskSpan(0, 4, "pick cookies"),)}, "have to cover steps 0 to 20"),
        ({"subtasks": (SubtaskSpan(0, 20, "pick_cookies"),)}, "cannot be part of a file name"),
        ({"actions": np.zeros((20, 8), np.float32)}, "actions of 7"),
        ({"task": "Nothing"}, "unknown arena task"),
    ],
)
def test_episodes_that_the_layout_cannot_hold(tmp_path: Path, changes: dict, message: str) -> None:
    save(tmp_path / "episodes", replace(make_episode(1, 1000), **changes))
    with pytest.raises(ValueError, match=message):
        export_robomemarena(tmp_path / "episodes", tmp_path / "out", PX, progress=False)


def test_workers_and_instructions(exported: Path, tmp_path: Path) -> None:
    """A table says what the robot was told, for a task or one seed of it; the same command goes on."""
    table = tmp_path / "told.csv"
    table.write_text("task,seed,instruction\n1,,Tidy up.\n1,1000,Put both into the basket.\n")
    words = ["import", "robomemarena", "--data", exported, "--out", tmp_path / "back", "--workers", 2]
    assert "1 of 1 episodes kept" in run_command(*words, "--instructions", table)
    written = make_episode(1, 1000)
    path = episode_path(tmp_path / "back", written.task, 1000)
    check_equal(load_episode(path), replace(written, instruction="Put both into the basket."))
    stamp = path.stat().st_mtime_ns
    run_command(*words, "--instructions", table)
    assert path.stat().st_mtime_ns == stamp
    for text, message in (
        ("task,words\n", "missing: instruction"),
        ("task,instruction\n2,Pour.\n", "told.csv has no instruction for task 1"),
        ("task,instruction\none,Pour.\n", "line 2: expected the number of a task"),
        ("task,instruction\n1,Pour.\n1,Place.\n", "line 3: the same task and seed came before"),
    ):
        table.write_text(text)
        with pytest.raises(ValueError, match=message):
            import_in_workers(exported, tmp_path / "other", table)
