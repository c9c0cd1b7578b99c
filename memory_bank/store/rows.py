"""The statements that add to the store, for those who write it and for the import of a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memory_bank.store.database import Link
from memory_bank.store.reader import FAILURE, PLAN
from memory_bank.store.records import StoreError, check_name


def unit(vector: Any, keep_float32: bool = False) -> np.ndarray:
    """float16 [D] of length 1, or float32. Raises StoreError where a vector has no direction."""
    array = np.asarray(vector, np.float32)
    length = float(np.linalg.norm(array)) if array.ndim == 1 and array.size else 0.0
    if not (np.isfinite(length) and length > 0):
        raise StoreError(
            f"an embedding has to be a vector of finite numbers that are not all 0, got shape {list(array.shape)} "
            f"of length {length:g}"
        )
    array = array / np.float32(length)
    return array if keep_float32 else array.astype(np.float16)


def session_key(write: Link, robot: str, session: str, began_s: float) -> int:
    """That of a session of a robot; both are made where they are not there."""
    write("INSERT INTO robots (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (robot,))
    write(
        "INSERT INTO sessions (robot, name, began_s) SELECT id, ?, ? FROM robots WHERE name = ? "
        "ON CONFLICT (robot, name) DO NOTHING",
        (session, began_s, robot),
    )
    sql = "SELECT s.id FROM sessions s JOIN robots r ON r.id = s.robot WHERE r.name = ? AND s.name = ?"
    return write(sql, (robot, session))[0][0]


def add_episode(write: Link, session: int, episode_id: str, instruction: str, began_s: float) -> int:
    rows = write(
        "INSERT INTO episodes (episode_id, instruction, began_s, used_s, session) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (episode_id, instruction, began_s, began_s, session),
    )
    return rows[0][0]


def add_keyframes(write: Link, rows: Sequence[Sequence[Any]]) -> None:
    """rows: episode, step, time_s, at_s, cameras, subtask, nominated."""
    write.many(
        "INSERT INTO keyframes (episode, step, time_s, at_s, cameras, subtask, nominated) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (episode, step) DO NOTHING",
        rows,
    )


def add_plan(write: Link, key: int, row: Sequence[Any]) -> None:
    """row: as `PLAN`; in place of the plan of the same step."""
    write("DELETE FROM plans WHERE episode = ? AND step = ?", (key, row[0]))
    write(f"INSERT INTO plans (episode, {PLAN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (key, *row))


def add_failure(write: Link, key: int, row: Sequence[Any]) -> None:
    """row: as `FAILURE`; in place of the failure of the same step."""
    write("DELETE FROM failures WHERE episode = ? AND step = ?", (key, row[0]))
    write(f"INSERT INTO failures (episode, {FAILURE}) VALUES (?, ?, ?, ?, ?, ?)", (key, *row))


def add_piece(write: Link, key: int, at_s: float, piece: bytes) -> None:
    write("DELETE FROM trajectories WHERE episode = ? AND at_s = ?", (key, at_s))
    write("INSERT INTO trajectories VALUES (?, ?, ?)", (key, at_s, piece))


def model_key(write: Link, name: str, dim: int) -> int:
    """That of a model, which is made where it is not there. Raises StoreError where it has another dimension."""
    check_name("model", name)
    write("INSERT INTO models (name, dim) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, dim))
    key, known = write("SELECT id, dim FROM models WHERE name = ?", (name,))[0]
    if known != dim:
        raise StoreError(f"embeddings of {name!r} have {known} dimensions, this one has {dim}")
    return key


def add_embeddings(write: Link, rows: Sequence[Sequence[Any]]) -> None:
    """rows: model, vector as the database has it, episode, step."""
    write.many(
        "INSERT INTO embeddings (keyframe, model, vector) SELECT id, ?, ? FROM keyframes "
        "WHERE episode = ? AND step = ? ON CONFLICT (keyframe, model) DO NOTHING",
        rows,
    )
