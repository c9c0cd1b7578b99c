"""RoboMME's HDF5 files, written here in its layout (its doc/h5_data_format.md), become episodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from datagen.imports.robomme import import_robomme
from predimem.core.episode_reader import load_episode
from predimem.core.frames import EpisodeError
from predimem.jobs.journal import JournalError

VIDEO, ACTED = 6, 8
NAME, GROUNDED = (
    "pick up the container that hides the red cube",
    "pick up the container at <100, 40> that hides the red cube",
)


def write(path: Path, episodes: tuple[int, ...] = (3,), size: int = 256, **changes: Any) -> Path:
    """changes: the value of a dataset of each timestep, by its name, in place of the right one, or a function of the
    step; None leaves it out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for number in episodes:
            group = file.create_group(f"episode_{number}")
            group["setup/seed"], group["setup/difficulty"] = 13_300, "easy"
            group.create_dataset("setup/task_goal", data=[b"watch the video carefully", b"watch it"])
            for step in range(VIDEO + ACTED):
                values: dict[str, Any] = {
                    "obs/front_rgb": np.full((size, size, 3), step, np.uint8),
                    "obs/wrist_rgb": np.full((size, size, 3), 100 + step, np.uint8),
                    "obs/joint_state": np.full(7, step / 10, np.float32),
                    "obs/eef_state": np.arange(6, dtype=np.float32) + step,
                    "obs/gripper_state": np.full(2, 0.04 if step < 3 else 0.0, np.float32),
                    "action/joint_action": np.full(8, step / 5, np.float32),
                    "info/simple_subgoal": (NAME if step < VIDEO + 5 else "put down the container").encode(),
                    "info/grounded_subgoal": (GROUNDED if step < VIDEO + 5 else "put down the container").encode(),
                    "info/is_video_demo": step < VIDEO,
                    **changes,
                }
                for name, given in values.items():
                    value = given(step) if callable(given) else given
                    if value is not None:
                        group[f"timestep_{step}/{name}"] = value
    return path


def test_an_episode(tmp_path: Path) -> None:
    file = write(tmp_path / "record_dataset_VideoUnmask.h5", (3, 12))
    assert import_robomme(file, tmp_path / "out", image_px=64, image_every=2, progress=False)[1].steps == VIDEO + ACTED
    episode = load_episode(tmp_path / "out/VideoUnmask/seed0000001003.h5")
    assert (episode.benchmark, episode.task, episode.instruction) == (
        "robomme",
        "VideoUnmask",
        "watch the video carefully",
    )
    assert (len(episode), episode.video_steps, episode.success) == (VIDEO + ACTED, VIDEO, True)
    assert [(span.start, span.end, span.label) for span in episode.subtasks] == [
        (0, 6, "watch the video"),
        (6, 11, "pick up the container at row 6 column 2"),
        (11, 14, "put down the container"),
    ]
    assert episode.keyframes == (3, 11)  # the gripper closes at 3, and the end of the video at 6 comes right after it
    np.testing.assert_allclose(episode.state[4], [0.4] * 7 + [0.0, 0.0, 4.0, 5.0, 6.0], rtol=1e-6)
    np.testing.assert_allclose(episode.actions[9], 9 / 5, rtol=1e-6)
    front = episode.images["base_camera"]
    assert front.shape == (14, 64, 64, 3) and len(front.images) == 7
    assert front[5][0, 0, 0] == 4 and episode.images["hand_camera"][6][0, 0, 0] == 106
    there = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.h5")}
    assert len(import_robomme(file.parent, tmp_path / "out", image_px=64, image_every=2, progress=False)) == 2
    assert there == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.h5")}
    with pytest.raises(JournalError, match=r"image_every \(was 2, is 1\)"):
        import_robomme(file, tmp_path / "out", image_px=64, progress=False)


