"""Which frames are nominated, and when: also where a subtask leaves no trace in the frame after it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from memory_bank import MemoryConfig
from planner.dataset import DatasetConfig, SampleMaker
from planner.nominations import frames_back, nominated_frames, own_nominations
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames

MEMORY = MemoryConfig(recent_window=3, recent_stride_steps=10, cluster_gap_steps=2)
TRACELESS = ("pour *",)
CONFIG = DatasetConfig(nominate="changes", traceless=TRACELESS, step_grid=10, own_memory_probability=0.0)


def poured(*labels: tuple[int, int, str], metadata: dict | None = None) -> Episode:
    labels = labels or ((0, 40, "pick"), (40, 100, "pour 1st"), (100, 160, "pour 2nd"), (160, 200, "place"))
    images = Frames(np.zeros((labels[-1][1], 4, 4, 3), np.uint8))
    return Episode(
        benchmark="arena",
        task="Pour",
        seed=1,
        instruction="Pour twice.",
        control_hz=20.0,
        success=True,
        images={"agentview_rgb": images},
        state=np.zeros((labels[-1][1], 3), np.float32),
        actions=np.zeros((labels[-1][1], 3), np.float32),
        subtasks=tuple(SubtaskSpan(*span) for span in labels),
        keyframes=(),
        metadata=metadata or {},
    )


def by_step(episode: Episode, config: DatasetConfig = CONFIG) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """step -> (keyframes, positions) of samples."""
    samples = SampleMaker([episode], MEMORY, config).draw(600, random.Random(0))
    return {s.snapshot.step: (tuple(f.step for f in s.snapshot.keyframes), s.positions) for s in samples}


def test_the_oldest_frame_of_the_window_is_nominated_after_a_pour():
    seen = by_step(poured())
    assert seen[90] == ((40,), ())
    assert seen[100] == ((40,), (1,))  # it is in the window still
    assert seen[110] == ((40, 80), ())  # the tilt has left the window
    assert seen[190] == ((40, 80, 140), ())


def test_other_changes_are_nominated_as_before():
    seen = by_step(poured())
    assert [seen[step][1] for step in (30, 40, 50, 60, 70)] == [(), (3,), (2,), (1,), ()]


def test_frames_that_are_nominated():
    assert nominated_frames(poured(), "changes", TRACELESS, MEMORY) == (40, 80, 140)
    assert nominated_frames(poured(), "changes", (), MEMORY) == (40, 100, 160)


def test_what_words_tell_is_not_nominated():
    assert nominated_frames(poured(), "changes", (), MEMORY, ("pick",)) == (100, 160)
    seen = by_step(poured(), replace(CONFIG, traceless=(), told=("pour *",)))
    assert seen[40] == ((), (3,)) and seen[90] == ((40,), ())
    assert [seen[step] for step in (100, 110, 160, 190)] == [((40,), ())] * 4


def test_without_a_bank_nothing_changes():
    samples = SampleMaker([poured()], replace(MEMORY, keyframes=False), CONFIG).draw(300, random.Random(0))
    assert {s.snapshot.step: s.positions for s in samples}[100] == (3,)


def test_a_pour_that_is_interrupted_is_not_at_its_end():
    spans = ((0, 40, "pick"), (40, 80, "pour 1st"), (80, 100, "pick"), (100, 140, "pour 1st"), (140, 160, "place"))
    episode = poured(*spans)
    assert [frames_back(episode, target, TRACELESS, 3) for target in (40, 80, 100, 140)] == [0, 0, 0, 2]


def test_a_planner_that_nominated_the_newest_frame_is_replayed_as_if_it_had_nominated_the_oldest():
    driven = poured(
        metadata={
            "spoken": [[0, ""], [4, "pick"], [44, "pour 1st"], [104, "pour 2nd"]],
            "nominated_steps": [40, 100, 100],
            "nominated_at": [44, 104, 114],
        }
    )
    assert own_nominations(driven, (), 20) == [(40, 44), (100, 104), (100, 114)]
    assert own_nominations(driven, TRACELESS, 20) == [(40, 44), (80, 104), (80, 114)]
    taught = replace(
        driven, metadata={**driven.metadata, "nominated_steps": [40, 80, 100], "nominated_at": [44, 104, 114]}
    )
    assert own_nominations(taught, TRACELESS, 20) == [(40, 44), (80, 104), (100, 114)]


def test_what_a_planner_nominated_is_remembered_from_when_its_answer_came():
    driven = poured(metadata={"nominated_steps": [40], "nominated_at": [64]})
    seen = by_step(driven, replace(CONFIG, own_memory_probability=1.0))
    assert (seen[60][0], seen[70][0]) == ((), (40,))


def test_what_somebody_else_does_is_nominated_where_it_is_asked_for():
    events = [{"kind": "carried into a drawer", "start": 110, "end": 130}, {"kind": "drop", "start": 10, "end": 20}]
    episode = poured(metadata={"events": events})
    assert nominated_frames(episode, "changes", (), MEMORY, events=("carried*",)) == (40, 100, 130, 160)
    assert nominated_frames(episode, "changes", (), MEMORY) == (40, 100, 160)
    newest = nominated_frames(episode, "changes", TRACELESS, MEMORY, events=("carried*",))
    assert newest == (40, 80, 130, 140), "the pour in which it happens goes on"
    seen = by_step(episode, replace(CONFIG, traceless=(), events=("carried*",)))
    assert seen[130][1] == (3,) and seen[170][0][-1] == 130, seen[170]
