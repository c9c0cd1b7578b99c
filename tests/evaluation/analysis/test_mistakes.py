"""The moment at which an episode first goes wrong: what was done before what was named, and what the benchmark says."""

from __future__ import annotations

from predimem.evaluation.analysis.failures import explain
from predimem.evaluation.analysis.mistakes import done_mistake, first_mistake, in_words, wrong_now
from tests.evaluation.logs import FIRST, GOOD, HZ, PICK, SECOND, failed, log

FORGOT = ((0, PICK, 5.0), (1, FIRST, 5.0), (2, SECOND, 2.0), (2, FIRST, 5.0))  # pours the first time once more, at 12 s


def test_a_good_episode_has_none():
    assert first_mistake(log(GOOD, "++++"), failed=False) is None


def test_what_was_done_is_dated_back_to_when_it_was_named():
    episode = log(FORGOT, "++x.")
    episode.undue = [(15 * HZ, "again", FIRST), (16 * HZ, "ahead", "place wine on table")]
    mistake = done_mistake(episode)
    assert mistake is not None
    assert (mistake.step, mistake.done_step, mistake.due) == (12 * HZ, 15 * HZ, SECOND)
    assert in_words(mistake.to_dict()) == "did “pour 1st” again where “pour 2nd” was due"


def test_the_right_subtask_at_the_wrong_place_is_dated_to_its_own_beginning():
    episode = log(GOOD[:3], "++x.")
    episode.undue = [(13 * HZ, "elsewhere", SECOND)]
    mistake = done_mistake(episode)
    assert mistake is not None and mistake.step == 10 * HZ and "wrong place" in mistake.text


def test_what_the_environment_reports_counts_as_done():
    episode = log(((0, PICK, 3.0), (0, FIRST, 2.0)))
    episode.stages, episode.mistakes = (), [(4 * HZ, "touched the red cube; the teal cube was right")]
    mistake = first_mistake(episode, failed=True)
    assert mistake is not None and (mistake.step, mistake.done_step, mistake.due) == (3 * HZ, 4 * HZ, "")
    assert in_words(mistake.to_dict()) == "touched the red cube; the teal cube was right"


def test_where_nothing_wrong_was_done_the_named_subtask_explains_the_failure():
    episode, result = log(FORGOT, "++x."), failed("out of time: pour 2nd", 17 * HZ)
    mistake = first_mistake(episode, True, explain(episode, result))
    assert mistake is not None
    assert (mistake.step, mistake.done_step, mistake.due) == (12 * HZ, None, SECOND)
    motor = log((*GOOD[:2], (2, SECOND, 20.0)), "++x.")
    assert first_mistake(motor, True, explain(motor, failed("out of time: pour 2nd", 30 * HZ))) is None


def test_an_ambiguous_label_is_a_mistake():
    episode = log((*GOOD[:2], (2, "pour", 4.0)), "++x.")
    episode.refused = {"pour"}
    mistake = first_mistake(episode, True, explain(episode, failed("out of time: pour 2nd", 14 * HZ)))
    assert mistake is not None and in_words(mistake.to_dict()) == "named “pour” where “pour 2nd” was due"
    assert wrong_now(episode) == SECOND


def test_a_wrong_subtask_is_seen_after_a_second():
    assert wrong_now(log(FORGOT)) == SECOND
    just_now = log((*FORGOT[:3], (2, FIRST, 0.9)))
    assert wrong_now(just_now) == "" and wrong_now(log(GOOD)) == "" and wrong_now(log(())) == ""


def test_without_stages_the_true_subtask_tells_and_a_late_one_is_no_mistake():
    episode = log(((0, "wait", 1.0), (0, "touch the red cube", 1.0), (0, "touch the blue cube", 1.0)))
    episode.stages = ()
    episode.true_subtasks = ["wait"] * (HZ // 2) + ["touch the red cube"] * (3 * HZ - HZ // 2)
    assert wrong_now(episode) == "touch the red cube"
    mistake = first_mistake(episode, failed=True)
    assert mistake is not None and (mistake.step, mistake.done_step) == (2 * HZ, None)
    assert in_words(mistake.to_dict()) == "named “touch the blue cube” where “touch the red cube” was due"
    assert first_mistake(episode, failed=False) is None
