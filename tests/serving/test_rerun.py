"""Episodes for the Rerun viewer, read back with Rerun's own reader."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.types import Frame, Plan
from predimem.serving.config import StateConfig
from predimem.serving.rerun import recording_of_kept, write_rerun
from predimem.serving.store import open_state

pytestmark = pytest.mark.needs("rerun")


def read(path: Path, entity: str, index: str = "step") -> list[dict[str, Any]]:
    """The rows of an entity such as `/subtask` by `index`; their columns are its components', such as
    `TextDocument:text`, and the timelines'."""
    from rerun.chunk import RrdReader

    chunks = [chunk for chunk in RrdReader(path).stream() if chunk.entity_path == entity and not chunk.is_static]
    rows = [row for chunk in chunks for row in chunk.to_record_batch().to_pylist()]
    return sorted(rows, key=lambda row: row[index])


def verify(path: Path) -> None:
    """By the Rerun that is installed, the newest one at the time of its pin. Others are asked by
    `python -m benchmarks.rerun_versions`."""
    rerun = Path(sys.executable).with_name("rerun")
    subprocess.run([rerun, "rrd", "verify", path], check=True, timeout=60)


def export(*arguments: str) -> None:
    from typer.testing import CliRunner

    from predimem.cli.app import app

    done = CliRunner().invoke(app, ["export", "rerun", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    store = open_state(folder, StateConfig())
    key = store.begin("arm/1", "do it")
    for step, subtask, nominated in ((0, "look", (0,)), (5, "look", ()), (9, "go", (9,))):
        frame = Frame(step, step / 20, {"cam_b": np.full((8, 8, 3), 200 + step, np.uint8)})
        store.keep(key, Plan("arm/1", step, subtask, nominated, confidence=0.5 + step / 100), {step: frame})
    store.close()
    yield folder


def texts(rows: list[dict[str, Any]], column: str) -> list[tuple[int, str]]:
    return [(row["step"], row[column][0]) for row in rows if row.get(column)]


def test_a_served_episode(state_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "episode.rrd"
    export("arm/1", "--state-dir", str(state_dir), "--out", str(out))
    assert [path.name for path in out.parent.iterdir()] == ["episode.rrd"]
    assert texts(read(out, "/subtask"), "TextDocument:text") == [(0, "look"), (9, "go")]
    images = [row["step"] for row in read(out, "/cameras/cam_b")]
    assert images == [0, 5, 9] and [row["step"] for row in read(out, "/keyframes/cam_b")] == [0, 9]
    values = [row["Scalars:scalars"][0] for row in read(out, "/confidence")]
    np.testing.assert_allclose(values, [0.5, 0.55, 0.59])
    verify(out)


def test_a_damaged_image_is_left_out(state_dir: Path, tmp_path: Path) -> None:
    store = open_state(state_dir, StateConfig())
    found = store.find("arm/1")
    assert found is not None
    store.image_file(found.key, 0, 0).write_bytes(b"cut")
    store.close()
    write_rerun(recording_of_kept(state_dir, "arm/1", 20), tmp_path / "episode.rrd")
    assert [row["step"] for row in read(tmp_path / "episode.rrd", "/cameras/cam_b")] == [5, 9]


def test_a_demonstration(tmp_path: Path) -> None:
    images = {"cam": np.zeros((4, 8, 8, 3), np.uint8)}
    spans = (SubtaskSpan(0, 2, "open"), SubtaskSpan(2, 4, "close"))
    state, actions = np.arange(8, dtype=np.float32).reshape(4, 2), np.zeros((4, 3), np.float32)
    episode = Episode("s", "t", 1, "do it", 20.0, True, images, state, actions, spans, (1, 3))
    save_episode(tmp_path / "seed0000000001.h5", episode)
    out = tmp_path / "episode.rrd"
    export(str(tmp_path / "seed0000000001.h5"), "--out", str(out))
    assert texts(read(out, "/subtask"), "TextDocument:text") == [(0, "open"), (2, "close")]
    assert [row["step"] for row in read(out, "/keyframes/cam")] == [1, 3]
    assert [row["Scalars:scalars"] for row in read(out, "/state")] == state.tolist()
    verify(out)


def test_what_is_not_there(state_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no episode 'x'; the last ones are: arm/1"):
        recording_of_kept(state_dir, "x", 20)
    with pytest.raises(ValueError, match=r"holds no memory store"):
        recording_of_kept(tmp_path, "x", 20)
