"""Episodes that are kept on disk, as plain data and images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memory_bank import MemoryConfig
from predimem.core.types import Observation, Plan
from predimem.serving.bank import SessionBank, replay
from predimem.serving.engine import Engine
from predimem.serving.http_reply import FOREVER, Page, json_page, missing
from predimem.serving.store import EpisodeStore, StoredEpisode


def past_episodes(engine: Engine) -> Page:
    """The last used first; those that are played at the moment are marked."""
    playing = {session.episode_id for session in engine.sessions.live()}
    kept = [] if engine.store is None else engine.store.list()
    return json_page([episode | {"live": episode["episode_id"] in playing} for episode in kept])


def past_episode(engine: Engine, episode_id: str) -> Page:
    """All that the planner said, and which keyframes were held when.

    spans: [first step, subtask]; answers: [step, confidence or null]; keyframes: [first step, steps held from then
    on]; images: steps with images. Steps are those of the observations that the planner decided on.
    """
    stored = None if engine.store is None else engine.store.find(episode_id)
    if stored is None:
        return missing("no such episode")
    spans: list[tuple[int, str]] = []
    for plan in stored.plans:
        if plan.subtask is not None and (not spans or spans[-1][1] != plan.subtask):
            spans.append((plan.step, plan.subtask))
    return json_page(
        {
            "id": stored.episode_id,
            "key": stored.key,
            "instruction": stored.instruction,
            "outcome": stored.outcome,
            "warning": engine.served.tasks.doubt(stored.instruction, engine.config.tasks),
            "end": max([*stored.image_steps, *(plan.step for plan in stored.plans)], default=0),
            "spans": spans,
            "answers": [(p.step, None if p.confidence is None else round(p.confidence, 3)) for p in stored.plans],
            "keyframes": list(keyframes_held(stored, engine.served.memory, engine.store)),
            "images": stored.image_steps,
            "cameras": sorted(engine.served.robot.cameras),
        }
    )


def past_image(store: EpisodeStore | None, key: int, step: int, camera: int) -> Page:
    """camera: its place in alphabetical order."""
    try:
        if store is None:
            raise FileNotFoundError
        return Page(200, "image/png", store.image_file(key, step, camera).read_bytes(), FOREVER)
    except FileNotFoundError:
        return missing("no such image")


def keyframes_held(
    stored: StoredEpisode, memory: MemoryConfig, store: EpisodeStore | None = None
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(first step, the memory's keyframes from then on).

    The memory bank's are the plans' nominations, clustered as the bank did it. A memory of one's own gets the images
    that `store` has, as after a restart.
    """
    bank, held = SessionBank(memory), ()
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
        if bank.keyframe_steps != held:
            held = bank.keyframe_steps
            yield plan.step, held


def _shown_by_own(
    bank: SessionBank, store: EpisodeStore, stored: StoredEpisode
) -> Iterator[tuple[int, tuple[int, ...]]]:
    held: tuple[int, ...] = ()

    def resume(plan: Plan) -> None:
        bank.nominate(plan.keyframe_steps)
        if plan.subtask is not None:
            bank.note_subtask(plan.subtask)

    for plan in replay(bank, resume, store, stored, state_dim=0):
        if bank.last_step is None:
            continue
        shown = tuple(frame.step for frame in bank.snapshot().keyframes)
        if shown != held:
            held = shown
            yield plan.step, held
