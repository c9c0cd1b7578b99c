"""What is remembered of images: bounded, fair to every robot, and without an effect on what comes out."""

from __future__ import annotations

import pytest
import torch

from planner.fair_shares import fair_shares
from planner.feature_memory import FeatureMemory, ImageFeatures

SIZE = 4 * (8 + 8)  # bytes of one timestep of one image


def features(number: float) -> list[ImageFeatures]:
    return [ImageFeatures(torch.full((2, 4), float(number)), (torch.full((2, 4), number + 0.5),))]


def show(memory: FeatureMemory, robot: str, *numbers: int) -> int:
    """A robot shows these timesteps; how many of them had to be computed."""
    computed = 0
    for number in numbers:
        if memory.get((number,), robot) is None:
            memory.put((number,), features(number), robot)
            computed += 1
        memory.trim()
    return computed


def test_shares_are_equal_and_what_one_does_not_need_goes_to_the_others():
    assert fair_shares({"a": 10, "b": 10}, 100) == {"a": 10, "b": 10}
    assert fair_shares({"a": 100, "b": 10, "c": 100}, 90) == {"a": 40, "b": 10, "c": 40}
    assert fair_shares({"a": 5, "b": 6}, 0) == {"a": 0, "b": 0}
    assert fair_shares({}, 10) == {}


def test_the_bytes_are_bounded_and_what_was_used_last_stays():
    memory = FeatureMemory(3 * SIZE)
    assert show(memory, "r", 1, 2, 3, 1, 4) == 4
    assert memory.bytes == 3 * SIZE
    assert show(memory, "r", 1, 3, 4) == 0
    assert show(memory, "r", 2) == 1


def test_a_robot_with_many_images_does_not_push_out_those_of_another():
    memory = FeatureMemory(8 * SIZE)
    show(memory, "few", 1, 2, 3)
    show(memory, "many", *range(10, 40))
    assert show(memory, "few", 1, 2, 3) == 0
    assert show(memory, "many", *range(35, 40)) == 0
    assert memory.bytes <= 8 * SIZE


def test_four_robots_that_ask_in_turns_compute_what_is_new_alone():
    """Each shows 37 timesteps. With one list of the last 128 for all, every question would compute many anew."""
    memory = FeatureMemory(4 * 37 * SIZE)
    shown = [list(range(100 * robot, 100 * robot + 37)) for robot in range(4)]
    for robot, numbers in enumerate(shown):
        show(memory, f"{robot}", *numbers)
    for step in range(40, 45):
        for robot, numbers in enumerate(shown):
            numbers[:] = [*numbers[1:], 100 * robot + step]
            assert show(memory, f"{robot}", *numbers) == 1


def test_what_two_robots_show_is_held_once_until_both_forget_it():
    memory = FeatureMemory(10 * SIZE)
    show(memory, "a", 1)
    assert show(memory, "b", 1) == 0 and memory.bytes == SIZE
    memory.forget("a")
    assert show(memory, "b", 1) == 0
    memory.forget("b")
    assert len(memory) == memory.bytes == 0


def test_what_is_spilled_comes_back_and_nothing_is_held_beyond_the_limits():
    memory = FeatureMemory(2 * SIZE, spill_bytes=2 * SIZE)
    assert show(memory, "r", 1, 2, 3, 4, 5) == 5
    assert (memory.bytes, memory.spilled_bytes) == (2 * SIZE, 2 * SIZE)
    assert show(memory, "r", 2, 3) == 0
    assert (memory.bytes, memory.spilled_bytes) == (2 * SIZE, 2 * SIZE)
    assert show(memory, "r", 1) == 1
    (image,) = memory.get((3,), "r")
    assert torch.equal(image.merged, features(3)[0].merged)


def test_half_precision_takes_half_the_bytes_and_is_used_from_the_first_time_on():
    memory, whole = FeatureMemory(100 * SIZE, half=True), [ImageFeatures(torch.tensor([[1 / 3]]), ())]
    (first,) = memory.put((1,), whole, "r")
    (again,) = memory.get((1,), "r")
    assert memory.bytes == 2
    assert first.merged.dtype == torch.float32 and torch.equal(first.merged, again.merged)
    assert not torch.equal(first.merged, whole[0].merged)


def test_a_limit_below_zero_is_an_error():
    with pytest.raises(ValueError, match="must not be negative, got -1 and 0"):
        FeatureMemory(-1)
