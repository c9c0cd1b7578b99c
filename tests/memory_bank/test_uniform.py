"""Frames spread evenly over an episode: which are shown, how many are held, and that the contract is kept."""

from __future__ import annotations

import numpy as np
import pytest

from memory_bank import MemoryConfig, make_memory
from memory_bank.conformance import check_memory
from memory_bank.made_up import MadeUpEpisode
from memory_bank.uniform import UniformFrames
from predimem.core.types import Observation

PLACE = "memory_bank.uniform:UniformFrames"


def shown(steps: range, frames: int = 4, window: int = 2) -> tuple[int, ...]:
    memory = make_memory(MemoryConfig(recent_window=window, implementation=PLACE, options={"frames": frames}))
    memory.reset("episode", "do it")
    image = np.zeros((4, 4, 3), np.uint8)
    for step in steps:
        memory.observe(Observation(step, {"camera": image}, np.zeros(2, np.float32), step / 20))
    return tuple(frame.step for frame in memory.snapshot().keyframes)


def test_few_frames_are_all_shown() -> None:
    assert shown(range(5)) == (0, 1, 2)


def test_frames_are_spread_over_the_whole_episode() -> None:
    assert shown(range(8)) == (0, 2, 4)  # eight would be held: every other one goes
    assert shown(range(1000)) == (0, 256, 512, 768)
    assert shown(range(1400)) == (0, 512, 768, 1280)  # six are held
    gaps = np.diff(shown(range(1700), frames=8))
    assert gaps.min() * 2 >= gaps.max()


def test_steps_below_zero_count_as_the_others() -> None:
    """A conditioning video comes before step 0."""
    assert shown(range(-8, 0)) == (-8, -6, -4)


def test_no_more_than_twice_as_many_frames_are_held() -> None:
    memory = UniformFrames(MemoryConfig(), frames=4)
    memory.reset("episode", "do it")
    episode = MadeUpEpisode(0)
    for step in range(500):
        memory.observe(episode.observation(step))
        assert len(memory._held) < 8


def test_the_number_of_frames_is_checked() -> None:
    with pytest.raises(ValueError, match="at least 2, got 1"):
        UniformFrames(MemoryConfig(), frames=1)


@pytest.mark.slow
def test_the_contract_is_kept() -> None:
    found = list(check_memory(MemoryConfig(implementation=PLACE)))
    assert not [finding for finding in found if finding.fault]
