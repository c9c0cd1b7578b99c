"""Each cause of a failure in an episode made by hand, and what is no cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predimem.core.types import EpisodeResult
from predimem.evaluation.analysis.aliasing import MemoryErrors, memory_errors
from predimem.evaluation.analysis.failures import Failure, explain, missing_evidence
from predimem.evaluation.analysis.subtask_labels import judged_labels
from predimem.evaluation.report.episode_log import EpisodeLog
from tests.evaluation.logs import FIRST, GOOD, PICK, SECOND, STAND, failed, log

OUT_OF_TIME = failed("out of time: some stage")


def cause(parts: tuple[tuple[int, str, float], ...], states: str, memory: tuple[int, ...] = ()) -> Failure:
    failure = explain(log(parts, states, memory), OUT_OF_TIME)
    assert failure is not None
    return failure


def test_judged_labels() -> None:
    parts = (
        *((0, "", 1.0), (0, PICK, 1.0), (0, FIRST, 1.0), (0, STAND, 1.0), (0, "dance", 1.0)),
        *((1, PICK, 1.0), (1, FIRST, 1.0), (2, FIRST, 1.0), (2, SECOND, 1.0), (2, FIRST, 1.0), (3, STAND, 1.0)),
    )
    each = judged_labels(log(parts))[::20]
    assert each == ["nothing", "right", "early", "ahead", "other", "right", "right", "late", "right", "again", "right"]


def test_a_name_need_not_be_the_label_to_the_letter() -> None:
    assert judged_labels(log(((0, "Pick  the wine", 1.0), (1, "pour 1st: bowl", 1.0))))[::20] == ["right", "other"]


def test_a_right_name_for_its_whole_budget_is_a_motor_failure() -> None:
    failure = cause((*GOOD[:1], (1, FIRST, 16.0)), "+x..")
    assert (failure.cause, failure.stage, failure.label, failure.given_label) == ("motor failure", 1, FIRST, FIRST)
    assert failure.step == 100 + 160 and failure.confidence == 0.75


def test_too_little_time_is_a_timeout() -> None:
    assert cause((*GOOD[:1], (1, FIRST, 15.9)), "+x..").cause == "timeout"


def test_another_subtask_is_a_wrong_subtask_or_a_missed_keyframe() -> None:
    parts = (*GOOD[:2], (2, SECOND, 2.0), (2, STAND, 14.0))
    remembered = cause(parts, "++x.", memory=(150,))
    assert (remembered.cause, remembered.given_label, remembered.step) == ("wrong subtask", STAND, 240)
    assert remembered.memory == (150,) and remembered.missing == ()
    forgotten = cause(parts, "++x.", memory=(20,))  # of the pick, not of the pour
    assert (forgotten.cause, forgotten.missing) == ("missed keyframe", (FIRST,))
    late = cause(parts, "++x.", memory=(20, 245))  # stored after it went wrong
    assert (late.cause, late.memory) == ("missed keyframe", (20,))
    assert cause((*GOOD[:1], (1, "dance", 16.0)), "+x..").cause == "wrong subtask"  # nothing to be remembered


def test_evidence_of_what_has_to_be_seen_lies_after_it_was_done() -> None:
    episode = log(GOOD, memory=())
    shown = replace(episode.stages[1], skill="Open")
    episode.stages = (episode.stages[0], shown, *episode.stages[2:])
    for keyframe, seen in ((170, False), (180, True), (300, True), (301, False)):
        episode.keyframes = [(0, (keyframe,))]
        assert (missing_evidence(episode, 2, 399) == ()) == seen


def test_switches_that_come_too_late_or_too_early() -> None:
    assert cause((*GOOD[:2], (2, FIRST, 20.0)), "++x.").cause == "late switch"
    assert cause(((0, PICK, 1.0), (0, FIRST, 10.0)), "x...").cause == "early switch"


def test_a_script_has_no_memory_that_could_miss_a_keyframe() -> None:
    episode = log((*GOOD[:2], (2, STAND, 20.0)), "++x.")
    episode.answers = []
    failure = explain(episode, OUT_OF_TIME)
    assert failure and (failure.cause, failure.confidence) == ("wrong subtask", None)


@pytest.mark.parametrize(("name", "expected"), [(STAND, "motor failure"), (SECOND, "late switch")])
def test_what_cannot_be_mended_is_explained_by_the_last_seconds(name: str, expected: str) -> None:
    episode = log((*GOOD[:3], (3, SECOND, 10.0), (3, name, 3.0)), "+++x")
    failure = explain(episode, failed("a pour that was not due"))
    assert failure and failure.cause == expected and failure.stage == 3


def test_a_right_name_at_a_wrong_place() -> None:
    episode = log((*GOOD[:1], (1, FIRST, 3.0), (1, SECOND, 20.0)), "+x..")
    for step, expected in ((150, "wrong place"), (160, "early switch"), (90, "early switch")):
        episode.stages = (*episode.stages[:1], replace(episode.stages[1], memory=""), *episode.stages[2:])
        episode.undue = [(20, "again", FIRST), (step, "elsewhere", FIRST)]
        failure = explain(episode, OUT_OF_TIME)
        assert failure and failure.cause == expected


def refused(parts: tuple[tuple[int, str, float], ...], label: str) -> EpisodeLog:
    """An episode in whose task that label is ambiguous, so that S1 refused it."""
    episode = log(parts, "++x.")
    episode.refused = {label}
    return episode


def test_a_label_that_was_refused_is_ambiguous_and_nothing_else() -> None:
    """Not right, though the stage that is due could be meant, and neither late nor early where another one could."""
    for name in (SECOND, FIRST, STAND, "pour"):
        episode = refused((*GOOD[:2], (2, name, 20.0)), name)
        assert set(judged_labels(episode)[200:]) == {"ambiguous"}
        failure = explain(episode, OUT_OF_TIME)
        assert failure and (failure.cause, failure.step) == ("ambiguous label", 200)
        assert (failure.given_label, failure.label) == (name, SECOND)
        assert memory_errors(episode, OUT_OF_TIME) == MemoryErrors()


def test_the_label_that_was_given_most_explains_a_failure_with_a_refusal_in_it() -> None:
    parts = (*GOOD[:2], (2, "pour", 5.0), (2, STAND, 8.0))
    failure = explain(refused(parts, "pour"), OUT_OF_TIME)
    assert failure and failure.cause == "missed keyframe"
    for seconds, expected in ((15.0, "ambiguous label"), (16.0, "motor failure")):  # its budget
        failure = explain(refused((*GOOD[:2], (2, "pour", 20.0), (2, SECOND, seconds)), "pour"), OUT_OF_TIME)
        assert failure and failure.cause == expected


def test_what_was_undone_and_who_names_nothing() -> None:
    episode = log((*GOOD, (4, STAND, 5.0)), "++-+")
    failure = explain(episode, failed("undone: pour 2nd"))
    assert failure and (failure.cause, failure.label) == ("undone", SECOND)
    for name in ("", "pour twice"):  # nothing, or the whole instruction
        assert cause(((0, name, 20.0),), "x...").cause == "no subtask named"


def test_only_failures_that_are_known_have_a_cause() -> None:
    bad = (*GOOD[:1], (1, FIRST, 16.0))
    assert explain(log(bad, "+x.."), replace(OUT_OF_TIME, status="error")) is None
    assert explain(log(GOOD, "++++"), replace(OUT_OF_TIME, status="success")) is None
    assert explain(EpisodeLog(), OUT_OF_TIME) is None


def errors(parts: tuple[tuple[int, str, float], ...], result: EpisodeResult = OUT_OF_TIME) -> MemoryErrors:
    found = memory_errors(log(parts), result)
    assert found is not None
    return found


def test_state_aliasing_is_naming_anew_what_was_done() -> None:
    assert errors(GOOD) == MemoryErrors()
    assert errors((*GOOD[:2], (2, SECOND, 1.5), (2, FIRST, 2.0), (2, SECOND, 1.0))).aliasing_named == 1
    assert errors((*GOOD[:2], (2, SECOND, 1.5), (2, FIRST, 0.9), (2, SECOND, 1.0))) == MemoryErrors()
    assert errors((*GOOD[:2], (2, FIRST, 9.0))) == MemoryErrors()  # never left: a late switch
    assert errors((*GOOD[:1], (1, FIRST, 1.0), (1, PICK, 3.0), (1, FIRST, 3.0))) == MemoryErrors()  # dropped it


def test_constraint_forgetting_is_leaving_out_what_is_due() -> None:
    assert errors((*GOOD[:1], (1, STAND, 2.0), (1, FIRST, 2.0))).forgetting_named == 1
    assert errors((*GOOD[:2], (2, STAND, 9.0))).forgetting_named == 1  # poured once, and put away
    assert errors((*GOOD[:2], (2, SECOND, 3.0), (2, STAND, 2.0), (3, STAND, 5.0))) == MemoryErrors()  # too soon
    assert errors(((0, FIRST, 9.0),)) == MemoryErrors()  # that nothing was picked can be seen
    assert errors(GOOD, failed("a pour that was not due")).forgetting_done == 1


def test_what_was_done_counts_without_a_name() -> None:
    episode = log(((1, "", 9.0),))
    episode.undue = [(20, "again", "open drawer"), (60, "ahead", "place"), (90, "again", "open drawer")]
    assert memory_errors(episode, OUT_OF_TIME) == MemoryErrors(aliasing_done=2, forgetting_done=1)
    assert memory_errors(episode, replace(OUT_OF_TIME, status="error")) is None
    assert memory_errors(EpisodeLog(), OUT_OF_TIME) is None
