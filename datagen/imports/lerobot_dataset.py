"""The files of a LeRobotDataset, version 3.0: tables in `meta/`, numbers in parquet, images in MP4 or parquet.

A file may hold many episodes: `meta/episodes` says in which files an episode is, and from when on in a video.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datagen.imports.videos import read_frames
from predimem.core.frames import EpisodeError

VERSION = "v3."
IMAGES = "observation.images."
READ = "cannot be read (missing, truncated, or a pointer of git LFS?)"


@dataclass(frozen=True, eq=False)
class LeRobotDataset:
    """A data set, opened: its tables are in memory, its numbers and images are not.

    rows: of each episode, by number, its row of `meta/episodes`, without statistics.
    tasks, subtasks: index -> words; subtasks is empty where the data set has none.
    """

    root: Path
    info: Mapping[str, Any]
    rows: Mapping[int, Mapping[str, Any]]
    tasks: Mapping[int, str]
    subtasks: Mapping[int, str]

    @property
    def fps(self) -> float:
        return float(self.info["fps"])

    @property
    def features(self) -> Mapping[str, Mapping[str, Any]]:
        return self.info["features"]

    @property
    def cameras(self) -> dict[str, str]:
        """Name -> feature, of colour cameras: "top" -> "observation.images.top"."""
        colour = {
            key: feature
            for key, feature in self.features.items()
            if feature["dtype"] in ("image", "video") and not _is_depth(feature)
        }
        return {key.removeprefix(IMAGES): key for key in colour}

    def names(self, feature: str) -> list[str] | None:
        """What the numbers of a feature are called; None where that is not said, or not of each."""
        told, dim = self.features[feature].get("names"), self.features[feature]["shape"][0]
        if isinstance(told, Mapping):  # some name the axis: {"motors": [...]}
            told = next(iter(told.values())) if len(told) == 1 else list(told)
        names = [name for name in told or () if isinstance(name, str) and name]
        return names if len(set(names)) == len(names) == dim else None

    def numbers(self, episode: int, columns: Sequence[str]) -> dict[str, Any]:
        """Column -> array, one row a step, in order. Raises EpisodeError where steps are missing."""
        path, table = self._table(episode, ["frame_index", *columns])
        steps = self.rows[episode]["length"]
        order = np.argsort(table["frame_index"].to_numpy())
        if table["frame_index"].to_numpy()[order].tolist() != list(range(steps)):
            found = table.num_rows
            raise EpisodeError(f"{path}: episode {episode} has {steps} steps by meta/episodes, there are {found} rows")
        return {name: _array(table[name], path, name)[order] for name in columns}

    def frames(self, episode: int, feature: str) -> Iterator[np.ndarray]:
        """The images of one camera, uint8 [H, W, 3], one after another."""
        row = self.rows[episode]
        if self.features[feature]["dtype"] == "image":
            return self._stored_images(episode, feature)
        place = {name: row[f"videos/{feature}/{name}"] for name in ("chunk_index", "file_index")}
        path = self.root / self.info["video_path"].format(video_key=feature, **place)
        return read_frames(path, row[f"videos/{feature}/from_timestamp"], row["length"], self.fps)

    def _stored_images(self, episode: int, feature: str) -> Iterator[np.ndarray]:
        path, table = self._table(episode, ["frame_index", feature])
        cells = table.sort_by("frame_index")[feature].to_pylist()
        for step, cell in enumerate(cells):
            try:
                yield np.asarray(Image.open(io.BytesIO(cell["bytes"])).convert("RGB"))
            except (OSError, TypeError, KeyError) as error:
                raise EpisodeError(f"{path}: the image {feature} of step {step} cannot be read: {error}") from error

    def _table(self, episode: int, columns: list[str]) -> tuple[Path, Any]:
        import pyarrow
        import pyarrow.parquet

        row = self.rows[episode]
        place = {name: row[f"data/{name}"] for name in ("chunk_index", "file_index")}
        path = self.root / self.info["data_path"].format(**place)
        try:
            return path, pyarrow.parquet.read_table(path, columns=columns, filters=[("episode_index", "=", episode)])
        except (OSError, pyarrow.ArrowException) as error:
            raise EpisodeError(f"{path} {READ}: {error}") from error


def open_lerobot(root: str | Path) -> LeRobotDataset:
    """Raises EpisodeError, naming the file, for another version and for tables that are missing or damaged."""
    root = Path(root)
    info = _info(root)
    rows = {row["episode_index"]: row for path in _episode_files(root) for row in _rows(path)}
    tasks = _names(root / "meta/tasks.parquet", "task_index")
    subtasks = root / "meta/subtasks.parquet"
    dataset = LeRobotDataset(root, info, rows, tasks, _names(subtasks, "subtask_index") if subtasks.exists() else {})
    if len(rows) != info["total_episodes"]:
        raise EpisodeError(
            f"{root}: info.json tells of {info['total_episodes']} episodes, meta/episodes of {len(rows)}"
        )
    return dataset


def _info(root: Path) -> dict[str, Any]:
    path = root / "meta/info.json"
    if not path.exists():
        raise EpisodeError(f"{root} is no LeRobotDataset: it has no meta/info.json")
    try:
        info = json.loads(path.read_text())
        version = str(info["codebase_version"])
        lacking = {"fps", "features", "total_episodes", "data_path"} - set(info)
    except (ValueError, KeyError, TypeError) as error:
        raise EpisodeError(f"{path} {READ}: {error!r}") from error
    if not version.startswith(VERSION):
        raise EpisodeError(
            f"{root} is a LeRobotDataset {version}; this reads v3.0. LeRobot converts older ones: "
            "`convert_dataset_v21_to_v30` in its package"
        )
    if lacking:
        raise EpisodeError(f"{path} lacks {', '.join(sorted(lacking))}")
    return info


def _episode_files(root: Path) -> list[Path]:
    files = sorted((root / "meta/episodes").rglob("*.parquet"))
    if not files:
        raise EpisodeError(f"{root} has no meta/episodes/*/*.parquet: was only a part of it downloaded?")
    return files


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        columns = [name for name in file.schema_arrow.names if not name.startswith("stats/")]
        return file.read(columns=columns).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise EpisodeError(f"{path} {READ}: {error}") from error


def _names(path: Path, index: str) -> dict[int, str]:
    """Index -> words, of a table that pandas wrote with the words as its index."""
    import pandas
    import pyarrow

    try:
        table: Any = pandas.read_parquet(path)
        return {int(number): str(words) for words, number in table[index].items()}
    except (OSError, KeyError, ValueError, pyarrow.ArrowException) as error:
        raise EpisodeError(f"{path} {READ}: {error!r}") from error


def _array(column: Any, path: Path, name: str) -> np.ndarray:
    """[T] or [T, D]; objects where the values are text or structures."""
    import pyarrow

    values = column.combine_chunks()
    if pyarrow.types.is_fixed_size_list(values.type) or pyarrow.types.is_list(values.type):
        rows = values.to_pylist()
        try:
            return np.array(rows, np.float64)
        except (ValueError, TypeError):
            cells = np.empty(len(rows), object)
            cells[:] = rows
            return cells
    return values.to_numpy(zero_copy_only=False)


def _is_depth(feature: Mapping[str, Any]) -> bool:
    told = {**(feature.get("info") or {}), **(feature.get("video_info") or {})}
    return bool(told.get("video.is_depth_map") or told.get("is_depth_map"))
