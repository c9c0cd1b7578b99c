"""What is kept of each robot, session by session."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import groupby
from typing import Any
from urllib.parse import quote

from memory_bank.store import MemoryStore, Scope, StoredKeyframe
from predimem.serving.engine import Engine
from predimem.serving.http_reply import Page, json_page, missing

SESSIONS = 100  # of a robot, the last used ones
SHOWN = 12  # keyframes of an episode
NOTES = 200


def robots(engine: Engine) -> Page:
    """The last used first."""
    return json_page([] if engine.store is None else [asdict(one) for one in engine.store.robots()])


def robot(engine: Engine, name: str) -> Page:
    """sessions: the last used first, each with its episodes, the newest first, and what was written about the session.
    keyframes: those that the planner nominated, see `plain`; of many, some that are spread evenly. notes: about the
    robot itself."""
    store = engine.store
    if store is None:
        return missing("nothing is kept: the server runs without --state-dir")
    if name not in {known.robot for known in store.robots()}:
        return missing("nothing of this robot is kept")
    notes = [asdict(note) for note in store.notes(name)][-NOTES:]
    sessions = [_session(store, asdict(one), notes) for one in store.sessions(name)[:SESSIONS]]
    return json_page({"robot": name, "sessions": sessions, "notes": [n for n in notes if n["session"] is None]})


def plain(keyframe: StoredKeyframe) -> dict[str, Any]:
    """A keyframe for the page. images: the addresses of its images, in the order of `cameras`."""
    addresses = [
        f"/page/past/{keyframe.key}/{keyframe.step}/{quote(camera, safe='')}.png" for camera in keyframe.cameras
    ]
    told = ("id", "episode_id", "robot", "session", "instruction", "step", "at_s", "subtask", "nominated", "cameras")
    return {name: getattr(keyframe, name) for name in told} | {"images": addresses}


def _session(store: MemoryStore, session: dict[str, Any], notes: list[dict[str, Any]]) -> dict[str, Any]:
    scope = Scope(robot=session["robot"], session=session["session"], nominated=True)
    kept = sorted(store.keyframes(scope), key=lambda keyframe: (keyframe.key, keyframe.step))
    shown = {name: _spread(list(its)) for name, its in groupby(kept, key=lambda keyframe: keyframe.episode_id)}
    episodes = [
        episode | {"keyframes": [plain(keyframe) for keyframe in shown.get(episode["episode_id"], [])]}
        for episode in store.episodes(replace(scope, nominated=None))
    ]
    return session | {"episodes": episodes, "notes": [n for n in notes if n["session"] == session["session"]]}


def _spread(keyframes: list[StoredKeyframe]) -> list[StoredKeyframe]:
    """`SHOWN` of them, the first and the last among them."""
    if len(keyframes) <= SHOWN:
        return keyframes
    return [keyframes[i * (len(keyframes) - 1) // (SHOWN - 1)] for i in range(SHOWN)]
