"""Checks that a memory of one's own keeps the contract: `predimem verify memory my_memory.py:MyMemory`.

Each check plays made-up episodes to the memory as the runtime does, and raises `MemoryFault` with what was expected and
what came. `check_memory` runs all of them.
"""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from memory_bank.config import MemoryConfig
from memory_bank.contract import MemoryFault
from memory_bank.made_up import MadeUpEpisode, check_frames, made_up_history, play, told
from memory_bank.own import HostedMemory, own_memory
from predimem.core.types import MemorySnapshot

STEPS = 240
LONG_STEPS = 6000  # five minutes at 20 Hz
GROWTH_IMAGES = 64  # so many images more in the second half of a long episode are growth
SLOWER = 3.0  # so many times the earlier time of a control step is growth, too

Check = Callable[[MemoryConfig], None]


@dataclass(frozen=True)
class Finding:
    """What one check found. fault: what is wrong; empty where nothing is."""

    check: str
    fault: str


def check_memory(config: MemoryConfig) -> Iterator[Finding]:
    """Check the memory that `config` names, as it is configured and in other windows. Yields as it goes.

    Raises ConfigError where no such memory can be made.
    """
    own_memory(config)
    for check in CHECKS:
        fault = ""
        try:
            check(config)
        except MemoryFault as found:
            fault = str(found)
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
            fault = f"raised {type(error).__name__}: {error}{place}"
        yield Finding(str(check.__doc__).splitlines()[0].rstrip("."), fault)


def before_the_first_observation(config: MemoryConfig) -> None:
    """Before the first observation, snapshot() raises ValueError."""
    memory = own_memory(config)
    memory.reset("episode", "do it")
    try:
        came = memory.snapshot()
    except ValueError:
        return
    except Exception as error:
        raise MemoryFault(f"snapshot() raised {type(error).__name__}: {error}; RecentWindow.frames() does it") from None
    raise MemoryFault(f"snapshot() returned {type(came).__name__} before anything was observed")


def order_of_steps(config: MemoryConfig) -> None:
    """An observation of an earlier step, or of the same one again, raises ValueError."""
    episode = MadeUpEpisode(0)
    for again in (4, 3):
        memory = own_memory(config)
        memory.reset("episode", "do it")
        for step in (3, 4):
            memory.observe(episode.observation(step))
        try:
            memory.observe(episode.observation(again))
        except ValueError:
            continue
        raise MemoryFault(f"observe() took step {again} after step 4; RecentWindow.add() refuses it")


def snapshots(config: MemoryConfig) -> None:
    """Snapshots show the window that the config says, and older keyframes that were observed."""
    for windowed in _windows(config):
        episode, memory = MadeUpEpisode(1), _hosted(windowed)
        for snapshot in play(memory, episode, STEPS):
            check_frames(snapshot, windowed, episode)


def gaps(config: MemoryConfig) -> None:
    """An episode may begin at any step, and steps may be missing."""
    episode, memory = MadeUpEpisode(2), _hosted(config)
    memory.reset("episode", "do it")
    for step in (*range(1000, 1030), *range(1100, 1200, 5), *range(5000, 5040)):
        memory.observe(episode.observation(step))
        memory.snapshot()


def nothing_changes_later(config: MemoryConfig) -> None:
    """What a snapshot has shown never changes, and nobody can change it."""
    taken: list[tuple[MemorySnapshot, object]] = []
    for snapshot in play(_hosted(config), MadeUpEpisode(3), STEPS):
        for frame in (*snapshot.keyframes, *snapshot.recent):
            for camera, image in frame.images.items():
                if image.flags.writeable:
                    raise MemoryFault(
                        f"the image {camera!r} of step {frame.step} can be written to: call "
                        "image.setflags(write=False) on images that you make yourself"
                    )
        taken.append((snapshot, told(snapshot)))
    for snapshot, before in taken:
        if told(snapshot) != before:
            raise MemoryFault(
                f"the snapshot of step {snapshot.step} shows something else by step {STEPS - 1}: make new images and "
                "tuples, and leave those alone that a snapshot has shown; the planner still reads them"
            )


def reset_forgets(config: MemoryConfig) -> None:
    """After reset() nothing is left of the episode before."""
    used, fresh = _hosted(config), _hosted(config)
    for _ in play(used, MadeUpEpisode(4), STEPS):
        pass
    _compare(used, fresh, "an episode that follows another one differs from the same episode in a new memory")


def earlier_sessions(config: MemoryConfig) -> None:
    """What recall() told of earlier sessions is forgotten by the next reset()."""
    used, fresh, episode = _hosted(config), _hosted(config), MadeUpEpisode(4)
    if not used.recalls:
        return
    for snapshot in play(used, episode, STEPS, earlier=made_up_history(f"do number {episode.seed}")):
        if snapshot.past_sessions and not used.shows_sessions:
            raise MemoryFault(
                "snapshot.past_sessions is not empty: set the attribute shows_sessions = True, so that a planner whose "
                "prompt has no section for earlier sessions is refused"
            )
    _compare(used, fresh, "an episode that follows one with earlier sessions differs from the same in a new memory")


