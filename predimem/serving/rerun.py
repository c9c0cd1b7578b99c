"""Episodes as files for the Rerun viewer (https://rerun.io): images, subtasks, keyframes and numbers over time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank.store import DamagedImage, MemoryStore, StoredEpisode, open_store
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite
from predimem.core.types import Frame
from predimem.serving.jpeg import jpeg
from predimem.serving.trajectory import rows_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recording:
    """One episode, whatever it comes from.

    images: (step, camera -> uint8 [H, W, 3]), steps ascending.
    spans: (first step, subtask).
    keyframes: their steps.
    numbers: name -> (step, value), such as the planner's confidence.
    vectors: name -> (step, float [D]).
    said: (step, text): raw answers of the planner.
    clock: step -> seconds since 1970, where that is known.
    """

    name: str
    instruction: str
    control_hz: float
    cameras: Sequence[str]
    images: Iterable[tuple[int, Mapping[str, np.ndarray]]]
    spans: Sequence[tuple[int, str]]
    keyframes: Sequence[int]
    numbers: Mapping[str, Iterable[tuple[int, float]]] = field(default_factory=dict)
    vectors: Mapping[str, Iterable[tuple[int, np.ndarray]]] = field(default_factory=dict)
    said: Sequence[tuple[int, str]] = ()
    clock: Mapping[int, float] = field(default_factory=dict)


def recording_of_episode(episode: Episode) -> Recording:
    """A demonstration: images at the steps at which some were taken."""
    steps = [int(step) for step in np.flatnonzero(episode.image_steps)]

    def images() -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
        for step in steps:
            yield step, {name: frames[step] for name, frames in episode.images.items()}

    spans = [(span.start, span.label) for span in episode.subtasks]
    vectors = {"state": enumerate(episode.state), "actions": enumerate(episode.actions)}
    name = f"{episode.task}, seed {episode.seed}"
    return Recording(
        name,
        episode.instruction,
        episode.control_hz,
        list(episode.images),
        images(),
        spans,
        episode.keyframes,
        {},
        vectors,
    )


def recording_of_served(store: MemoryStore, stored: StoredEpisode, control_hz: float) -> Recording:
    """An episode that a server kept: what the planner said, and the images that were stored."""
    cameras = next((sorted(frame.images) for frame in _frames(store, stored)), [])
    spans = [(plan.step, plan.subtask) for plan in stored.plans if plan.subtask is not None]
    kept = set(stored.image_steps)
    nominated = sorted({step for plan in stored.plans for step in plan.keyframe_steps} & kept)
    confidence = [(plan.step, plan.confidence) for plan in stored.plans if plan.confidence is not None]
    said = [(plan.step, plan.text) for plan in stored.plans if plan.text]
    said += [(failure.step, f"{failure.error}: {failure.text}") for failure in stored.failures]
    rows = rows_of(store, stored.key)
    clock = {plan.step: plan.at_s for plan in stored.plans if plan.at_s is not None}
    numbers = {
        "confidence": confidence,
        "latency/s2_ms": [(p.step, 1000 * p.latency_s) for p in stored.plans if p.latency_s is not None],
    }
    vectors = {}
    if rows is not None:
        steps = rows.steps.tolist()
        clock |= dict(zip(steps, rows.at_s.tolist(), strict=True))
        asked = ~np.isnan(rows.s1_ms)
        numbers["latency/s1_ms"] = list(zip(rows.steps[asked].tolist(), rows.s1_ms[asked].tolist(), strict=True))
        vectors = {
            "state": zip(steps, rows.state, strict=True),
            "actions": zip(steps, rows.action, strict=True),
        }
    return Recording(
        stored.episode_id,
        stored.instruction,
        control_hz,
        cameras,
        ((frame.step, frame.images) for frame in _frames(store, stored)),
        [span for i, span in enumerate(spans) if i == 0 or spans[i - 1][1] != span[1]],
        nominated,
        numbers,
        vectors,
        sorted(said),
        clock,
    )


def _frames(store: MemoryStore, stored: StoredEpisode) -> Iterator[Frame]:
    """Those whose images can be read."""
    for step in stored.image_steps:
        try:
            yield store.frame(stored.key, step)
        except DamagedImage as error:
            log.warning("step %d of %s is left out: %s", step, stored.episode_id, error)


def recording_of_kept(place: str | Path, episode_id: str, control_hz: float) -> Recording:
    """An episode of a memory store. Raises ValueError where it is not there."""
    store = open_store(place, must_exist=True)
    if (stored := store.find(episode_id)) is None:
        known = ", ".join(episode["episode_id"] for episode in store.episodes()[:10])
        raise ValueError(f"{place} has no episode {episode_id!r}; the last ones are: {known or 'none'}")
    return recording_of_served(store, stored, control_hz)


def write_rerun(recording: Recording, path: Path) -> Path:
    """Write `path`, an .rrd file, anew. Raises ValueError where rerun-sdk is not installed."""
    try:
        import rerun as rr
    except ModuleNotFoundError as error:
        raise ValueError("exporting for Rerun needs rerun-sdk: pip install 'predimem[export]'") from error
    whole = AtomicWrite(path)
    stream: Any = rr.RecordingStream("predimem", recording_id=recording.name)
    stream.save(whole.partial, default_blueprint=_layout(recording))
    stream.send_recording_name(recording.name)
    stream.log("instruction", rr.TextDocument(recording.instruction), static=True)

    def at(step: int) -> None:
        stream.set_time("step", sequence=step)
        stream.set_time("time", duration=step / recording.control_hz)
        if step in recording.clock:
            stream.set_time("clock", timestamp=recording.clock[step])
        else:
            stream.disable_timeline("clock")

    keyframes = set(recording.keyframes)
    for step, images in recording.images:
        at(step)
        for camera, image in images.items():
            stream.log(f"cameras/{camera}", rr.EncodedImage(contents=jpeg(image), media_type="image/jpeg"))
            if step in keyframes:
                stream.log(f"keyframes/{camera}", rr.EncodedImage(contents=jpeg(image), media_type="image/jpeg"))
    for step in sorted(keyframes):
        at(step)
        stream.log("events", rr.TextLog(f"keyframe: step {step}", level="WARN"))
    for step, subtask in recording.spans:
        at(step)
        stream.log("subtask", rr.TextDocument(subtask))
        stream.log("events", rr.TextLog(subtask, level="INFO"))
    for step, text in recording.said:
        at(step)
        stream.log("planner/answer", rr.TextLog(text, level="DEBUG"))
    for name, values in recording.numbers.items():
        for step, value in values:
            at(step)
            stream.log(name, rr.Scalars(value))
    for name, rows in recording.vectors.items():
        for step, row in rows:
            at(step)
            stream.log(name, rr.Scalars(row))
    stream.flush()
    stream.disconnect()
    whole.finish()
    return path


def _layout(recording: Recording) -> Any:
    """Cameras above, keyframes and what was said in the middle, numbers below."""
    import rerun.blueprint as rrb

    cameras = [rrb.Spatial2DView(origin=f"cameras/{name}", name=name) for name in recording.cameras]
    kept = [rrb.Spatial2DView(origin=f"keyframes/{name}", name=f"keyframe, {name}") for name in recording.cameras]
    said = [
        rrb.TextDocumentView(origin="instruction", name="instruction"),
        rrb.TextDocumentView(origin="subtask", name="subtask"),
        rrb.TextLogView(origin="events", name="events"),
    ]
    if recording.said:
        said.append(rrb.TextLogView(origin="planner/answer", name="the planner's raw answers"))
    names = dict.fromkeys(name.partition("/")[0] for name in (*recording.numbers, *recording.vectors))
    plots = [rrb.TimeSeriesView(origin=name, name=name) for name in names]
    rows = [rrb.Horizontal(*cameras, rrb.Vertical(*said)), rrb.Horizontal(*kept, *plots)]
    return rrb.Blueprint(rrb.Vertical(*rows, row_shares=[3, 2]), collapse_panels=True)