def test_what_is_out_of_view_is_where_its_own_subgoal_has_it(tmp_path: Path) -> None:
    def simple(step: int) -> bytes:
        return (NAME if step < 10 else NAME.replace("red", "green")).encode()

    def grounded(step: int) -> bytes:
        """The red one is lost from sight in its last step, the green one in its first two."""
        if 9 <= step <= 11:
            return simple(step)
        return (GROUNDED if step < 10 else GROUNDED.replace("100, 40", "40, 100").replace("red", "green")).encode()

    changes = {"info/simple_subgoal": simple, "info/grounded_subgoal": grounded}
    import_robomme(write(tmp_path / "record_dataset_VideoUnmask.h5", **changes), tmp_path / "out", progress=False)
    episode = load_episode(tmp_path / "out/VideoUnmask/seed0000001003.h5")
    assert [(span.start, span.label) for span in episode.subtasks[1:]] == [
        (6, "pick up the container at row 6 column 2"),
        (10, "pick up the container at row 2 column 6"),
    ]


def test_timesteps_go_by_number_and_the_images_may_stay_as_they_are(tmp_path: Path) -> None:
    file = write(tmp_path / "record_dataset_VideoUnmask.h5", size=32)
    import_robomme(file, tmp_path / "out", progress=False)
    episode = load_episode(tmp_path / "out/VideoUnmask/seed0000001003.h5")
    assert [int(image[0, 0, 0]) for image in episode.images["base_camera"]] == list(range(14))


def test_where_nothing_was_commanded_the_arm_stays(tmp_path: Path) -> None:
    file = write(tmp_path / "record_dataset_StopCube.h5", **{"action/joint_action": "None"})
    import_robomme(file, tmp_path / "out", progress=False)
    episode = load_episode(tmp_path / "out/StopCube/seed0000001003.h5")
    np.testing.assert_allclose(episode.actions, np.tile([0.0] * 7 + [1.0], (14, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("VideoUnmask", {"obs/wrist_rgb": None}, r"episode_3/timestep_0/obs/wrist_rgb cannot be read \(missing"),
        ("VideoUnmask", {"obs/front_rgb": np.zeros((8, 8))}, r"front_rgb: expected uint8 .* got float64 \[8, 8\]"),
        ("VideoUnmask", {"obs/joint_state": np.zeros(3)}, r"joint_state: expected 7 finite numbers, got float64 \[3\]"),
        ("VideoUnmask", {"action/joint_action": np.zeros(5)}, r"joint_action: expected 8 finite numbers, got \[5\]"),
        ("VideoUnmask", {"info/grounded_subgoal": b"?"}, r"timestep_6/info/grounded_subgoal: expected a place <y, x>"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_the_rest_is_imported(
    tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    write(tmp_path / "in" / f"record_dataset_{name}.h5", size=8, **changes)
    write(tmp_path / "in" / "record_dataset_MoveCube.h5", size=8)
    wrong, right = sorted(import_robomme(tmp_path / "in", tmp_path / "out", progress=False), key=lambda o: o.kept)
    assert wrong.is_error and wrong.task == name and right.kept and right.task == "MoveCube"
    assert re.search(message, (tmp_path / "out" / "errors" / f"{name}-seed0000001003.txt").read_text())
    assert [path.parent.name for path in (tmp_path / "out").rglob("seed*.h5")] == ["MoveCube"]


def test_files_that_cannot_be_told_apart_or_are_not_robommes(tmp_path: Path) -> None:
    unknown = write(tmp_path / "record_dataset_Unknown.h5", size=8)
    with pytest.raises(EpisodeError, match=r"expected a name record_dataset_<task>\.h5, with a task of BinFill"):
        import_robomme(unknown, tmp_path / "out", progress=False)
    for folder in ("first", "second"):
        write(tmp_path / "both" / folder / "record_dataset_MoveCube.h5", size=8)
    with pytest.raises(EpisodeError, match="both have the episodes of MoveCube: import one of them"):
        import_robomme(tmp_path / "both", tmp_path / "out", progress=False)
    assert not list(tmp_path.rglob("seed*"))


def test_a_damaged_file_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"expected a file record_dataset_<task>.h5 of RoboMME, or a folder"):
        import_robomme(tmp_path, tmp_path / "out", progress=False)
    file = write(tmp_path / "record_dataset_MoveCube.h5", size=8)
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(EpisodeError, match=r"record_dataset_MoveCube.h5 cannot be read \(truncated"):
        import_robomme(file, tmp_path / "out", progress=False)
