"""The memory bank with earlier sessions: which of them the planner sees, and how, are options; all else is the bank.

memory:
  implementation: memory_bank.retrieval:SessionMemory
  options: {select: retrieval, embedder: "planner.tower_embedding:tower", gate: my_gate.json}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memory_bank.config import MemoryConfig
from memory_bank.own import make_memory
from memory_bank.retrieval.gate import Admission, Gate, decide, rank
from predimem.core.own_code import load_object
from predimem.core.types import Frame, History, MemorySnapshot, Observation, PastSession

Embedder = Callable[[Sequence[Frame]], np.ndarray]  # F frames -> float32 [F, D]
SELECTIONS = ("none", "uncapped", "framesamp", "last-n", "retrieval", "oracle-retrieval")
NOTHING = Admission(None, "nothing was looked for")


class SessionMemory:
    """Implements `predimem.core.interfaces.Memory` and `RecallsHistory`.

    What this episode nominates is the bank's business and is shown whatever the gate says. The gate decides once an
    episode, at the first snapshot: the present view changes with what the robot does, and a session that came and went
    with it would be worse than either.
    """

    def __init__(
        self,
        config: MemoryConfig,
        select: str = "retrieval",
        frames: int = 16,
        gate: str | None = None,
        embedder: str | None = None,
        embedder_options: Mapping[str, Any] | None = None,
        shown_as: str = "sessions",
    ):
        """select: one of `SELECTIONS`: nothing; all frames of all sessions; `frames` of them that are spread evenly
        over the whole history (RoboMME's FrameSamp); the newest `frames`; the session that the gate admits; the one
        that is marked as relevant, which only a benchmark knows.

        gate: the file of the gate's numbers; None: the defaults. embedder: the place of a function that is called with
        `embedder_options` and gives an `Embedder`; `prepare` loads it, else the first snapshot that needs it.

        shown_as: "sessions", for planners with a section of earlier sessions in their prompt; or "keyframes" before
        those of the episode itself, for planners that know a conditioning video in this way (`before_episode`).

        Raises ValueError for an unknown selection or a budget below 1, and ConfigError for a faulty gate.
        """
        if shown_as not in ("sessions", "keyframes"):
            raise ValueError(f"memory: options: shown_as is sessions or keyframes; got {shown_as!r}")
        if select not in SELECTIONS:
            raise ValueError(f"memory: options: select is one of {', '.join(SELECTIONS)}; got {select!r}")
        if frames < 1:
            raise ValueError(f"memory: options: frames has to be at least 1, got {frames}")
        if select == "retrieval" and embedder is None:
            raise ValueError(
                "memory: options: select: retrieval needs an embedder, such as planner.tower_embedding:tower"
            )
        self._bank = make_memory(replace(config, implementation=None, options={}))
        self._select, self._frames, self._as_keyframes = select, frames, shown_as == "keyframes"
        self.shows_sessions = select != "none" and not self._as_keyframes
        self._gate = Gate() if gate is None else Gate.read(gate)
        self._embedder_place, self._embedder_options = embedder, dict(embedder_options or {})
        self._embedder: Embedder | None = None
        self.reset("", "")

    def prepare(self) -> None:
        """Load the embedder now. Raises what loading it raises."""
        if self._select == "retrieval":
            self._load_embedder()

    def reset(self, episode_id: str, instruction: str) -> None:
        self._bank.reset(episode_id, instruction)
        self._instruction = instruction
        self._history = History()
        self._shown: tuple[PastSession, ...] | None = None
        self._admission = NOTHING

    def recall(self, history: History) -> None:
        self._history, self._shown = history, None

    def observe(self, observation: Observation) -> None:
        self._bank.observe(observation)

    def nominate(self, steps: Iterable[int]) -> None:
        self._bank.nominate(steps)

    def note_subtask(self, subtask: str) -> None:
        self._bank.note_subtask(subtask)

    def snapshot(self) -> MemorySnapshot:
        snapshot = self._bank.snapshot()
        if self._shown is None:
            self._shown = self._choose(snapshot.recent[-1])
        if self._as_keyframes:
            return replace(snapshot, keyframes=(*before_episode(self._shown), *snapshot.keyframes))
        return replace(snapshot, past_sessions=self._shown)

    @property
    def keyframe_steps(self) -> tuple[int, ...]:
        return self._bank.keyframe_steps

    @property
    def admission(self) -> Admission:
        """What the gate decided in this episode."""
        return self._admission

    def _choose(self, now: Frame) -> tuple[PastSession, ...]:
        if self._select == "retrieval":
            return self._retrieve(now)
        return without_looking(self._history.sessions, self._select, self._frames)

    def _retrieve(self, now: Frame) -> tuple[PastSession, ...]:
        if not self._history.sessions:
            return ()
        embed = self._load_embedder()
        sessions = tuple(
            replace(s, embeddings=embed(s.frames)) if s.frames and s.embeddings is None else s
            for s in self._history.sessions
        )
        history = replace(self._history, sessions=sessions)
        (view,) = embed([now])
        self._admission = decide(rank(history, view, self._instruction, self._gate), self._gate)
        return () if self._admission.admitted is None else (self._admission.admitted.session,)

    def _load_embedder(self) -> Embedder:
        if self._embedder is not None:
            return self._embedder
        assert self._embedder_place is not None  # checked when this was made
        made: Embedder = load_object(self._embedder_place, "memory: options: embedder")(**self._embedder_options)
        self._embedder = made
        return made


def before_episode(sessions: Sequence[PastSession]) -> tuple[Frame, ...]:
    """The frames of sessions (oldest first) as if they had followed each other and the episode came right after them.

    Their steps lie below 0. Sessions whose steps do so already, as those of a conditioning video that ends at -1, are
    moved as a whole; others count from their own start, and end with their last frame, at the time at which what comes
    after begins.
    """
    moved: list[Frame] = []
    step, time_s = 0, 0.0  # at which what comes after begins
    for session in reversed(sessions):
        if not session.frames:
            continue
        last = session.frames[-1]
        by_steps, by_s = (step, time_s) if last.step < 0 else (step - 1 - last.step, time_s - last.time_s)
        own = [replace(frame, step=frame.step + by_steps, time_s=frame.time_s + by_s) for frame in session.frames]
        moved = own + moved
        step, time_s = own[0].step, own[0].time_s
    return tuple(moved)


def without_looking(sessions: Sequence[PastSession], select: str, frames: int) -> tuple[PastSession, ...]:
    """What is shown by every selection but `retrieval`; see `SessionMemory`."""
    if select == "none":
        return ()
    if select == "uncapped":
        return tuple(sessions)
    if select == "oracle-retrieval":
        return tuple(session for session in sessions if session.relevant)
    total = sum(len(session.frames) for session in sessions)
    if select == "last-n":
        return with_frames(sessions, range(max(0, total - frames), total))
    return with_frames(sessions, np.linspace(0, total - 1, min(frames, total)).round().astype(int).tolist())


def with_frames(sessions: Sequence[PastSession], places: Iterable[int]) -> tuple[PastSession, ...]:
    """The sessions with these of their frames, counted through the whole history; those without one are left out."""
    wanted, shown, first = set(places), [], 0
    for session in sessions:
        own = [i for i in range(len(session.frames)) if first + i in wanted]
        first += len(session.frames)
        if own:
            embeddings = None if session.embeddings is None else session.embeddings[own]
            shown.append(replace(session, frames=tuple(session.frames[i] for i in own), embeddings=embeddings))
    return tuple(shown)
