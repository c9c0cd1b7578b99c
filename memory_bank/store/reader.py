"""Reading the store: episodes whole, and lists of robots, sessions, keyframes and notes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from memory_bank.store.database import Database, Link, Row
from memory_bank.store.images import Images, from_png
from memory_bank.store.records import (
    EVERYTHING,
    DamagedImage,
    Note,
    RobotSummary,
    Scope,
    SessionSummary,
    StoredEpisode,
    StoredFailure,
    StoredKeyframe,
    StoredPlan,
    StoreError,
)
from memory_bank.store.scope import EPISODES, KEYFRAMES, in_parts, where
from predimem.core.subtask_labels import in_turn
from predimem.core.types import Frame

PLAN = "step, subtask, keyframe_steps, confidence, text, at_s, latency_s"
FAILURE = "step, error, text, at_s, latency_s"
_KEYFRAME = (
    "k.id, k.episode, e.episode_id, r.name, s.name, e.instruction, k.step, k.time_s, k.at_s, k.cameras, k.subtask, "
    "k.nominated"
)


class StoreReader:
    """Any thread may use it. Reading raises StoreFault where the database fails."""

    def __init__(self, database: Database, images: Images):
        self.database, self.images = database, images

    def find(self, episode_id: str) -> StoredEpisode | None:
        """The episode as it was last written."""
        with self.database.reading() as read:
            rows = read(f"SELECT {_EPISODE} FROM {EPISODES} WHERE e.episode_id = ?", (episode_id,))
            return _episode(read, rows[0]) if rows else None

    def episodes(self, scope: Scope = EVERYTHING) -> list[dict[str, Any]]:
        """The last used first: `episode_id`, `instruction`, `began_s`, `used_s`, `outcome`, `robot`, `session`."""
        names = ("episode_id", "instruction", "began_s", "used_s", "outcome", "robot", "session")
        condition, values = where(scope)
        with self.database.reading() as read:
            rows = read(
                "SELECT e.episode_id, e.instruction, e.began_s, e.used_s, e.outcome, r.name, s.name "
                f"FROM {EPISODES} WHERE {condition} ORDER BY e.used_s DESC, e.id DESC",
                values,
            )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def robots(self) -> list[RobotSummary]:
        """The last used first."""
        with self.database.reading() as read:
            rows = read(
                "SELECT r.name, count(DISTINCT s.id), count(e.id), coalesce(sum(k.count), 0), "
                "coalesce(sum(e.image_bytes), 0), coalesce(max(e.used_s), max(s.began_s), 0) "
                f"FROM robots r LEFT JOIN sessions s ON s.robot = r.id LEFT JOIN episodes e ON e.session = s.id "
                f"LEFT JOIN {_COUNTS} k ON k.episode = e.id GROUP BY r.id, r.name ORDER BY 6 DESC, r.name"
            )
        return [
            RobotSummary(name, sessions, episodes, int(keyframes), int(size), used_s)
            for name, sessions, episodes, keyframes, size, used_s in rows
        ]

    def sessions(self, robot: str | None = None) -> list[SessionSummary]:
        """Those of a robot, or all of them; the last used first."""
        condition, values = ("r.name = ?", (robot,)) if robot is not None else ("1 = 1", ())
        with self.database.reading() as read:
            rows = read(
                "SELECT s.id, r.name, s.name, s.began_s, coalesce(max(e.used_s), s.began_s), count(e.id), "
                "coalesce(sum(k.count), 0), coalesce(sum(e.image_bytes), 0) "
                "FROM sessions s JOIN robots r ON r.id = s.robot LEFT JOIN episodes e ON e.session = s.id "
                f"LEFT JOIN {_COUNTS} k ON k.episode = e.id WHERE {condition} "
                "GROUP BY s.id, r.name, s.name, s.began_s ORDER BY 5 DESC, s.id DESC",
                values,
            )
            said = read("SELECT session, instruction FROM episodes ORDER BY began_s, id")
        tasks: dict[int, dict[str, None]] = {}
        for session, instruction in said:
            tasks.setdefault(session, {})[instruction] = None
        return [
            SessionSummary(name, session, began_s, used_s, episodes, int(frames), int(size), tuple(tasks.get(key, ())))
            for key, name, session, began_s, used_s, episodes, frames, size in rows
        ]

    def keyframes(self, scope: Scope = EVERYTHING, limit: int | None = None) -> list[StoredKeyframe]:
        """The newest first."""
        condition, values = where(scope)
        rest = "" if limit is None else f" LIMIT {int(limit)}"
        with self.database.reading() as read:
            rows = read(
                f"SELECT {_KEYFRAME} FROM {KEYFRAMES} WHERE {condition} ORDER BY k.at_s DESC, k.id DESC{rest}", values
            )
        return [_keyframe(row) for row in rows]

    def keyframes_of(self, ids: Iterable[int]) -> dict[int, StoredKeyframe]:
        """id -> keyframe, of those that are there."""
        found = {}
        with self.database.reading() as read:
            for marks, part in in_parts(ids):
                for row in read(f"SELECT {_KEYFRAME} FROM {KEYFRAMES} WHERE k.id IN ({marks})", part):
                    found[row[0]] = _keyframe(row)
        return found

    def embeddings(self, model: str, scope: Scope = EVERYTHING) -> tuple[list[StoredKeyframe], np.ndarray]:
        """The keyframes that have an embedding of this model, oldest first, and float16 [n, D], of length 1 each."""
        condition, values = where(scope)
        with self.database.reading() as read:
            dims = read("SELECT dim FROM models WHERE name = ?", (model,))
            rows = read(
                f"SELECT {_KEYFRAME}, v.vector FROM {KEYFRAMES} JOIN embeddings v ON v.keyframe = k.id "
                f"JOIN models m ON m.id = v.model WHERE m.name = ? AND {condition} ORDER BY k.at_s, k.id",
                (model, *values),
            )
        vectors = np.zeros((len(rows), dims[0][0] if dims else 0), np.float16)
        for place, row in enumerate(rows):
            vectors[place] = self.database.unpack(row[-1])
        return [_keyframe(row[:-1]) for row in rows], vectors

    def without_embedding(self, model: str, scope: Scope = EVERYTHING) -> list[StoredKeyframe]:
        """The keyframes that have no embedding of this model, oldest first."""
        condition, values = where(scope)
        with self.database.reading() as read:
            rows = read(
                f"SELECT {_KEYFRAME} FROM {KEYFRAMES} WHERE {condition} AND NOT EXISTS (SELECT 1 FROM embeddings v "
                "JOIN models m ON m.id = v.model WHERE v.keyframe = k.id AND m.name = ?) ORDER BY k.at_s, k.id",
                (*values, model),
            )
        return [_keyframe(row) for row in rows]

    def embedding_of(self, keyframe: int, model: str) -> np.ndarray:
        """float16 [D] of a keyframe (its id). Raises StoreError where it has none of this model."""
        with self.database.reading() as read:
            rows = read(
                "SELECT v.vector FROM embeddings v JOIN models m ON m.id = v.model WHERE v.keyframe = ? AND m.name = ?",
                (keyframe, model),
            )
        if not rows:
            raise StoreError(f"the store has no keyframe {keyframe} with an embedding of the model {model!r}")
        return self.database.unpack(rows[0][0])

    def models(self) -> dict[str, int]:
        """The models that embeddings are of -> their number of dimensions."""
        with self.database.reading() as read:
            return {name: dim for name, dim in read("SELECT name, dim FROM models ORDER BY id")}

    def notes(self, robot: str, session: str | None = None) -> list[Note]:
        """Those about a robot, its sessions and episodes, or one session; oldest first."""
        condition, values = ("", ()) if session is None else ("AND (s.name = ? OR t.name = ?)", (session, session))
        with self.database.reading() as read:
            rows = read(
                "SELECT r.name, coalesce(s.name, t.name), e.episode_id, n.at_s, n.author, n.text FROM notes n "
                "JOIN robots r ON r.id = n.robot LEFT JOIN sessions s ON s.id = n.session "
                "LEFT JOIN episodes e ON e.id = n.episode LEFT JOIN sessions t ON t.id = e.session "
                f"WHERE r.name = ? {condition} ORDER BY n.at_s, n.id",
                (robot, *values),
            )
        return [Note(*row) for row in rows]

    def trajectory_pieces(self, key: int) -> list[bytes]:
        """What `keep_piece` was given, oldest first."""
        with self.database.reading() as read:
            rows = read("SELECT piece FROM trajectories WHERE episode = ? ORDER BY at_s", (key,))
        return [bytes(piece) for (piece,) in rows]

    def image(self, key: int, step: int, camera: str) -> bytes:
        """The PNG file of one camera of a step. Raises KeyError where none was kept."""
        with self.database.reading() as read:
            rows = read("SELECT cameras FROM keyframes WHERE episode = ? AND step = ?", (key, step))
        cameras = json.loads(rows[0][0]) if rows else []
        if camera not in cameras:
            raise KeyError((key, step, camera))
        return self.images.read(key, step, cameras.index(camera))

    def frame(self, key: int, step: int) -> Frame:
        """The images of one step, bit for bit.

        Raises KeyError where none were kept, or where they were deleted, and DamagedImage for a file that cannot be
        read or has got lost.
        """
        time_s, cameras = self._kept(key, step)
        names = enumerate(json.loads(cameras))
        try:
            return Frame(step, time_s, {camera: from_png(self.images.read(key, step, n)) for n, camera in names})
        except KeyError:
            self._kept(key, step)  # unless the episode was deleted meanwhile
            raise DamagedImage(f"an image of step {step} has got lost; was the store copied in part?") from None

    def _kept(self, key: int, step: int) -> Row:
        """The time and cameras of a step. Raises KeyError."""
        with self.database.reading() as read:
            rows = read("SELECT time_s, cameras FROM keyframes WHERE episode = ? AND step = ?", (key, step))
        if not rows:
            raise KeyError(step)
        return rows[0]

    def session_key(self, read: Link, robot: str, session: str) -> int:
        """Raises StoreError where the robot has no such session."""
        rows = read(
            "SELECT s.id FROM sessions s JOIN robots r ON r.id = s.robot WHERE r.name = ? AND s.name = ?",
            (robot, session),
        )
        if not rows:
            raise StoreError(f"the robot {robot!r} has no session {session!r}{self._known(read, robot)}")
        return rows[0][0]

    def robot_key(self, read: Link, robot: str) -> int:
        """Raises StoreError where there is no such robot."""
        rows = read("SELECT id FROM robots WHERE name = ?", (robot,))
        if not rows:
            raise StoreError(f"the store knows no robot {robot!r}{self._known(read, None)}")
        return rows[0][0]

    def _known(self, read: Link, robot: str | None) -> str:
        if robot is None:
            rows = read("SELECT name FROM robots ORDER BY id DESC LIMIT 10")
        else:
            self.robot_key(read, robot)
            rows = read(
                "SELECT s.name FROM sessions s JOIN robots r ON r.id = s.robot WHERE r.name = ? "
                "ORDER BY s.id DESC LIMIT 10",
                (robot,),
            )
        return f"; the last ones are: {', '.join(name for (name,) in rows)}" if rows else "; there is none yet"


def _plan(row: Row) -> StoredPlan:
    step, said, keyframe_steps, *rest = row
    subtask, *later = (None,) if said is None else in_turn(said)
    return StoredPlan(step, subtask, tuple(json.loads(keyframe_steps)), *rest, next_subtasks=tuple(later))


_EPISODE = "e.id, e.episode_id, e.instruction, e.outcome, e.began_s, r.name, s.name"
_COUNTS = "(SELECT episode, count(*) AS count FROM keyframes GROUP BY episode)"


def _episode(read: Link, row: Row) -> StoredEpisode:
    key, episode_id, instruction, outcome, began_s, robot, session = row
    plans = read(f"SELECT {PLAN} FROM plans WHERE episode = ? ORDER BY step", (key,))
    failures = read(f"SELECT {FAILURE} FROM failures WHERE episode = ? ORDER BY step", (key,))
    steps = read("SELECT step FROM keyframes WHERE episode = ? ORDER BY step", (key,))
    return StoredEpisode(
        key,
        episode_id,
        instruction,
        tuple(map(_plan, plans)),
        tuple(step for (step,) in steps),
        outcome,
        tuple(StoredFailure(*failure) for failure in failures),
        began_s,
        robot,
        session,
    )


def _keyframe(row: Sequence[Any]) -> StoredKeyframe:
    id_, key, episode_id, robot, session, instruction, step, time_s, at_s, cameras, subtask, nominated = row
    names = tuple(json.loads(cameras))
    return StoredKeyframe(
        id_, key, episode_id, robot, session, instruction, step, time_s, at_s, names, subtask, bool(nominated)
    )
