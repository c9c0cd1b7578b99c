"""The history of a robot from the memory store, which keeps what it saw across episodes, days and restarts."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from itertools import groupby

from memory_bank.store import DamagedImage, MemoryStore, Scope, StoredKeyframe
from predimem.core.types import Frame, History, PastSession

log = logging.getLogger(__name__)
MOST = 64  # episodes that are looked at; older ones are not


def history_of(
    store: MemoryStore,
    robot: str,
    without_episode: str | None = None,
    most: int = MOST,
    now_s: float | None = None,
    shows: Mapping[str, tuple[int, int]] | None = None,
) -> History:
    """What a robot nominated in its last `most` episodes, each as a session of its own, oldest first.

    An episode is the shortest stretch of a robot's time that has one instruction, so that a session of the store with
    several episodes is several here; their names are `session/episode`. Embeddings are left to the memory: those of
    the store have length 1, and the gate takes a mean away from raw ones.

    without_episode: leaves out one, such as the one that is played. now_s: seconds since 1970, for the ages. shows:
    camera -> [height, width]; keyframes that lack one of these cameras, or have it in another size, are left out, such
    as those from before the robot got its camera. So are those that are deleted meanwhile or whose file is damaged.
    """
    now = time.time() if now_s is None else now_s
    kept = store.keyframes(Scope(robot=robot, without_episode=without_episode, nominated=True))
    newest = list(dict.fromkeys(keyframe.key for keyframe in kept))[:most]
    kept = sorted((k for k in kept if k.key in set(newest)), key=lambda k: (-newest.index(k.key), k.step))
    sessions = [_session(store, list(of_one), now, shows or {}) for _, of_one in groupby(kept, key=lambda k: k.key)]
    return History(tuple(session for session in sessions if session.frames), robot)


def _session(
    store: MemoryStore, keyframes: list[StoredKeyframe], now_s: float, shows: Mapping[str, tuple[int, int]]
) -> PastSession:
    last = keyframes[-1]
    frames = (_frame(store, keyframe) for keyframe in keyframes)
    return PastSession(
        name=f"{last.session}/{last.episode_id}",
        age_s=max(0.0, now_s - max(keyframe.at_s for keyframe in keyframes)),
        instruction=last.instruction,
        frames=tuple(frame for frame in frames if frame is not None and _fits(frame, shows)),
        robot=last.robot,
        episode_id=last.episode_id,
    )


def _frame(store: MemoryStore, keyframe: StoredKeyframe) -> Frame | None:
    try:
        return store.frame(keyframe.key, keyframe.step)
    except KeyError:
        return None
    except DamagedImage as error:
        log.warning("step %d of %s is left out: %s", keyframe.step, keyframe.episode_id, error)
        return None


def _fits(frame: Frame, shows: Mapping[str, tuple[int, int]]) -> bool:
    return all(name in frame.images and frame.images[name].shape[:2] == tuple(shows[name]) for name in shows)
