"""What RoboMemArena's builder of RLDS data reads of our export: its contract, restated (revision of May 2026).

The builder reads the folders `*_dataset` right below its root, `subtask_data/*.hdf5` in them, and in each file
`data/demo_0`, `demo_1`, ... until it has as many as there are. TFDS refuses images of another size or type.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from datagen.export.robomemarena import export_robomemarena
from datagen.imports.robomemarena import import_robomemarena
from predimem.core.episode_folder import episode_path
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode
from predimem.core.frames import EpisodeError
from predimem.envs.arena.tasks import TASKS
from tests.datagen.export.builders import make_episode, save

IMAGES = {"image": "agentview_rgb", "wrist_image": "eye_in_hand_rgb"}
SIZE = (256, 256, 3)


@dataclass
class Built:
    """One example of the RLDS data set, arrays [T, ...]."""

    instruction: str
    images: dict[str, np.ndarray]
    state: np.ndarray
    joint_state: np.ndarray
    action: np.ndarray


def build(data_root: Path) -> list[Built]:
    """The examples by the names of their files. Raises ValueError for what TFDS would refuse."""
    return [_build(path) for path in sorted(data_root.glob("*_dataset/subtask_data/*.hdf5"), key=lambda p: p.name)]


def _build(path: Path) -> Built:
    *words, _order, _seed, _task = path.stem.split("_")
    with h5py.File(path, "r") as file:
        assert list(file["data"]) == ["demo_0"]
        demo = file["data/demo_0"]
        images = {theirs: demo[f"obs/{ours}"][()] for theirs, ours in IMAGES.items()}
        state = np.concatenate([demo["obs/ee_states"][()], demo["obs/gripper_states"][()]], axis=-1)
        joints, actions = demo["obs/joint_states"][()], demo["actions"][()]
    steps = len(actions)
    for name, frames in images.items():
        if frames.shape[1:] != SIZE or frames.dtype != np.uint8:
            raise ValueError(f"{path.name}: {name} is {frames.dtype} {frames.shape[1:]}, not uint8 {SIZE}")
        assert len(frames) == steps
    for values, width in ((state, 8), (joints, 7), (actions, 7)):
        if values.shape != (steps, width) or not np.can_cast(values.dtype, np.float32, "same_kind"):
            raise ValueError(f"{path.name}: {values.dtype} {values.shape}, not numbers {(steps, width)}")
    return Built(" ".join(words), images, *(array.astype(np.float32) for array in (state, joints, actions)))


def test_the_folder_of_a_category_is_its_root(tmp_path: Path) -> None:
    episode = make_episode(1, 1000, steps_each=2, px=256)
    export_robomemarena(save(tmp_path / "episodes", episode), tmp_path / "out", progress=False)
    assert build(tmp_path / "out") == []  # it looks no deeper
    built = build(tmp_path / "out/sequence")
    # The folders of tasks have different names in all categories, so that links to all of them make one root.
    names = [f"{task.task_id}_{task.name}" for task in TASKS]
    assert len(set(names)) == len(names) == 26
    (tmp_path / "all").mkdir()
    for folder in (tmp_path / "out").glob("*/*_dataset"):
        (tmp_path / "all" / folder.name).symlink_to(folder)
    assert len(build(tmp_path / "all")) == len(built) == 4


def test_it_reads_what_was_recorded(tmp_path: Path) -> None:
    episode = make_episode(1, 1000, steps_each=2, px=256)
    export_robomemarena(save(tmp_path / "episodes", episode), tmp_path / "out", progress=False)
    built = {example.instruction: example for example in build(tmp_path / "out/sequence")}
    for span in episode.subtasks:
        example, steps = built[span.label.partition(":")[0]], slice(span.start, span.end)
        for theirs, ours in IMAGES.items():
            np.testing.assert_array_equal(example.images[theirs], episode.images[ours][steps])
        np.testing.assert_array_equal(example.action, episode.actions[steps])
        np.testing.assert_array_equal(example.state[:, :3], episode.state[steps, :3])
        np.testing.assert_allclose(example.state[:, 6] - example.state[:, 7], episode.state[steps, 9], rtol=1e-6)
        np.testing.assert_array_equal(example.joint_state, episode.state[steps, 10:])


def test_other_sizes_have_to_be_scaled(tmp_path: Path) -> None:
    episode = make_episode(1, 1000, steps_each=1, px=128)
    episodes, out = save(tmp_path / "episodes", episode), tmp_path / "out"
    with pytest.raises(EpisodeError, match=r"takes images of 256 x 256 px only, those of agentview_rgb are 128 x 128"):
        export_robomemarena(episodes, out, progress=False)
    assert not out.exists()
    export_robomemarena(episodes, out, 128, progress=False)
    with pytest.raises(ValueError, match=r"not uint8 \(256, 256, 3\)"):
        build(out / "sequence")

    export_robomemarena(episodes, tmp_path / "large", 256, progress=False)
    (example, *_) = build(tmp_path / "large/sequence")
    back = np.asarray(Image.fromarray(example.images["image"][0]).resize((128, 128), Image.Resampling.BOX))
    assert np.abs(back.astype(int) - episode.images["agentview_rgb"][0]).max() <= 2  # the same picture, nothing added
    import_robomemarena(tmp_path / "large", tmp_path / "back", progress=False)
    read = load_episode(episode_path(tmp_path / "back", episode.task, episode.seed))
    recorded = {"images_recorded_px": {"agentview_rgb": 128, "eye_in_hand_rgb": 128}}
    assert read.metadata == dict(episode.metadata) | recorded


@pytest.mark.parametrize("image_px", [0, -1])
def test_a_size_that_is_none(tmp_path: Path, image_px: int) -> None:
    with pytest.raises(ValueError, match="1 px or more"):
        export_robomemarena(tmp_path, tmp_path / "out", image_px, progress=False)


def test_images_that_are_not_square(tmp_path: Path) -> None:
    made: Episode = make_episode(1, 1000, steps_each=1, px=16)
    wide = {name: np.asarray(frames)[:, :8] for name, frames in made.images.items()}
    save(tmp_path / "episodes", Episode(**{**vars(made), "images": wide}))
    with pytest.raises(EpisodeError, match="images are square, those of agentview_rgb are 16 x 8 px"):
        export_robomemarena(tmp_path / "episodes", tmp_path / "out", 256, progress=False)
