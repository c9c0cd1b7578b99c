"""What an episode leaves behind in an engine, in bytes: `python -m tests.serving.left_behind FOLDER`.

Traced memory over 300 episodes that end in every way, most of them while S2 plans, without any garbage collection: a
cycle of objects counts as much as an object in a list that grows.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from typing import Any

import pytest

from predimem.serving import wire
from predimem.serving.engine import Engine
from predimem.serving.refusal import Refusal
from predimem.serving.sessions import Client
from tests.serving.support import observe, settings, small_config, small_models

EPISODES = 300


def bytes_per_episode(folder: str) -> float:
    config = small_config(state={"dir": folder, "episodes": 5, "sync": False}, limits={"idle_s": 1e-6})
    engine = Engine(settings(config), small_models(planner_s=0.005))
    engine.start()
    try:
        play(engine, 0, 100)  # the newest 5 are kept, counters exist, what is loaded late is there
        gc.collect()
        gc.disable()
        tracemalloc.start()
        play(engine, 100, 120)
        before, _ = tracemalloc.get_traced_memory()
        play(engine, 120, 120 + EPISODES)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
        engine.close()
    return (after - before) / EPISODES


def play(engine: Engine, first: int, last: int) -> None:
    """One episode for each number. In turn it is ended, left, and begun anew under the same name."""
    for number in range(first, last):
        client, name = engine.connect(), f"episode-{number}"
        for step in (0, 4, 8):
            _ask(engine, client, observe(episode_id=name, step=step))
        with pytest.raises(Refusal, match="order"):
            _ask(engine, client, observe(episode_id=name, step=2))
        if number % 3 == 0:
            _ask(engine, client, {"episode_id": name, "done": True})
        elif number % 3 == 1:
            _ask(engine, client, observe(episode_id=name, step=0, reset=True))
        engine.leave(client)
        engine.expire()


def _ask(engine: Engine, client: Client, message: dict[str, Any]) -> None:
    engine.handle(client, wire.pack(message), time.monotonic())


if __name__ == "__main__":
    print(bytes_per_episode(sys.argv[1]))
