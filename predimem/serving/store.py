"""Episodes on disk: what a session needs to go on after a restart, and what people look at afterwards.

A folder with `episodes.db` (SQLite in WAL mode) and PNG files. A plan is written before anybody uses it: first the
images that it nominates, then, in one transaction, the plan and the list of its images. So the database never
names an image that is not there, and a kill at any moment loses no keyframe and no subtask that was in use.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from predimem.core.types import Frame, Plan
from predimem.serving import trajectory
from predimem.serving.config import StateConfig
from predimem.serving.stored import SCHEMA, VERSION, Outcome, StoredEpisode, StoredFailure, StoredPlan, migrate
from predimem.serving.trajectory import Trajectory

_PLAN = "step, subtask, keyframe_steps, confidence, text, at_s, latency_s"
_FAILURE = "step, error, text, at_s, latency_s"


class StoreError(ValueError):
    """A state folder that cannot be used: says why and how to mend it."""


class NotOwner(RuntimeError):
    """Another server has gone on with the episode."""


class EpisodeStore:
    """Several threads, and several processes, may use one folder. Writing raises OSError or sqlite3.Error.

    An episode belongs to the store that began it or took it over last; no other one can add to it.
    """

    def __init__(self, folder: str | Path, config: StateConfig):
        from PIL import Image

        Image.preinit()  # takes long on a cold disk, and the first who needs it is a robot that waits
        self.folder = Path(folder)
        self._config = config
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._database = self._open()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"the state folder {folder} cannot be used: {error}; choose another --state-dir"
            ) from error
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise StoreError(f"{folder} was written by another version ({version}); this one reads up to {VERSION}")
        with self._transaction() as database:
            migrate(database)

    def begin(self, episode_id: str, instruction: str) -> int:
        """A new episode, in place of what was kept under this id; its key. The least used ones beyond the limit go."""
        now = time.time()
        with self._transaction() as database:
            rows = database.execute("SELECT id FROM episodes WHERE episode_id = ?", (episode_id,)).fetchall()
            kept = self._config.episodes - 1
            rows += database.execute(
                "SELECT id FROM episodes WHERE episode_id != ? ORDER BY used_s DESC LIMIT -1 OFFSET ?",
                (episode_id, kept),
            ).fetchall()
            for (old,) in rows:
                self._delete(database, old)
            key = database.execute(
                "INSERT INTO episodes (episode_id, instruction, began_s, used_s) VALUES (?, ?, ?, ?)",
                (episode_id, instruction, now, now),
            ).lastrowid
            database.execute("INSERT INTO owners VALUES (?, ?)", (key, self._owner))
        assert key is not None
        for (old,) in rows:
            shutil.rmtree(self._images(old), ignore_errors=True)
        return key

    def take_over(self, episode_id: str) -> StoredEpisode | None:
        """The episode, to go on with. From now on no other server can write to it."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO owners SELECT id, ? FROM episodes WHERE episode_id = ?",
                (self._owner, episode_id),
            )
        return self.find(episode_id)

    def end(self, episode_id: str, outcome: Outcome) -> None:
        """Note how an episode ended, where it is kept."""
        with self._transaction() as database:
            database.execute(
                "UPDATE episodes SET outcome = ?, used_s = ? WHERE episode_id = ?", (outcome, time.time(), episode_id)
            )

    def owns(self, key: int) -> bool:
        """Whether no other server has taken the episode over, or begun it anew."""
        with self._lock:
            return self._is_owner(self._database, key)

    def find(self, episode_id: str) -> StoredEpisode | None:
        """The episode as it was last written."""
        with self._lock:
            row = self._database.execute(
                "SELECT id, instruction, outcome, began_s FROM episodes WHERE episode_id = ?", (episode_id,)
            ).fetchone()
            if row is None:
                return None
            key, instruction, outcome, began_s = row
            read = self._database.execute
            plans = read(f"SELECT {_PLAN} FROM plans WHERE episode = ? ORDER BY step", (key,)).fetchall()
            failures = read(f"SELECT {_FAILURE} FROM failures WHERE episode = ? ORDER BY step", (key,)).fetchall()
            steps = read("SELECT step FROM pictures WHERE episode = ? ORDER BY step", (key,)).fetchall()
        return StoredEpisode(
            key,
            episode_id,
            instruction,
            tuple(StoredPlan(step, subtask, tuple(json.loads(k)), *rest) for step, subtask, k, *rest in plans),
            tuple(step for (step,) in steps),
            outcome,
            tuple(StoredFailure(*row) for row in failures),
            began_s,
        )

    def trajectory(self, key: int) -> Trajectory | None:
        """What was measured and commanded at each observation; None where it was not kept."""
        with self._lock:
            rows = self._database.execute(
                "SELECT piece FROM trajectories WHERE episode = ? ORDER BY at_s", (key,)
            ).fetchall()
        return trajectory.unpack([piece for (piece,) in rows])

    def list(self) -> list[dict[str, Any]]:
        """What is kept, the last used first: `episode_id`, `instruction`, `began_s`, `used_s`, `outcome`."""
        names = ("episode_id", "instruction", "began_s", "used_s", "outcome")
        with self._lock:
            rows = self._database.execute(f"SELECT {', '.join(names)} FROM episodes ORDER BY used_s DESC").fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def keep(self, key: int, plan: Plan, frames: Mapping[int, Frame], latency_s: float | None = None) -> None:
        """Write a plan and the images of `frames` (step -> frame) that are not there yet. Raises NotOwner.

        latency_s: how long the planner took.
        """
        folder, rows = self._images(key), []
        self._make(folder)
        for step, frame in sorted(frames.items()):
            cameras = sorted(frame.images)
            for number, camera in enumerate(cameras):
                self._write(folder / f"{step}-{number}.png", _png(frame.images[camera]))
            rows.append((key, step, frame.time_s, json.dumps(cameras)))
        if rows and self._config.sync:
            _sync_folder(folder)
        now, nominated = time.time(), json.dumps(plan.keyframe_steps)
        with self._writing(key) as database:
            database.executemany("INSERT OR IGNORE INTO pictures VALUES (?, ?, ?, ?)", rows)
            database.execute(
                f"INSERT OR REPLACE INTO plans (episode, {_PLAN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (key, plan.step, plan.subtask, nominated, plan.confidence, plan.text, now, latency_s),
            )
            database.execute("UPDATE episodes SET used_s = ? WHERE id = ?", (now, key))

    def keep_failure(self, key: int, failure: StoredFailure) -> None:
        """Write that the planner gave no answer that can be used. Raises NotOwner."""
        with self._writing(key) as database:
            database.execute(
                f"INSERT OR REPLACE INTO failures (episode, {_FAILURE}) VALUES (?, ?, ?, ?, ?, ?)",
                (key, *(getattr(failure, name) for name in _FAILURE.split(", "))),
            )

    def keep_trajectory(self, key: int, rows: Trajectory) -> None:
        """Write the rows that came since the last ones. Raises NotOwner."""
        with self._writing(key) as database:
            database.execute(
                "INSERT OR REPLACE INTO trajectories VALUES (?, ?, ?)", (key, float(rows.at_s[0]), rows.pack())
            )

    def frame(self, key: int, step: int) -> Frame:
        """The images of one step, bit for bit. Raises KeyError where none were kept."""
        from PIL import Image

        with self._lock:
            row = self._database.execute(
                "SELECT time_s, cameras FROM pictures WHERE episode = ? AND step = ?", (key, step)
            ).fetchone()
        if row is None:
            raise KeyError(step)
        images = {}
        for number, camera in enumerate(json.loads(row[1])):
            with Image.open(self.image_file(key, step, number), formats=("PNG",)) as image:
                images[camera] = np.array(image.convert("RGB"))
        return Frame(step, row[0], images)

    def image_file(self, key: int, step: int, camera: int) -> Path:
        """Where the image of a step's `camera` (its place in alphabetical order) lies."""
        return self._images(key) / f"{step}-{camera}.png"

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self.folder / "episodes.db", timeout=10.0, isolation_level=None, check_same_thread=False
        )
        database.execute(f"PRAGMA journal_mode = {'WAL' if self._config.journal == 'wal' else 'DELETE'}")
        database.execute(f"PRAGMA synchronous = {'FULL' if self._config.sync else 'NORMAL'}")
        database.execute("PRAGMA foreign_keys = ON")
        database.executescript(SCHEMA)
        return database

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    @contextmanager
    def _writing(self, key: int) -> Iterator[sqlite3.Connection]:
        """A transaction that adds to an episode. Raises NotOwner."""
        with self._transaction() as database:
            if not self._is_owner(database, key):
                raise NotOwner("another server has gone on with this episode")
            yield database

    def _is_owner(self, database: sqlite3.Connection, key: int) -> bool:
        row = database.execute("SELECT owner FROM owners WHERE episode = ?", (key,)).fetchone()
        return row is not None and row[0] == self._owner

    def _delete(self, database: sqlite3.Connection, key: int) -> None:
        database.execute("DELETE FROM episodes WHERE id = ?", (key,))

    def _images(self, key: int) -> Path:
        return self.folder / "pictures" / str(key)

    def _make(self, folder: Path) -> None:
        """The folder of an episode's images, and its name on the disk."""
        if folder.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self._config.sync:
            for above in (folder.parent, self.folder):
                _sync_folder(above)

    def _write(self, path: Path, content: bytes) -> None:
        """Whole or not at all: a file that a kill cut short has another name."""
        if path.exists():
            return
        part = path.with_suffix(f".{self._owner.rpartition(':')[2]}.part")
        with open(part, "wb") as file:
            file.write(content)
            if self._config.sync:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)


def journal_of(folder: Path) -> Literal["wal", "rollback"]:
    """How the database of a state folder is written, for those who only read it: opening it with another journal would
    change it for the servers, too."""
    database = sqlite3.connect(folder / "episodes.db")
    try:
        return "wal" if database.execute("PRAGMA journal_mode").fetchone()[0] == "wal" else "rollback"
    finally:
        database.close()


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
