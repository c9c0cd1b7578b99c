"""What happens now, as plain data and images."""

from __future__ import annotations

import time
from typing import Any

from memory_bank import MemoryConfig
from predimem.serving.engine import Engine
from predimem.serving.http_reply import FOREVER, Page, json_page, missing
from predimem.serving.jpeg import jpeg
from predimem.serving.session import Session


def overview(engine: Engine) -> dict[str, Any]:
    """The server, and one line for each session."""
    ready, state = engine.health()
    told = engine.metadata
    return {
        "ready": ready,
        "state": state,
        "up_s": round(time.monotonic() - engine.began_s),
        "queues": engine.queues,
        "refused": total(engine.metrics.rejected),
        "restarts": total(engine.metrics.s2_restarts),
        "server": {key: told[key] for key in ("cameras", "control_hz", "versions", "weights", "memory")},
        "keeps": engine.store is not None,
        "sessions": [_line(session) for session in engine.sessions.live()],
    }


def live_episode(engine: Engine, episode_id: str) -> Page:
    """One session, whole, with the overview, so that a page that is open asks once."""
    session = _find(engine, episode_id)
    if session is None:
        return missing("no such session")
    episode = _line(session) | session.watch.view() | {"own_memory": own_memory(engine.served.memory)}
    return json_page({"overview": overview(engine), "episode": episode})


def live_trajectory(engine: Engine, episode_id: str, run: str, first_step: int) -> Page:
    """State, action and times of the observations from a step on that are still in memory."""
    session = _find(engine, episode_id)
    rows = session.watch.trajectory() if session is not None and session.watch.run == run else None
    return missing("not in memory any more") if rows is None else json_page(rows.plain(first_step))


def live_image(engine: Engine, episode_id: str, run: str, step: int, camera: int) -> Page:
    """What a camera (its place in the metadata) saw at a step that is still in memory."""
    session = _find(engine, episode_id)
    frame = session.frame(step) if session is not None and session.watch.run == run else None
    cameras = engine.served.robot.cameras
    image = None if frame is None or camera >= len(cameras) else frame.images.get(cameras[camera])
    if image is None:
        return missing("not in memory any more, or the robot did not send it")
    return Page(200, "image/jpeg", jpeg(image), FOREVER)


def own_memory(memory: MemoryConfig) -> str | None:
    """The name of the class where the memory is not the memory bank; without the path of its file."""
    return None if memory.implementation is None else memory.implementation.rpartition(":")[2]


def total(counter: Any) -> int:
    """Of a Prometheus counter, over all its labels."""
    return int(sum(s.value for metric in counter.collect() for s in metric.samples if s.name.endswith("_total")))


def _line(session: Session) -> dict[str, Any]:
    reply = session.last_reply or {}
    return {
        "id": session.episode_id,
        "instruction": session.instruction,
        "step": reply.get("step"),
        "subtask": reply.get("subtask"),
        "planner": reply.get("planner"),
        "warning": session.warning,
        "slow": session.watch.slowness(),
        "began_s": round(session.watch.began_s, 3),
        "resumed": reply.get("resumed", False),
        "idle_s": round(time.monotonic() - session.used_s, 1),
    }


def _find(engine: Engine, episode_id: str) -> Session | None:
    return next((s for s in engine.sessions.all() if s.episode_id == episode_id and s.begun), None)
