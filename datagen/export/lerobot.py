"""Export to a LeRobotDataset, format v3.0: parquet for numbers, MP4 for images, tables in `meta/`.

    data/chunk-000/file-000.parquet                 one row per step of episode 0
    videos/<camera>/chunk-000/file-000.mp4          its images
    meta/episodes/chunk-000/file-000.parquet        its row: files, first and last index, statistics, source
    meta/tasks.parquet, subtasks.parquet            instruction -> task_index, label -> subtask_index
    meta/stats.json, info.json                      over all episodes; info.json is written last

The format lets files hold several episodes; here each has its own, written atomically, its row in
`meta/episodes` last: an interrupted export goes on with the first episode that has no row.
Beside LeRobot's columns each step has `subtask_index` (its label is in `meta/subtasks.parquet`) and
`is_keyframe`; each episode has `subtask_names`, `subtask_start_frames` and `subtask_end_frames`
(inclusive), the episode's `task_name`, `seed` and `success`, and the checksum of the file it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from datagen.export.dimensions import dimension_names
from datagen.export.lerobot_language import FEATURES, language_columns
from datagen.export.lerobot_stats import column_stats, exact_quantiles, image_stats, merge_stats
from datagen.export.lerobot_tables import column_names, read_column, read_row, write_columns, write_names, write_row
from datagen.export.video import CODEC, PIXEL_FORMAT, write_video
from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import episode_checksum, load_episode
from predimem.core.episodes import Episode
from predimem.core.files import write_json
from predimem.core.frames import EpisodeError, Frames
from predimem.core.progress import watched

VERSION = "v3.0"
CHUNK = 1000  # files of a chunk
FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
DATA, VIDEO = f"data/{FILE}.parquet", f"videos/{{video_key}}/{FILE}.mp4"
ROW = f"meta/episodes/{FILE}.parquet"
SCALARS = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
    "subtask_index": "int64",
    "is_keyframe": "bool",
}


def export_lerobot(
    episodes: str | Path, out: str | Path, robot: str = "panda", language: bool = False, progress: bool = True
) -> int:
    """Write all episodes below the folder `episodes` to the data set `out`; how many there are.

    language: write the subtasks as LeRobot 0.6 wants them as well (`lerobot_language`).
    Raises EpisodeError for episodes that do not fit together (cameras, sizes, rate, names of numbers) or have
    steps without a subtask, and ValueError where `out` holds a whole data set, other files, one of other episodes, or
    one that was begun with another `language`.
    """
    out, paths = Path(out), list_episodes(episodes)
    _check_out(out, len(paths))
    export = _Export(out, _features(load_episode(paths[0], verify=False), paths[0]), language)
    for path in watched(paths, len(paths), "episodes", shown=progress):
        export.add(path)
    export.finish(robot)
    return len(paths)


@dataclass
class _Export:
    """The data set so far. tasks, subtasks: name -> index, in the order of their first use."""

    out: Path
    features: dict[str, Any]
    language: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[str, int] = field(default_factory=dict)
    subtasks: dict[str, int] = field(default_factory=dict)
    frames: int = 0

    def add(self, path: Path) -> None:
        number, checksum = len(self.rows), episode_checksum(path)
        row = read_row(self.out / ROW.format(**_file(number)))
        if row is None:
            row = self._write(path, number, checksum)
        elif row["source_checksum"] != checksum:
            raise ValueError(f"{self.out} was begun with other episodes: {path} is not its number {number}")
        elif self.language != (FEATURES.keys() <= set(column_names(self._data(number)))):
            begun = "without" if self.language else "with"
            raise ValueError(f"{self.out} was begun {begun} --language: go on {begun} it, or choose another --out")
        else:
            self._index(row["tasks"], row["subtask_names"])
        self.rows.append(row)
        self.frames += row["length"]

    def finish(self, robot: str) -> None:
        write_names(self.out / "meta/tasks.parquet", "task", self.tasks)
        write_names(self.out / "meta/subtasks.parquet", "subtask", self.subtasks)
        stats = {}
        for name, feature in self.features.items():
            prefix = f"stats/{name}/"
            keys = [key for key in self.rows[0] if key.startswith(prefix)]
            parts = [{key.removeprefix(prefix): np.array(row[key]) for key in keys} for row in self.rows]
            merged = merge_stats(parts)
            if feature["dtype"] != "video":
                merged |= self._quantiles(name, feature["shape"][0])
            stats[name] = {key: value.tolist() for key, value in merged.items()}
        write_json(self.out / "meta/stats.json", stats, indent=1)
        write_json(self.out / "meta/info.json", self._info(robot), indent=1)

    def _quantiles(self, name: str, dim: int) -> dict[str, np.ndarray]:
        """Of all values of a column, read back, so that an export that was interrupted has them as well."""
        lengths = [row["length"] for row in self.rows]
        return exact_quantiles(lambda number: read_column(self._data(number), name), lengths, dim)

    def _data(self, number: int) -> Path:
        return self.out / DATA.format(**_file(number))

    def _index(self, tasks: Sequence[str], subtasks: Sequence[str]) -> None:
        for known, names in ((self.tasks, tasks), (self.subtasks, subtasks)):
            for name in names:
                known.setdefault(name, len(known))

    def _write(self, path: Path, number: int, checksum: str) -> dict[str, Any]:
        episode = load_episode(path)
        if _features(episode, path) != self.features:
            raise EpisodeError(
                f"{path}: cameras, sizes, rate or names of numbers differ from the first episode's: export such "
                "episodes apart"
            )
        self._index([episode.instruction], [span.label for span in episode.subtasks])
        columns = self._columns(episode, number, path)
        for camera, frames in episode.images.items():
            key = f"observation.images.{camera}"
            write_video(self.out / VIDEO.format(video_key=key, **_file(number)), frames, round(episode.control_hz))
        language = language_columns(episode.subtasks, episode.control_hz, len(episode)) if self.language else {}
        write_columns(self._data(number), columns | language)
        row = self._row(episode, number, checksum) | _row_stats(columns, episode.images)
        write_row(self.out / ROW.format(**_file(number)), row)
        return row

    def _columns(self, episode: Episode, number: int, path: Path) -> dict[str, np.ndarray]:
        """Column -> one value or vector per step, with the types that the features state."""
        steps = np.arange(len(episode))
        try:
            labels = [episode.subtask_at(step) for step in range(len(episode))]
        except IndexError as error:
            raise EpisodeError(f"{path}: {error}") from error
        scalars = {
            "timestamp": steps / episode.control_hz,
            "frame_index": steps,
            "episode_index": np.full_like(steps, number),
            "index": self.frames + steps,
            "task_index": np.full_like(steps, self.tasks[episode.instruction]),
            "subtask_index": np.array([self.subtasks[label] for label in labels]),
            "is_keyframe": np.isin(steps, episode.keyframes),
        }
        return {
            "observation.state": episode.state,
            "action": episode.actions,
            **{name: scalars[name].astype(kind) for name, kind in SCALARS.items()},
        }

    def _row(self, episode: Episode, number: int, checksum: str) -> dict[str, Any]:
        videos = {}
        for key in (name for name, feature in self.features.items() if feature["dtype"] == "video"):
            videos |= {f"videos/{key}/{name}": value for name, value in _file(number).items()}
            videos[f"videos/{key}/from_timestamp"] = 0.0
            videos[f"videos/{key}/to_timestamp"] = len(episode) / episode.control_hz
        return {
            "episode_index": number,
            "tasks": [episode.instruction],
            "length": len(episode),
            "dataset_from_index": self.frames,
            "dataset_to_index": self.frames + len(episode),
            **{f"data/{name}": value for name, value in _file(number).items()},
            **videos,
            **{f"meta/episodes/{name}": value for name, value in _file(number).items()},
            "subtask_names": [span.label for span in episode.subtasks],
            "subtask_start_frames": [span.start for span in episode.subtasks],
            "subtask_end_frames": [span.end - 1 for span in episode.subtasks],
            "task_name": episode.task,
            "seed": episode.seed,
            "success": episode.success,
            "source_checksum": checksum,
        }

    def _info(self, robot: str) -> dict[str, Any]:
        fps = next(f["info"]["video.fps"] for f in self.features.values() if f["dtype"] == "video")
        return {
            "codebase_version": VERSION,
            "robot_type": robot,
            "fps": fps,
            "total_episodes": len(self.rows),
            "total_frames": self.frames,
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "splits": {"train": f"0:{len(self.rows)}"},
            "data_path": DATA,
            "video_path": VIDEO,
            "features": self.features | (FEATURES if self.language else {}),
        }


def _features(episode: Episode, path: Path) -> dict[str, Any]:
    """What `info.json` says of the columns. Raises EpisodeError for an episode that LeRobot cannot hold."""
    if not episode.images or episode.control_hz != round(episode.control_hz) or episode.control_hz <= 0:
        raise EpisodeError(
            f"{path}: expected images and a whole number of steps a second, more than none, got the cameras "
            f"{list(episode.images)} and {episode.control_hz} Hz"
        )
    state_names, action_names = dimension_names(episode, path)
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": [len(state_names)], "names": state_names},
        "action": {"dtype": "float32", "shape": [len(action_names)], "names": action_names},
    }
    for camera in sorted(episode.images):
        height, width = episode.images[camera].shape[1:3]
        features[f"observation.images.{camera}"] = {
            "dtype": "video",
            "shape": [height, width, 3],
            "names": ["height", "width", "channels"],
            "info": {
                "video.height": height,
                "video.width": width,
                "video.codec": CODEC,
                "video.pix_fmt": PIXEL_FORMAT,
                "video.fps": round(episode.control_hz),
                "video.channels": 3,
                "has_audio": False,
                "is_depth_map": False,
            },
        }
    return features | {name: {"dtype": kind, "shape": [1], "names": None} for name, kind in SCALARS.items()}


def _check_out(out: Path, episodes: int) -> None:
    if (out / "meta/info.json").exists():
        raise ValueError(f"{out} holds a whole data set already: choose another --out")
    rows = len(list((out / "meta/episodes").rglob("file-*.parquet")))
    if rows > episodes:
        raise ValueError(f"{out} was begun with other episodes: it has {rows}, now there are {episodes}")
    if out.exists() and any(out.iterdir()) and not {p.name for p in out.iterdir()} <= {"data", "videos", "meta"}:
        raise ValueError(f"{out} holds other files: choose another --out")


def _file(number: int) -> dict[str, int]:
    return {"chunk_index": number // CHUNK, "file_index": number % CHUNK}


def _row_stats(columns: Mapping[str, np.ndarray], images: Mapping[str, Frames]) -> dict[str, Any]:
    stats = {name: column_stats(values.reshape(len(values), -1)) for name, values in columns.items()}
    stats |= {f"observation.images.{camera}": image_stats(frames) for camera, frames in images.items()}
    return {f"stats/{name}/{key}": v.tolist() for name, values in stats.items() for key, v in values.items()}
