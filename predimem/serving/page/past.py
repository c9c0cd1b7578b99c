"""Episodes that are kept on disk, as plain data and images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from memory_bank import MemoryConfig
from memory_bank.store import MemoryStore, StoredEpisode
from predimem.core.types import Observation, Plan
from predimem.serving.bank import SessionBank, replay
from predimem.serving.clusters import ClusterChange, cluster_changes
from predimem.serving.engine import Engine
from predimem.serving.http_reply import FOREVER, Page, json_page, missing
from predimem.serving.page.live import own_memory
from predimem.serving.page.recording import recording
from predimem.serving.trajectory import Trajectory, rows_of
from predimem.serving.watch import answers_of

ROWS = 3000  # of a trajectory that a page gets
CLOCK = 1000


def past_episodes(engine: Engine) -> Page:
    """The last used first; those that are played at the moment are marked."""
    playing = {session.episode_id for session in engine.sessions.live()}
    kept = [] if engine.store is None else engine.store.episodes()
    return json_page([episode | {"live": episode["episode_id"] in playing} for episode in kept])


def past_episode(engine: Engine, episode_id: str) -> Page:
    """All that the planner said, and which keyframes were held when.

    spans: [first step, subtask].
    answers: see `Answered.numbers`; said: the same answers with their words, as [seconds since 1970 or null, subtask,
    nominated steps, text, error], where subtask, text and error are places in `words`.
    keyframes: [first step, steps held from then on]; clusters: see `ClusterChange.plain`.
    images: steps with images. clock: [step, seconds since 1970].
    Steps are those of the observations that the planner decided on. notes: what was written about the episode, such as
    which earlier session was shown (`predimem.serving.recalled`).
    """
    stored = None if engine.store is None else engine.store.find(episode_id)
    if stored is None or engine.store is None:
        return missing("no such episode")
    _keep_rows(engine, episode_id)
    spans: list[tuple[int, str]] = []
    for plan in stored.plans:
        if plan.subtask is not None and (not spans or spans[-1][1] != plan.subtask):
            spans.append((plan.step, plan.subtask))
    answers, words = answers_of(stored), Words()
    rows = rows_of(engine.store, stored.key)
    held = list(history(stored, engine.served.memory, engine.store))
    control_hz = engine.config.robot.control_hz
    return json_page(
        {
            "id": stored.episode_id,
            "key": stored.key,
            "instruction": stored.instruction,
            "outcome": stored.outcome,
            "began_s": stored.began_s,
            "warning": engine.served.tasks.doubt(stored.instruction, engine.config.tasks),
            "slow": None if rows is None or engine.config.time.mode != "real" else rows.slowness(control_hz),
            "end": max(
                [
                    *stored.image_steps,
                    *(answer.step for answer in answers),
                    *([] if rows is None else rows.steps[-1:].tolist()),
                ],
                default=0,
            ),
            "spans": spans,
            "answers": [answer.numbers() for answer in answers],
            "said": [
                [a.at_s or None, words.place(a.subtask), a.keyframe_steps, words.place(a.text), words.place(a.error)]
                for a in answers
            ],
            "words": words.list,
            "keyframes": [(one.step, one.keyframes) for one in held if one.keyframes is not None],
            "clusters": [change.plain() for one in held for change in one.changes],
            "own_memory": own_memory(engine.served.memory),
            "images": stored.image_steps,
            "cameras": sorted(engine.served.robot.cameras),
            "clock": _clock(stored, rows),
            "trajectory": rows is not None,
            "robot": stored.robot,
            "notes": [asdict(n) for n in engine.store.notes(stored.robot) if n.episode_id == episode_id],
        }
    )


def past_trajectory(store: MemoryStore | None, key: int) -> Page:
    """State, action and times of the observations; of a long episode, every nth one."""
    rows = None if store is None else rows_of(store, key)
    return missing("no trajectory of this episode is kept") if rows is None else json_page(rows.plain(most=ROWS))


def past_recording(engine: Engine, episode_id: str) -> Page:
    """The episode as a file for the Rerun viewer."""
    place = engine.config.state.place
    if place is None or engine.store is None or engine.store.find(episode_id) is None:
        return missing("no such episode")
    _keep_rows(engine, episode_id)
    return recording(place, episode_id, engine.config.robot.control_hz)


class Words:
    """Texts that come again and again, each of them once."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str | None) -> int | None:
        if not text:
            return None
        if text not in self._places:
            self._places[text] = len(self.list)
            self.list.append(text)
        return self._places[text]


def past_image(store: MemoryStore | None, key: int, step: int, camera: str) -> Page:
    try:
        if store is None:
            raise KeyError
        return Page(200, "image/png", store.image(key, step, camera), FOREVER)
    except KeyError:
        return missing("no such image")


@dataclass(frozen=True)
class Held:
    """What the bank's keyframes became at a step. keyframes: None where they are as before."""

    step: int
    keyframes: tuple[int, ...] | None
    changes: tuple[ClusterChange, ...] = ()


def history(stored: StoredEpisode, memory: MemoryConfig, store: MemoryStore | None = None) -> Iterator[Held]:
    """How the memory's keyframes came about.

    The memory bank's are the plans' nominations, clustered as the bank did it. A memory of one's own gets the images
    that `store` has, as after a restart, and has no clusters.
    """
    bank, held, nominations = SessionBank(memory), (), ()
    bank.reset(stored.episode_id, stored.instruction)
    if memory.implementation is not None:
        yield from [] if store is None else _shown_by_own(bank, store, stored)
        return
    nominated = {step for plan in stored.plans for step in plan.keyframe_steps}
    due = sorted(nominated | {plan.step for plan in stored.plans}, reverse=True)
    for plan in stored.plans:
        while due and due[-1] <= plan.step:
            bank.observe(Observation(due.pop(), {}, np.zeros(0, np.float32)))
        bank.announce(plan.keyframe_steps)
        bank.nominate(())
        if bank.nominations is nominations:
            continue
        changes = tuple(cluster_changes(plan.step, nominations, bank.nominations))
        nominations = bank.nominations
        yield Held(plan.step, None if bank.keyframe_steps == held else bank.keyframe_steps, changes)
        held = bank.keyframe_steps


def _shown_by_own(bank: SessionBank, store: MemoryStore, stored: StoredEpisode) -> Iterator[Held]:
    held: tuple[int, ...] = ()

    def resume(plan: Plan) -> None:
        bank.nominate(plan.keyframe_steps)
        if plan.said is not None:
            bank.note_subtask(plan.said)

    for plan in replay(bank, resume, store, stored, state_dim=0):
        if bank.last_step is None:
            continue
        shown = tuple(frame.step for frame in bank.snapshot().keyframes)
        if shown != held:
            held = shown
            yield Held(plan.step, held)


def _keep_rows(engine: Engine, episode_id: str) -> None:
    """Of an episode that is played: what it has not written yet."""
    for session in engine.sessions.all():
        if session.episode_id == episode_id:
            session.keep_trajectory()


def _clock(stored: StoredEpisode, rows: Trajectory | None) -> list[tuple[int, float]]:
    """[step, seconds since 1970] of up to `CLOCK` observations; where none were kept, of the plans."""
    known = [(plan.step, plan.at_s) for plan in stored.plans if plan.at_s is not None]
    if rows is not None:
        known = list(zip(rows.steps.tolist(), rows.at_s.tolist(), strict=True))
    every = max(1, -(-len(known) // CLOCK))
    return [(step, round(at_s, 2)) for step, at_s in known[::every]]