def two_at_once(config: MemoryConfig) -> None:
    """Two robots, each with a memory of its own, do not disturb each other."""
    alone = [[told(s) for s in play(_hosted(config), MadeUpEpisode(seed), STEPS)] for seed in (5, 6)]
    both = (play(_hosted(config), MadeUpEpisode(seed), STEPS) for seed in (5, 6))
    for step, snapshots_now in enumerate(zip(*both, strict=True)):
        if [told(snapshot) for snapshot in snapshots_now] != [snapshots[step] for snapshots in alone]:
            raise MemoryFault(
                f"at step {step} a memory shows something else because another one exists: they share something, "
                "such as an attribute of the class or a mutable default"
            )


def same_twice(config: MemoryConfig) -> None:
    """The same observations give the same snapshots, however fast the machine is."""
    once = [told(snapshot) for snapshot in play(_hosted(config), MadeUpEpisode(7), STEPS)]
    random.seed(1)
    np.random.seed(1)
    with _hurried_clock():
        for step, snapshot in enumerate(play(_hosted(config), MadeUpEpisode(7), STEPS)):
            if told(snapshot) != once[step]:
                raise MemoryFault(
                    f"at step {step} the same episode gives another snapshot: take the time from "
                    "observation.time_s, not from a clock, and randomness from a generator with a fixed seed"
                )


def growth(config: MemoryConfig) -> None:
    """A long episode takes no more memory and no more time for a control step than a short one."""
    capped = replace(config, keyframe_capacity=config.keyframe_capacity or 8)
    memory, episode, sizes = _hosted(capped), MadeUpEpisode(8), []
    cpu_s: list[float] = []
    tracemalloc.start()
    try:
        for step, _ in enumerate(play(memory, episode, LONG_STEPS, cpu_s)):
            if step in (LONG_STEPS // 2, LONG_STEPS - 1):
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    image = sum(camera.nbytes for camera in episode.observation(0).images.values())
    grown = (sizes[1] - sizes[0] - len(cpu_s) // 2 * 40) / image  # the list of times grows here, too
    if grown > GROWTH_IMAGES:
        raise MemoryFault(
            f"in the second half of {LONG_STEPS} control steps the memory grew by as much as {grown:.0f} images take: "
            "something is kept of every step; a deque with maxlen forgets"
        )
    tenth = len(cpu_s) // 10
    early, late = statistics.median(cpu_s[tenth : 2 * tenth]), statistics.median(cpu_s[-tenth:])
    if late > SLOWER * early + 50e-6:
        raise MemoryFault(
            f"a control step took {1e3 * early:.2f} ms of CPU time early and {1e3 * late:.2f} ms late in {LONG_STEPS} "
            "control steps: its cost must not depend on the length of the episode"
        )


def milliseconds_of_a_step(config: MemoryConfig, side_px: int = 128, steps: int = 200) -> float:
    """The median time that observe and snapshot take with two cameras of `side_px`, for which the robot waits."""
    memory, seconds = _hosted(config), []
    episode = MadeUpEpisode(9, side_px)
    memory.reset("episode", "do it")
    for step in range(steps):
        observation = episode.observation(step)
        began = time.perf_counter()
        memory.observe(observation)
        memory.snapshot()
        seconds.append(time.perf_counter() - began)
    return 1e3 * statistics.median(seconds)


CHECKS: tuple[Check, ...] = (
    before_the_first_observation,
    order_of_steps,
    snapshots,
    gaps,
    nothing_changes_later,
    reset_forgets,
    earlier_sessions,
    two_at_once,
    same_twice,
    growth,
)


def _hosted(config: MemoryConfig) -> HostedMemory:
    return HostedMemory(own_memory(config), config)


def _windows(config: MemoryConfig) -> Iterator[MemoryConfig]:
    """The config itself, and others that a user of the memory may set."""
    yield config
    yield replace(config, recent_window=1, recent_stride_steps=1, keyframe_capacity=1)
    yield replace(config, recent_window=3, recent_stride_steps=10, keyframe_capacity=None)
    yield replace(config, recent_window=5, recent_stride_steps=1, keyframes=False)
    yield replace(config, recent_window=2, recent_stride_steps=1, past_subtasks=True)


def _compare(memory: HostedMemory, fresh: HostedMemory, what: str) -> None:
    pairs = zip(play(memory, MadeUpEpisode(5), STEPS), play(fresh, MadeUpEpisode(5), STEPS), strict=True)
    for step, (snapshot, expected) in enumerate(pairs):
        if told(snapshot) != told(expected):
            shown = [[frame.step for frame in s.keyframes] for s in (snapshot, expected)]
            raise MemoryFault(
                f"{what}, first at step {step}: keyframes of the steps {shown[0]} in place of {shown[1]}, subtasks "
                f"{list(snapshot.past_subtasks)} in place of {list(expected.past_subtasks)}"
            )


@contextmanager
def _hurried_clock() -> Iterator[None]:
    """A machine that is so slow that ten seconds pass whenever somebody looks at the clock."""
    now = iter(range(1_000_000, 1_000_000_000, 10))
    clocks: Any = {name: lambda: float(next(now)) for name in ("time", "monotonic", "perf_counter")}
    with mock.patch.multiple(time, **clocks):
        yield
