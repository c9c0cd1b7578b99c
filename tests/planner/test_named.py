"""Memory follows what the driver of an episode named, where it noticed a change late or never."""

from __future__ import annotations

import random
from dataclasses import replace

from planner.dataset import DatasetConfig, SampleMaker
from planner.named import as_named, unnamed_steps
from planner.replay import Replay
from predimem.core.episodes import SubtaskSpan
from tests.planner.test_nominations import CONFIG, MEMORY, by_step, poured

SPANS = ((0, 40, "pick"), (40, 100, "place"), (100, 150, "open"), (150, 200, "close"))
SPOKEN = [[0, ""], [4, "pick"], [30, "dance"], [34, "pick"], [84, "place"], [90, "pick"], [94, "place"], [154, "close"]]
LATE = poured(*SPANS, metadata={"spoken": SPOKEN})
NAMED = replace(CONFIG, traceless=(), named_memory_probability=1.0)


def test_a_subtask_begins_when_it_is_named_while_it_is_due():
    assert as_named(LATE).subtasks == (
        SubtaskSpan(0, 84, "pick"),
        SubtaskSpan(84, 154, "place"),
        SubtaskSpan(154, 200, "close"),
    ), "what is named too early or never is not there"
    assert as_named(poured(*SPANS)).subtasks == poured(*SPANS).subtasks, "nobody says what was named"


def test_what_was_named_early_begins_when_it_is_due():
    early = poured(*SPANS, metadata={"spoken": [[0, "pick"], [30, "place"], [100, "open"], [140, "close"]]})
    assert as_named(early).subtasks == early.subtasks


def test_the_steps_at_which_something_else_was_named():
    wrong = [step for steps in unnamed_steps(LATE) for step in steps]
    assert wrong == [*range(4), *range(30, 34), *range(40, 84), *range(90, 94), *range(100, 150), *range(150, 154)]
    assert unnamed_steps(poured(*SPANS)) == []


def test_a_change_is_remembered_when_it_was_named():
    due, named = by_step(LATE, replace(NAMED, named_memory_probability=0.0)), by_step(LATE, NAMED)
    assert due[80] == ((40,), ()), "as if it had been noticed"
    assert [named[step] for step in (40, 60, 70, 80)] == [((), (3,)), ((), (1,)), ((), (3,)), ((), (3,))]
    assert named[90] == ((), ()), "it has been nominated, and is in the window still"
    assert named[120] == ((90,), (1,)) and named[140] == ((90,), (3,)), "the drawer was never named"
    assert named[190] == ((90, 160), ())


def test_the_list_of_past_subtasks_follows_as_well():
    memory = replace(MEMORY, keyframes=False, past_subtasks=True)
    assert Replay(LATE, memory, (), 1)[80].past_subtasks == ("pick", "place")
    told = Replay(LATE, memory, (), 1, as_named(LATE).subtasks)
    assert told[80].past_subtasks == ("pick",) and told[190].past_subtasks == ("pick", "place", "close")


def test_steps_at_which_something_else_was_named_are_drawn_more_often():
    def share(config: DatasetConfig) -> float:
        wrong = {step // 10 * 10 for steps in unnamed_steps(LATE) for step in steps}
        drawn = list(SampleMaker([LATE], MEMORY, config).draw(400, random.Random(0)))
        return sum(sample.snapshot.step in wrong for sample in drawn) / len(drawn)

    assert share(replace(CONFIG, unnamed_probability=1.0)) == 1.0
    assert share(CONFIG) < 0.7 < share(replace(CONFIG, unnamed_probability=0.8))
