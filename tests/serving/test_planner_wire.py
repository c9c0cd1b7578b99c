"""Snapshots on their way to the planner's process: images cross once, and are let go at both ends together."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from predimem.core.types import Frame, MemorySnapshot, PastSession, Plan
from predimem.serving import wire
from predimem.serving.planner_process import _plan_data, _read_plan
from predimem.serving.planner_wire import Job, JobReader, JobWriter

PIXELS = 64 * 64 * 3


def frame(step: int, frozen: bool = True) -> Frame:
    image = np.full((64, 64, 3), step, np.uint8)
    image.flags.writeable = not frozen
    return Frame(step, step / 20, MappingProxyType({"cam": image}), np.array([step], np.float32) if step else None)


def tiny(step: int) -> Frame:
    image = np.zeros((1, 1, 3), np.uint8)
    image.flags.writeable = False
    return Frame(step, step / 20, MappingProxyType({"cam": image}))


def snapshot(recent: list[Frame], keyframes: list[Frame]) -> MemorySnapshot:
    return MemorySnapshot("e", recent[-1].step, "do it", tuple(recent), tuple(keyframes), ("reach",))


def test_what_arrives_is_what_was_sent():
    writer, reader = JobWriter(), JobReader()
    sent = snapshot([frame(8), frame(9, frozen=False)], [frame(0)])
    for _ in range(2):
        (got,) = reader.read(writer.write(Job(asked=[sent]))).asked
        assert (got.episode_id, got.step, got.instruction, got.past_subtasks) == ("e", 9, "do it", ("reach",))
        for ours, theirs in zip((*sent.recent, *sent.keyframes), (*got.recent, *got.keyframes), strict=True):
            assert (ours.step, ours.time_s, ours.state) == (theirs.step, theirs.time_s, theirs.state)
            assert np.array_equal(ours.images["cam"], theirs.images["cam"])


def test_earlier_sessions_cross_with_their_frames():
    writer, reader = JobWriter(), JobReader()
    past = PastSession("monday/3", 7200.0, "put it away", (frame(3), frame(4)), "r1", "Anna", np.zeros((2, 5)))
    sent = replace(snapshot([frame(9)], []), past_sessions=(past,))
    ((got,),) = (job.past_sessions for job in reader.read(writer.write(Job(asked=[sent]))).asked)
    assert (got.name, got.age_s, got.instruction, got.robot, got.person) == (
        "monday/3", 7200.0, "put it away", "r1", "Anna",
    )  # fmt: skip
    assert [f.step for f in got.frames] == [3, 4] and int(got.frames[1].images["cam"][0, 0, 0]) == 4
    assert got.embeddings is None  # the planner's process has the tower


def test_an_image_crosses_once_and_is_the_same_object_from_then_on():
    writer, reader = JobWriter(), JobReader()
    frames = [frame(step) for step in range(5)]
    first = writer.write(Job(asked=[snapshot(frames[3:], frames[:3])]))
    before = reader.read(first).asked[0]
    frames.append(frame(5))
    second = writer.write(Job(asked=[snapshot(frames[4:], frames[:3])]))
    after = reader.read(second).asked[0]
    assert len(first) > 5 * PIXELS and PIXELS < len(second) < 1.2 * PIXELS
    assert after.keyframes[0].images["cam"] is before.keyframes[0].images["cam"]
    assert not after.keyframes[0].images["cam"].flags.writeable


def test_what_the_near_end_lets_go_the_far_end_lets_go_with_the_next_job():
    writer, reader = JobWriter(), JobReader()
    frames = [frame(step) for step in range(4)]
    reader.read(writer.write(Job(asked=[snapshot(frames, [])])))
    assert len(reader.images) == 4
    del frames[:2]
    reader.read(writer.write(Job(asked=[snapshot(frames, [])])))
    assert len(reader.images) == 2


def test_an_image_that_may_change_is_sent_again():
    writer, reader = JobWriter(), JobReader()
    changing = frame(3, frozen=False)
    reader.read(writer.write(Job(asked=[snapshot([changing], [])])))
    changing.images["cam"][:] = 77
    (got,) = reader.read(writer.write(Job(asked=[snapshot([changing], [])]))).asked
    assert got.recent[0].images["cam"].max() == 77
    reader.read(writer.write(Job()))
    assert not reader.images


def test_a_new_process_gets_everything_again():
    writer, frames = JobWriter(), [frame(1), frame(2)]
    writer.write(Job(asked=[snapshot(frames, [])]))
    writer.reset()
    (got,) = JobReader().read(writer.write(Job(asked=[snapshot(frames, [])], forget=["old"]))).asked
    assert [int(f.images["cam"][0, 0, 0]) for f in got.recent] == [1, 2]


def test_what_is_to_come_and_what_is_over_cross_too():
    writer, reader = JobWriter(), JobReader()
    upcoming = MemorySnapshot("e", 20, "do it", (), (frame(1),))
    job = reader.read(writer.write(Job(upcoming=upcoming, forget=["a", "b"])))
    assert job.upcoming is not None and job.upcoming.keyframes[0].step == 1 and not job.upcoming.recent
    assert (list(job.asked), list(job.forget)) == ([], ["a", "b"])


def test_long_memories_of_many_robots_cross_at_once_to_a_new_process():
    writer, frames = JobWriter(), [frame(1)]
    for first in range(2, 5000, 250):
        frames += [tiny(step) for step in range(first, first + 250)]
    assert len(frames) > wire.MAX_ITEMS
    (got,) = JobReader().read(writer.write(Job(asked=[snapshot(frames[-1:], frames[:-1])]))).asked
    assert len(got.keyframes) == len(frames) - 1


def test_after_a_job_that_did_not_arrive_everything_is_sent_again():
    writer, reader, frames = JobWriter(), JobReader(), [frame(1), frame(2)]
    reader.read(writer.write(Job(asked=[snapshot(frames[:1], [])])))
    with pytest.raises(wire.WireError):
        reader.read(writer.write(Job(asked=[snapshot(frames, [])]))[:-1])
    writer.reset()
    (got,) = reader.read(writer.write(Job(asked=[snapshot(frames, [])]))).asked
    assert [int(f.images["cam"][0, 0, 0]) for f in got.recent] == [1, 2] and len(reader.images) == 2


def test_a_plan_comes_back_with_what_comes_next():
    plan = Plan("e", 9, "reach", (8, 9), "{}", confidence=0.5, next_subtasks=("lift", "place"))
    assert _read_plan(wire.unpack(wire.pack(_plan_data(plan)), wire.NO_LIMIT, wire.NO_LIMIT)) == plan
