"""The memory of robots across episodes, days and restarts: what they saw, did and were told, as one store.

What is kept is written whole or not at all, and is on the disk when the call returns: first the images, then, in one
transaction, what names them. So a kill at any moment loses nothing that was acknowledged.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from memory_bank.store.database import Database, Link
from memory_bank.store.deleting import Deleter
from memory_bank.store.images import FolderImages, Images, to_png
from memory_bank.store.reader import FAILURE, StoreReader
from memory_bank.store.records import (
    EVERYTHING,
    Hit,
    NewKeyframe,
    NotOwner,
    Outcome,
    Removed,
    Retention,
    Scope,
    StoredEpisode,
    StoredFailure,
    StoreError,
    check_name,
    robot_of,
)
from memory_bank.store.rows import (
    add_embeddings,
    add_episode,
    add_failure,
    add_keyframes,
    add_piece,
    add_plan,
    model_key,
    session_key,
    unit,
)
from memory_bank.store.scope import in_parts
from memory_bank.store.search import Searcher
from predimem.core.types import Frame, Plan


class MemoryStore(StoreReader):
    """Several threads, processes and (with PostgreSQL) machines may use one store; `open_store` opens it.

    An episode belongs to the store object that began it or took it over last, until that leaves it; no other one can
    add to it. Writing raises OSError, of which StoreFault is the database's.
    """

    def __init__(self, database: Database, images: Images, searcher: Searcher, retention: Retention):
        super().__init__(database, images)
        self._searcher = searcher
        self._deleter = Deleter(database, images, retention)
        self._played = False  # whether it has begun an episode, or taken one over
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    def begin(self, episode_id: str, instruction: str, robot: str | None = None, session: str | None = None) -> int:
        """A new episode, in place of what was kept under this id; its key. What the retention says goes.

        robot: None takes it from the id (`robot_of`). session: what the episode belongs to, such as a day's work; None
        makes it a session of its own.
        """
        robot = check_name("robot", robot_of(episode_id) if robot is None else robot)
        session = check_name("session", session or episode_id)
        now, self._played = time.time(), True
        with self.database.writing() as write:
            self.database.alone(write)
            again = [key for (key,) in write("SELECT id FROM episodes WHERE episode_id = ?", (episode_id,))]
            replaced = self._deleter.delete(write, again)
            key = add_episode(write, session_key(write, robot, session, now), episode_id, instruction, now)
            write("INSERT INTO owners VALUES (?, ?)", (key, self._owner))
            expired = self._deleter.apply_retention(write, now, besides=key)
        self._deleter.remove_files(replaced, expired)
        return key

    def take_over(self, episode_id: str) -> StoredEpisode | None:
        """The episode, to go on with. From now on no other server can write to it."""
        self._played = True
        with self.database.writing() as write:
            write(
                "INSERT INTO owners (episode, owner) SELECT id, ? FROM episodes WHERE episode_id = ? "
                "ON CONFLICT (episode) DO UPDATE SET owner = excluded.owner",
                (self._owner, episode_id),
            )
        return self.find(episode_id)

    def leave(self, key: int) -> None:
        """The episode is not played any more, so that the retention may count it; it can be taken over again."""
        with self.database.writing() as write:
            write("DELETE FROM owners WHERE episode = ? AND owner = ?", (key, self._owner))

    def end(self, episode_id: str, outcome: Outcome) -> None:
        """Note how an episode ended, where it is kept. The first outcome stays."""
        with self.database.writing() as write:
            write(
                "UPDATE episodes SET outcome = ?, used_s = ? WHERE episode_id = ? AND outcome IS NULL",
                (outcome, time.time(), episode_id),
            )

    def owns(self, key: int) -> bool:
        """Whether no other server has taken the episode over, or begun it anew."""
        with self.database.reading() as read:
            return self._is_owner(read, key)

    def keep(
        self,
        key: int,
        plan: Plan,
        frames: Mapping[int, Frame],
        latency_s: float | None = None,
        embeddings: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        """Write a plan and the images of `frames` (step -> frame) that are not there yet. Raises NotOwner.

        latency_s: how long the planner took. embeddings: step -> name of a model -> vector, float [D].
        """
        nominated = set(plan.keyframe_steps)
        new = [
            NewKeyframe(frame, plan.subtask, step in nominated, (embeddings or {}).get(step, {}))
            for step, frame in sorted(frames.items())
        ]
        with self._keeping(key, new) as write:
            for marks, part in in_parts(nominated):
                write(f"UPDATE keyframes SET nominated = 1 WHERE episode = ? AND step IN ({marks})", (key, *part))
            now, steps = time.time(), json.dumps(plan.keyframe_steps)
            add_plan(write, key, (plan.step, plan.said, steps, plan.confidence, plan.text, now, latency_s))

    def keep_frames(self, key: int, keyframes: Sequence[NewKeyframe]) -> None:
        """Write keyframes that are not there yet, all or none. Raises NotOwner."""
        with self._keeping(key, keyframes):
            pass

    def keep_failure(self, key: int, failure: StoredFailure) -> None:
        """Write that the planner gave no answer that can be used. Raises NotOwner."""
        with self._writing(key) as write:
            add_failure(write, key, [getattr(failure, name) for name in FAILURE.split(", ")])

    def keep_piece(self, key: int, at_s: float, piece: bytes) -> None:
        """Write the next piece of the trajectory, which the store does not read. Raises NotOwner."""
        with self._writing(key) as write:
            add_piece(write, key, at_s, piece)

    def embed(self, model: str, vectors: Mapping[int, Any]) -> None:
        """Add embeddings to keyframes that are kept (id -> vector, float [D]), such as those of another model. What
        has one of this model already keeps it, and what is not there any more is left out."""
        packed = {keyframe: unit(vector) for keyframe, vector in vectors.items()}
        with self.database.writing() as write:
            there = set()
            for marks, part in in_parts(packed):
                there |= {row[0] for row in write(f"SELECT id FROM keyframes WHERE id IN ({marks})", part)}
            dims = {len(vector) for vector in packed.values()}
            keys = {dim: model_key(write, model, dim) for dim in dims}
            rows = [(k, keys[len(v)], self.database.pack(v)) for k, v in packed.items() if k in there]
            write.many(
                "INSERT INTO embeddings (keyframe, model, vector) VALUES (?, ?, ?) "
                "ON CONFLICT (keyframe, model) DO NOTHING",
                rows,
            )

    def note(
        self, text: str, robot: str, session: str | None = None, episode_id: str | None = None, author: str = ""
    ) -> None:
        """Write a note about a robot, one of its sessions or one of its episodes. Raises StoreError where it is not
        there."""
        with self.database.writing() as write:
            robot_key = self.robot_key(write, robot)
            session_of = None if session is None else self.session_key(write, robot, session)
            episode = None
            if episode_id is not None:
                rows = write(
                    "SELECT e.id, e.session FROM episodes e JOIN sessions s ON s.id = e.session "
                    "WHERE e.episode_id = ? AND s.robot = ?",
                    (episode_id, robot_key),
                )
                if not rows:
                    raise StoreError(f"the robot {robot!r} has no episode {episode_id!r}")
                episode, session_of = rows[0]
            write(
                "INSERT INTO notes (robot, session, episode, at_s, author, text) VALUES (?, ?, ?, ?, ?, ?)",
                (robot_key, session_of, episode, time.time(), author, text),
            )

    def search(self, vector: Any, k: int = 10, *, model: str, scope: Scope = EVERYTHING) -> list[Hit]:
        """The k keyframes whose embeddings are nearest to `vector` (float [D], of any length), the nearest first."""
        if k < 1:
            raise StoreError(f"k has to be at least 1, got {k}")
        with self.database.reading() as read:
            rows = read("SELECT id, dim FROM models WHERE name = ?", (model,))
        if not rows:
            return []
        (model_key, dim), query = rows[0], unit(vector, keep_float32=True)
        if len(query) != dim:
            raise StoreError(f"embeddings of {model!r} have {dim} dimensions, the query has {len(query)}")
        found = self._searcher.search(query, k, model_key, scope)
        keyframes = self.keyframes_of(keyframe for keyframe, _ in found)
        return [Hit(keyframes[id_], similarity) for id_, similarity in found if id_ in keyframes]

    def build_index(self, model: str | None = None) -> list[str]:
        """Make the approximate index anew, of one model or of all; what was done, a line each."""
        with self.database.reading() as read:
            rows = read("SELECT id, name, dim FROM models ORDER BY id")
        return [
            f"{name}: {self._searcher.build(key, dim)}" for key, name, dim in rows if model is None or name == model
        ]

    def delete(self, robot: str, session: str | None = None, episode_id: str | None = None) -> Removed:
        """Remove a robot, or one of its sessions, or one of its episodes, with all that is kept of it. When this
        returns, its images and embeddings are gone, too.

        Raises StoreError where it is not there, and StoreFault where a file could not be removed.
        """
        with self.database.writing() as write:
            self.database.alone(write)
            robot_key = self.robot_key(write, robot)
            condition, values = "s.robot = ?", [robot_key]
            if session is not None:
                condition, values = "s.id = ?", [self.session_key(write, robot, session)]
            if episode_id is not None:
                condition, values = f"{condition} AND e.episode_id = ?", [*values, episode_id]
            sql = f"SELECT e.id FROM episodes e JOIN sessions s ON s.id = e.session WHERE {condition}"
            keys = [key for (key,) in write(sql, values)]
            if episode_id is not None and not keys:
                raise StoreError(f"the robot {robot!r} has no episode {episode_id!r}")
            removed = self._deleter.delete(write, keys)
            if episode_id is None:
                self._deleter.delete_name(write, robot_key, None if session is None else values[0])
        self._deleter.remove_files(removed, strict=True)
        self._searcher.forget()
        return removed

    def prune(self) -> Removed:
        """Remove what the retention says, and files that a crash left behind."""
        with self.database.writing() as write:
            self.database.alone(write)
            removed = self._deleter.apply_retention(write, time.time())
        self._deleter.remove_files(removed, strict=True)
        if removed.episodes:
            self._searcher.forget()
        return removed

    def sweep(self) -> None:
        """Remove files that a crash left behind."""
        self._deleter.sweep(time.time())

    def image_file(self, key: int, step: int, camera: int) -> Any:
        """Where the image of a step's camera (its place in alphabetical order) lies; of a store in a folder alone."""
        assert isinstance(self.images, FolderImages)
        return self.images.file(key, step, camera)

    def close(self) -> None:
        """Leave all episodes, and let go of the files."""
        if self._played:
            with suppress(OSError):  # they are spared by the retention for longer, no more
                self._leave_all()
        self._searcher.close()
        self.database.close()

    def _leave_all(self) -> None:
        with self.database.writing() as write:
            write("DELETE FROM owners WHERE owner = ?", (self._owner,))

    @contextmanager
    def _keeping(self, key: int, keyframes: Sequence[NewKeyframe]) -> Iterator[Link]:
        """A transaction with the keyframes in it, whose images are written before."""
        with self.database.reading() as read:
            self._check_owner(read, key)  # before an image of it is written
            known = {step for (step,) in read("SELECT step FROM keyframes WHERE episode = ?", (key,))}
        new = [one for one in keyframes if one.frame.step not in known]
        pngs = {
            (one.frame.step, number): to_png(one.frame.images[camera])
            for one in new
            for number, camera in enumerate(sorted(one.frame.images))
        }
        vectors = [
            (model, unit(vector), key, one.frame.step) for one in keyframes for model, vector in one.embeddings.items()
        ]
        self.images.write(key, pngs)
        with self._or_no_files(key), self._writing(key) as write:
            now = time.time()
            add_keyframes(
                write,
                [
                    (
                        key,
                        one.frame.step,
                        one.frame.time_s,
                        now,
                        json.dumps(sorted(one.frame.images)),
                        one.subtask,
                        int(one.nominated),
                    )
                    for one in new
                ],
            )
            self.images.add(write, key, pngs)
            add_embeddings(write, self._embedding_rows(write, vectors))
            yield write
            size = sum(map(len, pngs.values()))
            write("UPDATE episodes SET used_s = ?, image_bytes = image_bytes + ? WHERE id = ?", (now, size, key))

    @contextmanager
    def _or_no_files(self, key: int) -> Iterator[None]:
        """Where an episode was deleted while its images were written, they are removed."""
        try:
            yield
        except NotOwner:
            with self.database.reading() as read:
                gone = not read("SELECT 1 FROM episodes WHERE id = ?", (key,))
            if gone:
                self.images.remove(key)
            raise

    def _embedding_rows(self, write: Link, vectors: Sequence[tuple[str, np.ndarray, int, int]]) -> list[Any]:
        models = {(name, len(vector)) for name, vector, _, _ in vectors}
        keys = {model: model_key(write, *model) for model in models}
        return [(keys[name, len(v)], self.database.pack(v), key, step) for name, v, key, step in vectors]

    @contextmanager
    def _writing(self, key: int) -> Iterator[Link]:
        """A transaction that adds to an episode. Raises NotOwner."""
        with self.database.writing() as write:
            self._check_owner(write, key, self.database.for_update)
            yield write

    def _check_owner(self, link: Link, key: int, lock: str = "") -> None:
        if not self._is_owner(link, key, lock):
            raise NotOwner("another server has gone on with this episode, or it was deleted")

    def _is_owner(self, link: Link, key: int, lock: str = "") -> bool:
        return link(f"SELECT owner FROM owners WHERE episode = ?{lock}", (key,)) == [(self._owner,)]
