"""A session as one file, to take it from one store to another: a zip archive with `session.json`, PNG files, the
pieces of trajectories, and embeddings as NumPy arrays."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank.store.database import Link, Row
from memory_bank.store.deleting import DAY_S
from memory_bank.store.images import from_png
from memory_bank.store.reader import FAILURE, PLAN, StoreReader
from memory_bank.store.records import StoreError, check_name
from memory_bank.store.rows import (
    add_embeddings,
    add_failure,
    add_keyframes,
    add_piece,
    add_plan,
    model_key,
    session_key,
    unit,
)
from memory_bank.store.store import MemoryStore
from predimem.core.files import AtomicWrite

FORMAT, VERSION = "predimem session", 1
_EPISODE = ("id", "episode_id", "instruction", "began_s", "used_s", "outcome")
_KEYFRAME = ("step", "time_s", "at_s", "cameras", "subtask", "nominated")
Episode = dict[str, Any]  # of session.json
_NOTE = ("episode", "at_s", "author", "text")


def export_session(store: StoreReader, robot: str, session: str, path: Path) -> int:
    """Write a session, whole or not at all; how many keyframes it has. Raises StoreError where it is not there."""
    with store.database.reading() as read:
        key = store.session_key(read, robot, session)
        began_s = read("SELECT began_s FROM sessions WHERE id = ?", (key,))[0][0]
        rows = read(f"SELECT {', '.join(_EPISODE)} FROM episodes WHERE session = ? ORDER BY id", (key,))
        files: dict[str, bytes] = {}
        episodes = [_told(store, read, place, row, files) for place, row in enumerate(rows)]
        places = {row[0]: place for place, row in enumerate(rows)}
        notes = read(f"SELECT {', '.join(_NOTE)} FROM notes WHERE session = ? ORDER BY at_s, id", (key,))
    about = {"format": FORMAT, "version": VERSION, "robot": robot, "session": session, "began_s": began_s}
    about |= {"episodes": episodes, "notes": [(places.get(episode), *rest) for episode, *rest in notes]}
    with AtomicWrite(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("session.json", json.dumps(about))
        for name, data in files.items():
            archive.writestr(name, data)
        for place, one in enumerate(episodes):
            for step, _, _, cameras, *_ in one["keyframes"]:
                for camera in range(len(json.loads(cameras))):
                    try:
                        png = store.images.read(rows[place][0], step, camera)
                    except KeyError:
                        raise StoreError(
                            f"the session {session!r} was not written: an image of step {step} of episode "
                            f"{one['episode_id']!r} has got lost, or the session was deleted meanwhile"
                        ) from None
                    archive.writestr(f"images/{place}/{step}-{camera}.png", png)
    return sum(len(one["keyframes"]) for one in episodes)


def _told(store: StoreReader, read: Link, place: int, row: Row, files: dict[str, bytes]) -> Episode:
    """An episode for `session.json`; what is no JSON is added to `files`."""
    key = row[0]
    one: Episode = dict(zip(_EPISODE[1:], row[1:], strict=True))
    for name, table in (("plans", PLAN), ("failures", FAILURE), ("keyframes", ", ".join(_KEYFRAME))):
        one[name] = read(f"SELECT {table} FROM {name} WHERE episode = ? ORDER BY step", (key,))
    pieces = read("SELECT at_s, piece FROM trajectories WHERE episode = ? ORDER BY at_s", (key,))
    one["trajectory"] = [at_s for at_s, _ in pieces]
    files |= {f"trajectories/{place}/{number}": bytes(piece) for number, (_, piece) in enumerate(pieces)}
    vectors: dict[str, dict[int, np.ndarray]] = {}
    for name, step, vector in read(
        "SELECT m.name, k.step, v.vector FROM embeddings v JOIN keyframes k ON k.id = v.keyframe "
        "JOIN models m ON m.id = v.model WHERE k.episode = ? ORDER BY m.id, k.step",
        (key,),
    ):
        vectors.setdefault(name, {})[step] = store.database.unpack(vector)
    one["embeddings"] = {name: list(of_steps) for name, of_steps in vectors.items()}
    for number, of_steps in enumerate(vectors.values()):
        buffer = io.BytesIO()
        np.save(buffer, np.stack(list(of_steps.values())))
        files[f"embeddings/{place}/{number}.npy"] = buffer.getvalue()
    return one


def import_session(store: MemoryStore, path: Path, robot: str | None = None, session: str | None = None) -> str:
    """Read what `export_session` wrote, whole or not at all; a sentence about what came.

    robot, session: other names than those in the file. The id of an episode that the store has already gets a number
    at its end.

    Raises StoreError where the file is none, or the store has the session already.
    """
    about = _checked(path)
    episodes = about["episodes"]
    robot = check_name("robot", about["robot"] if robot is None else robot)
    session = check_name("session", about["session"] if session is None else session)
    with store.database.reading() as read:
        _check_new(read, robot, session)
    keys = _reserve(store, len(episodes))
    with zipfile.ZipFile(path) as archive:
        sizes = []
        for place, key in enumerate(keys):
            pngs = _pngs(archive, place, episodes[place])
            store.images.write(key, pngs)
            sizes.append(sum(map(len, pngs.values())))
        with store.database.writing() as write:
            store.database.alone(write)
            _check_new(write, robot, session)
            of_session = session_key(write, robot, session, about["began_s"])
            for place, (key, one) in enumerate(zip(keys, episodes, strict=True)):
                about_it = [one[name] for name in _EPISODE if name not in ("id", "episode_id")]
                write(
                    "INSERT INTO episodes (id, episode_id, instruction, began_s, used_s, outcome, session, image_bytes)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (key, _free_id(write, one["episode_id"]), *about_it, of_session, sizes[place]),
                )
                _fill(store, write, archive, place, key, one)
                write("DELETE FROM trash WHERE episode = ?", (key,))
            for place, at_s, author, text in about["notes"]:
                write(
                    "INSERT INTO notes (robot, session, episode, at_s, author, text) "
                    "SELECT robot, id, ?, ?, ?, ? FROM sessions WHERE id = ?",
                    (None if place is None else keys[place], at_s, author, text, of_session),
                )
    frames = sum(len(one["keyframes"]) for one in about["episodes"])
    return f"session {session!r} of robot {robot!r}: {len(keys)} episodes, {frames} keyframes"


def _fill(store: MemoryStore, write: Link, archive: zipfile.ZipFile, place: int, key: int, one: Episode) -> None:
    for plan in one["plans"]:
        add_plan(write, key, plan)
    for failure in one["failures"]:
        add_failure(write, key, failure)
    for at_s, piece in _pieces(archive, place, one):
        add_piece(write, key, at_s, piece)
    add_keyframes(write, [(key, *keyframe) for keyframe in one["keyframes"]])
    if store.images.in_database:
        store.images.add(write, key, _pngs(archive, place, one))
    for name, steps, vectors in _embeddings(archive, place, one):
        model = model_key(write, name, vectors.shape[1])
        rows = [(model, store.database.pack(unit(v)), key, step) for step, v in zip(steps, vectors, strict=True)]
        add_embeddings(write, rows)


def _embeddings(archive: zipfile.ZipFile, place: int, one: Episode) -> Iterator[tuple[str, list[int], np.ndarray]]:
    for number, (name, steps) in enumerate(one["embeddings"].items()):
        data = archive.read(f"embeddings/{place}/{number}.npy")
        vectors = np.load(io.BytesIO(data), allow_pickle=False)
        if vectors.shape != (len(steps), *vectors.shape[1:2]):
            raise ValueError(f"the embeddings of {name!r} have shape {list(vectors.shape)} for {len(steps)} steps")
        yield name, steps, vectors


def _pieces(archive: zipfile.ZipFile, place: int, one: Episode) -> Iterator[tuple[float, bytes]]:
    for number, at_s in enumerate(one["trajectory"]):
        yield at_s, archive.read(f"trajectories/{place}/{number}")


def _pngs(archive: zipfile.ZipFile, place: int, one: Episode) -> dict[tuple[int, int], bytes]:
    return {
        (step, camera): archive.read(f"images/{place}/{step}-{camera}.png")
        for step, _, _, cameras, *_ in one["keyframes"]
        for camera in range(len(json.loads(cameras)))
    }


def _reserve(store: MemoryStore, count: int) -> list[int]:
    """Keys for episodes that nobody else gets. Until they are used they are in the trash, so that what a crash leaves
    of an import is removed a day later."""
    keys = []
    with store.database.writing() as write:
        for _ in range(count):
            sql = "INSERT INTO episodes (episode_id, instruction, began_s, used_s) VALUES ('', '', 0, 0) RETURNING id"
            keys.append(write(sql)[0][0])
            write("DELETE FROM episodes WHERE id = ?", (keys[-1],))
        write.many("INSERT INTO trash VALUES (?, ?)", [(key, time.time() + DAY_S) for key in keys])
    return keys


def _check_new(link: Link, robot: str, session: str) -> None:
    sql = "SELECT 1 FROM sessions s JOIN robots r ON r.id = s.robot WHERE r.name = ? AND s.name = ?"
    if link(sql, (robot, session)):
        raise StoreError(
            f"the store has a session {session!r} of the robot {robot!r} already: give another name for one of them, "
            "or delete what is there"
        )


def _free_id(write: Any, episode_id: str) -> str:
    free, number = episode_id, 1
    while write("SELECT 1 FROM episodes WHERE episode_id = ?", (free,)):
        number += 1
        free = f"{episode_id}-{number}"
    return free


def _checked(path: Path) -> dict[str, Any]:
    """`session.json`, once all that it names was read. Raises StoreError where something of it is missing or broken."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("session.json"))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise ValueError("its session.json is about something else")
            if about["version"] > VERSION:
                raise ValueError(f"a newer predimem wrote it (version {about['version']}); update this one")
            for name, kind in (("robot", str), ("session", str), ("began_s", int | float), ("notes", list)):
                if not isinstance(about[name], kind):
                    raise ValueError(f"{name} of another form")
            for place, one in enumerate(about["episodes"]):
                for name, length in (("plans", PLAN), ("failures", FAILURE)):
                    if any(len(row) != len(length.split(", ")) for row in one[name]):
                        raise ValueError(f"{name} of another form")
                for png in _pngs(archive, place, one).values():
                    from_png(png)
                for _ in (*_pieces(archive, place, one), *_embeddings(archive, place, one)):
                    pass
            return about
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, TypeError, IndexError, ValueError, OSError, EOFError) as error:
        raise StoreError(f"{path} is no session that `predimem memory export` wrote, or is damaged: {error}") from error
