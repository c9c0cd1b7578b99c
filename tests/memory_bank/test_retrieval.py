"""Earlier sessions: how a history is cut, which session is admitted, and what the planner gets to see of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from memory_bank import MemoryConfig, make_memory
from memory_bank.conformance import check_memory
from memory_bank.retrieval import Gate, SessionMemory, cut_sessions, decide, rank
from memory_bank.retrieval.calibration import Case, choose_gate, count
from memory_bank.retrieval.gate import text_similarity
from predimem.core.config import ConfigError
from predimem.core.types import Frame, History, Observation, PastSession

HERE = "tests.memory_bank.test_retrieval"
GATE = Gate(threshold=0.6, margin=0.1, text_weight=0.5)


def frame(step: int, level: int) -> Frame:
    return Frame(step, step / 20, {"front": np.full((4, 4, 3), level, np.uint8)})


def level_embedder(scale: float = 255.0):
    """Frames as directions in the plane: alike where their brightness is."""

    def embed(frames: Sequence[Frame]) -> np.ndarray:
        angles = [np.pi * float(f.images["front"].mean()) / scale for f in frames]
        return np.stack([[np.cos(a), np.sin(a)] for a in angles]).astype(np.float32)

    return embed


def session(
    name: str, level: int, told: str = "Put the cookies away.", frames: int = 2, **changes: object
) -> PastSession:
    shown = tuple(frame(10 * i, level + i) for i in range(frames))
    made = PastSession(name, 3600.0, told, shown, "r1", "Anna", level_embedder()(shown))
    return replace(made, **changes)  # type: ignore[arg-type]


def history(*sessions: PastSession) -> History:
    return History(sessions, "r1", "Anna")


def now(level: int) -> np.ndarray:
    return level_embedder()([frame(0, level)])[0]


def test_a_history_is_cut_at_its_boundaries_else_where_the_view_changes():
    levels = [10, 12, 11, 120, 122, 240, 241, 240]
    embeddings = level_embedder()([frame(i, level) for i, level in enumerate(levels)])
    assert cut_sessions(embeddings, most_alike=0.8) == [range(0, 3), range(3, 5), range(5, 8)]
    assert cut_sessions(np.array([[1, 0], [1, 0], [-1, 0.1], [-1, 0]])) == [range(0, 2), range(2, 4)]
    assert cut_sessions(embeddings, boundaries=[0, 4]) == [range(0, 4), range(4, 8)]
    assert cut_sessions(embeddings, boundaries=[4]) == [range(0, 4), range(4, 8)]
    assert cut_sessions(embeddings[:0]) == [] == cut_sessions(embeddings[:0], boundaries=[])
    with pytest.raises(ValueError, match=r"expected ascending places from 0 to 7, got \[4, 8\]"):
        cut_sessions(embeddings, boundaries=[4, 8])


def test_a_single_odd_frame_is_no_session():
    embeddings = level_embedder()([frame(i, level) for i, level in enumerate([10, 11, 250, 10, 11])])
    assert [len(piece) for piece in cut_sessions(embeddings)] == [2, 3]
    assert cut_sessions(embeddings, least_frames=4) == [range(0, 5)]


def test_view_and_instruction_make_the_similarity():
    told = "Put the cookies away."
    (match,) = rank(history(session("a", 100, told)), now(100), "Open the drawer with the cookies away", GATE)
    assert match.view == pytest.approx(1.0)
    assert match.text == pytest.approx(2 / (2 * 4) ** 0.5)  # cookies, away of open, drawer, cookies, away
    assert match.similarity == pytest.approx((match.view + match.text) / 2)
    assert text_similarity(told, "PUT the cookies AWAY!") == pytest.approx(1.0)
    assert text_similarity("", told) == 0.0


def test_the_most_similar_session_is_admitted_and_the_newest_of_those_alike():
    other = session("other", 200, "Pour the milk.")
    old, new = session("old", 100), session("new", 102)
    said = decide(rank(history(old, new, other), now(100), old.instruction, GATE), GATE)
    assert said.admitted is not None and said.admitted.session is new
    assert "the newest of 2 that fit about as well" in said.why
    exact = replace(GATE, margin=0.0)
    said = decide(rank(history(old, new, other), now(100), old.instruction, exact), exact)
    assert said.admitted is not None and said.admitted.session is old
    assert [match.session.name for match in said.matches] == ["old", "new", "other"]


def test_the_gate_is_silent_where_nothing_fits():
    far = session("far", 250, "Pour the milk.")
    said = decide(rank(history(far), now(0), "Put the cookies away.", GATE), GATE)
    assert said.admitted is None and said.why.startswith("no session fits: the best one has -0.")
    assert decide([], GATE).why == "there is no earlier session of this robot and person"


def test_sessions_of_another_robot_or_person_do_not_count():
    robot, person = session("robot", 100, robot="r2"), session("person", 100, person="Ben")
    unknown = session("unknown", 100, robot="", person="")
    found = rank(history(robot, person, unknown), now(100), unknown.instruction, GATE)
    assert [match.session.name for match in found] == ["unknown"]


def observe(memory, level: int, step: int) -> None:
    images = {"front": np.full((4, 4, 3), level, np.uint8)}
    memory.observe(Observation(step, images, np.zeros(2, np.float32), step / 20))


def make(select: str, **options: object):
    options = {"embedder": f"{HERE}:level_embedder"} | options if select == "retrieval" else options
    config = MemoryConfig(
        recent_window=1, implementation="memory_bank.retrieval:SessionMemory", options={"select": select, **options}
    )
    return make_memory(config)


def shown(memory, past: History, level: int = 100) -> list[tuple[str, int]]:
    memory.reset("r1/e", "Put the cookies away.")
    memory.recall(past)
    observe(memory, level, 0)
    return [(session.name, len(session.frames)) for session in memory.snapshot().past_sessions]


def test_each_selection_shows_its_part_of_the_history(tmp_path):
    gate = tmp_path / "gate.json"
    GATE.save(gate)
    past = history(session("lesson", 100, relevant=True, frames=4), *(session(f"d{i}", 200, "Pour.") for i in range(6)))
    assert shown(make("none"), past) == []
    assert shown(make("uncapped"), past) == [("lesson", 4), *((f"d{i}", 2) for i in range(6))]
    assert shown(make("framesamp", frames=4), past) == [("lesson", 1), ("d0", 1), ("d3", 1), ("d5", 1)]
    assert shown(make("framesamp", frames=99), past) == shown(make("uncapped"), past)
    assert shown(make("last-n", frames=3), past) == [("d4", 1), ("d5", 2)]
    assert shown(make("oracle-retrieval"), past) == [("lesson", 4)]
    assert shown(make("retrieval", gate=str(gate)), past) == [("lesson", 4)]
    assert shown(make("retrieval", gate=str(gate)), past, level=250) == []
    for select in ("none", "uncapped", "framesamp", "last-n", "retrieval", "oracle-retrieval"):
        assert shown(make(select), History()) == []


def test_embeddings_that_are_missing_are_worked_out():
    past = history(session("lesson", 100, embeddings=None), session("d", 220, "Pour.", embeddings=None))
    assert shown(make("retrieval"), past) == [("lesson", 2)]


def test_what_this_episode_nominates_stays_whatever_the_gate_says():
    for past in (history(session("lesson", 100)), history(session("far", 250, "Pour."))):
        memory = make("retrieval")
        memory.reset("r1/e", "Put the cookies away.")
        memory.recall(past)
        for step in range(6):
            observe(memory, 100, step)
            if step == 2:
                memory.nominate([1])
        snapshot = memory.snapshot()
        assert [f.step for f in snapshot.keyframes] == [1] == list(memory.keyframe_steps)
        assert len(snapshot.past_sessions) == (past.sessions[0].name == "lesson")


def test_sessions_can_be_shown_as_keyframes_before_the_episode():
    video = session("video", 100, frames=3)  # 40 steps long, and its last frame is the fifth from its end
    video = replace(video, frames=tuple(replace(f, step=f.step - 25, time_s=f.time_s - 1.25) for f in video.frames))
    memory = SessionMemory(MemoryConfig(), "uncapped", shown_as="keyframes")
    memory.reset("r1/e", "Put the cookies away.")
    memory.recall(history(video, session("yesterday", 150), replace(video, name="video 2")))
    for step in range(8):
        observe(memory, 100, step)
    memory.nominate([1])
    snapshot = memory.snapshot()
    # The newest video keeps its steps; before it ends the session that counts from its own start, and before that the
    # older video, with the five steps behind its last frame.
    assert [f.step for f in snapshot.keyframes] == [-61, -51, -41, -36, -26, -25, -15, -5, 1]
    assert [round(20 * f.time_s) for f in snapshot.keyframes] == [-60, -50, -40, -35, -25, -25, -15, -5, 1]
    assert snapshot.past_sessions == () and list(memory.keyframe_steps) == [1]
    hosted = make_memory(
        MemoryConfig(
            keyframe_capacity=2,
            implementation="memory_bank.retrieval:SessionMemory",
            options={"select": "uncapped", "shown_as": "keyframes"},
        )
    )
    hosted.reset("r1/e", "Put the cookies away.")
    hosted.recall(history(video, session("yesterday", 150)))
    observe(hosted, 100, 0)  # at the first step, and more of them than the bank may keep of the episode itself
    assert [f.step for f in hosted.snapshot().keyframes] == [-36, -26, -16, -11, -1]
    with pytest.raises(ValueError, match="shown_as is sessions or keyframes; got 'frames'"):
        SessionMemory(MemoryConfig(), "uncapped", shown_as="frames")


def test_what_is_shown_of_earlier_sessions_is_known_of_the_next_question():
    memory = make("retrieval")
    assert shown(memory, history(session("lesson", 100))) == [("lesson", 2)]
    assert memory.upcoming(10).past_sessions == memory.snapshot().past_sessions
    memory.reset("r1/e2", "Put the cookies away.")
    observe(memory, 100, 0)
    assert memory.upcoming(10).past_sessions == ()


def test_the_gate_decides_once_an_episode():
    memory = make("retrieval")
    past = history(session("lesson", 100))
    assert shown(memory, past) == [("lesson", 2)]
    observe(memory, 250, 1)  # the view has changed
    assert [s.name for s in memory.snapshot().past_sessions] == ["lesson"]
    assert shown(memory, past, level=250) == []  # but an episode that begins so is another matter


@pytest.mark.slow
def test_the_memory_keeps_the_contract_of_memories():
    config = MemoryConfig(implementation="memory_bank.retrieval:SessionMemory", options={"select": "uncapped"})
    assert {finding.fault for finding in check_memory(config)} == {""}


def test_faulty_options_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"select is one of none, uncapped.*got 'all'"):
        SessionMemory(MemoryConfig(), select="all")
    with pytest.raises(ValueError, match="needs an embedder"):
        SessionMemory(MemoryConfig())
    (tmp_path / "gate.json").write_text('{"treshold": 1}')
    with pytest.raises(ConfigError, match="treshold"):
        Gate.read(str(tmp_path / "gate.json"))
    with pytest.raises(ValueError, match="text_weight in"):
        Gate(text_weight=1.5)


def test_a_projection_changes_which_views_are_alike_and_is_kept_beside_the_numbers(tmp_path):
    seen = session("seen", 100, embeddings=np.array([[1.0, 0.0]], np.float32))
    view = np.array([0.6, 0.8], np.float32)
    gate = replace(GATE, text_weight=0.0, projection=np.array([[1.0], [0.0]], np.float32))
    gate.save(tmp_path / "views.json")
    for known, similarity in ((GATE, 0.6), (gate, 1.0), (Gate.read(str(tmp_path / "views.json")), 1.0)):
        (match,) = rank(history(seen), view, "", known)
        assert match.view == pytest.approx(similarity, abs=1e-6)
    (tmp_path / "views.npy").unlink()
    with pytest.raises(ConfigError, match=r"views.json: expected the JSON of a gate .*views.npy"):
        Gate.read(str(tmp_path / "views.json"))


def cases(rng: np.random.Generator, n: int) -> list[Case]:
    """The lesson looks like now, and half of the histories have none; instructions tell nothing."""
    made = []
    for i in range(n):
        level = int(rng.integers(20, 60))
        lesson = session("lesson", level, "same", relevant=True)
        distractors = [session(f"d{j}", int(rng.integers(150, 240)), "same") for j in range(3)]
        past = [lesson, *distractors] if i % 2 else distractors
        made.append(Case(history(*past), now(level), "same"))
    return made


def test_the_numbers_of_the_gate_are_chosen_on_cases_and_hold_on_others():
    gate, right = choose_gate(cases(np.random.default_rng(0), 40))
    assert right == pytest.approx(1.0) and gate.text_weight < 1.0  # the instruction alone cannot tell them apart
    assert count(cases(np.random.default_rng(1), 60), gate) == {"right": 60}
    blind, right = choose_gate(cases(np.random.default_rng(0), 40), text_weights=(1.0,))
    assert right < 0.8 and count(cases(np.random.default_rng(1), 60), blind)["right"] < 50
    with pytest.raises(ValueError, match="cases with a lesson and cases without one"):
        choose_gate(cases(np.random.default_rng(0), 40)[1::2])
