"""From episodes to S2's training data: the SFT JSONL of 002 §8, which ms-swift reads.

Every sample replays the same memory bank that the robot runs with, and the same prompt renderer. The
keyframes in a replay are the annotated ones (teacher forcing), in part of the replays disturbed the way
a planner errs: written late, or one too many.

Splicing: in most samples that show a cue keyframe, that keyframe is taken from another episode, and the
label is changed to match. Else a small planner learns which layout goes with which answer by heart and
never looks at its memory.
"""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank import MemoryBank, MemoryConfig
from planner.prompt import PromptConfig, render_answer, render_prompt
from predimem.episodes import Episode
from predimem.seeds import refuse_evaluation_seed
from predimem.types import Frame, MemorySnapshot, Observation


class DatasetError(ValueError):
    """Episodes that S2 must not or cannot be trained on."""


@dataclass(frozen=True)
class DatasetConfig:
    """samples: lines of the JSONL. phase_weights: how often each kind of subtask is drawn, by the first
    word of its label (`*` is any other). splice_probability: of samples that show a keyframe of the
    subtask `cue_subtask`. late_probability, extra_probability: of replays whose first keyframe is a
    later frame of its run, or that hold one keyframe too many. image_format: PNG files beside the
    JSONL, or base64 inside it. validation_fraction: episodes of each task that are kept for evaluation.
    """

    samples: int = 12_000
    phase_weights: dict[str, float] = field(default_factory=lambda: {"watch": 0.15, "wait": 0.15, "*": 0.7})
    cue_subtask: str = "watch"
    splice_probability: float = 0.8
    late_probability: float = 0.25
    extra_probability: float = 0.25
    image_format: str = "png"
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        if self.image_format not in ("png", "base64"):
            raise ValueError(f"image_format must be png or base64, got {self.image_format!r}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        if "*" not in self.phase_weights:
            raise ValueError("phase_weights needs the key '*' for the subtasks that it does not name")


@dataclass(frozen=True, eq=False)
class Sample:
    """What the planner sees and what it should answer. positions are 1-indexed in snapshot.recent.
    sources: per keyframe of the snapshot, the episode that its frame is from."""

    episode: Episode
    snapshot: MemorySnapshot
    subtask: str
    positions: tuple[int, ...]
    sources: tuple[Episode, ...]

    @property
    def spliced(self) -> bool:
        return any(source is not self.episode for source in self.sources)


class Replay:
    """`replay[t]` is the snapshot at step t of an episode whose planner nominates these steps as they happen.

    The bank sees no pictures: those of a snapshot are read when it is asked for, so that a few snapshots of a
    long episode cost little.
    """

    def __init__(self, episode: Episode, memory: MemoryConfig, nominated: Sequence[int]):
        self._episode = episode
        self._snapshots: list[MemorySnapshot] = []
        bank = MemoryBank(memory)
        bank.reset(f"{episode.task}-{episode.seed}", episode.instruction)
        for step in range(len(episode)):
            bank.observe(Observation(step, {}, episode.state[step], step / episode.control_hz))
            if step in nominated:
                bank.nominate([step])
            self._snapshots.append(bank.snapshot())

    def __len__(self) -> int:
        return len(self._snapshots)

    def __getitem__(self, step: int) -> MemorySnapshot:
        snapshot = self._snapshots[step]
        recent = tuple(frame_at(self._episode, frame.step) for frame in snapshot.recent)
        keyframes = tuple(frame_at(self._episode, frame.step) for frame in snapshot.keyframes)
        return replace(snapshot, recent=recent, keyframes=keyframes)


def frame_at(episode: Episode, step: int) -> Frame:
    """The frame of one step as a memory bank would keep it."""
    images = {camera: frames[step] for camera, frames in episode.images.items()}
    return Frame(step, step / episode.control_hz, images)


def observation_at(episode: Episode, step: int) -> Observation:
    """What the robot sensed at one step of an episode."""
    frame = frame_at(episode, step)
    return Observation(step, frame.images, episode.state[step], frame.time_s)


def split_episodes(episodes: Sequence[Episode], validation_fraction: float) -> tuple[list[Episode], list[Episode]]:
    """(training, validation): of each task, the episodes with the highest seeds are held out."""
    by_task: dict[str, list[Episode]] = {}
    for episode in sorted(episodes, key=lambda e: (e.task, e.seed)):
        by_task.setdefault(episode.task, []).append(episode)
    training, validation = [], []
    for group in by_task.values():
        held_out = round(len(group) * validation_fraction)
        training += group[: len(group) - held_out]
        validation += group[len(group) - held_out :]
    return training, validation


class SampleMaker:
    """Draws training samples from episodes. Raises ValueError on seeds kept for evaluation."""

    def __init__(self, episodes: Sequence[Episode], memory: MemoryConfig, config: DatasetConfig):
        if not episodes:
            raise DatasetError("no episodes to make training data from")
        for episode in episodes:
            refuse_evaluation_seed(episode.seed, episode.task)
        self._episodes = list(episodes)
        self._memory = memory
        self._config = config
        self._goals = _goals_by_task(episodes)
        self._cues = [(e, step) for e in episodes for step in self._cue_steps(e)]

    def draw(self, count: int, rng: random.Random) -> Iterator[Sample]:
        """`count` samples, two of each replay."""
        made = 0
        while made < count:
            episode = rng.choice(self._episodes)
            snapshots = Replay(episode, self._memory, self._nominations(episode, rng))
            for _ in range(min(2, count - made)):
                yield self._sample(episode, snapshots[self._step(episode, rng)], rng)
                made += 1

    def _step(self, episode: Episode, rng: random.Random) -> int:
        weights = self._config.phase_weights
        steps: dict[str, list[int]] = {}
        for step in range(len(episode)):
            word = episode.subtask_at(step).split()[0]
            steps.setdefault(word if word in weights else "*", []).append(step)
        phases = list(steps)
        phase = rng.choices(phases, [weights[name] for name in phases])[0]
        return rng.choice(steps[phase])

    def _nominations(self, episode: Episode, rng: random.Random) -> list[int]:
        steps = list(episode.keyframes)
        if steps and rng.random() < self._config.late_probability:
            subtask = episode.subtask_at(steps[0])
            end = next(s.end for s in episode.subtasks if s.start <= steps[0] < s.end and s.label == subtask)
            steps[0] = rng.randrange(steps[0], end)
        if rng.random() < self._config.extra_probability:
            steps.append(rng.randrange(len(episode)))
        return steps

    def _sample(self, episode: Episode, snapshot: MemorySnapshot, rng: random.Random) -> Sample:
        recent = [frame.step for frame in snapshot.recent]
        positions = tuple(recent.index(step) + 1 for step in episode.keyframes if step in recent)
        subtask = episode.subtask_at(snapshot.step)
        sample = Sample(episode, snapshot, subtask, positions, (episode,) * len(snapshot.keyframes))
        if rng.random() < self._config.splice_probability:
            return self._splice(sample, rng)
        return sample

    def _splice(self, sample: Sample, rng: random.Random) -> Sample:
        """The same moment, remembered with another episode's cue; unchanged if it shows no cue."""
        episode = sample.episode
        cues = [
            i
            for i, frame in enumerate(sample.snapshot.keyframes)
            if episode.subtask_at(frame.step) == self._config.cue_subtask
        ]
        possible = episode.alternatives.subtasks if episode.alternatives else self._goals[episode.task]
        others = [(e, step) for e, step in self._cues if e.goal in possible]
        if not cues or not others:
            return sample
        other, step = rng.choice(others)
        keyframes, sources = list(sample.snapshot.keyframes), list(sample.sources)
        for i in cues:
            keyframes[i], sources[i] = frame_at(other, step), other
        subtask = other.goal if sample.subtask == episode.goal else sample.subtask
        snapshot = replace(sample.snapshot, keyframes=tuple(keyframes))
        return replace(sample, snapshot=snapshot, subtask=subtask, sources=tuple(sources))

    def _cue_steps(self, episode: Episode) -> list[int]:
        cue = self._config.cue_subtask
        return [step for step in range(len(episode)) if episode.subtask_at(step) == cue]


def write_training_data(
    folder: Path,
    episodes: Sequence[Episode],
    prompt: PromptConfig,
    memory: MemoryConfig,
    config: DatasetConfig,
    seed: int,
) -> Path:
    """The JSONL of the episodes that are for training, as `write_jsonl` writes it, with a progress bar.

    Raises DatasetError for episodes kept for evaluation, ValueError for frames that lack a camera.
    """
    from tqdm import tqdm

    training, _ = split_episodes(episodes, config.validation_fraction)
    samples = SampleMaker(training, memory, config).draw(config.samples, random.Random(seed))
    return write_jsonl(folder, iter(tqdm(samples, total=config.samples, unit="sample")), prompt, config)


def write_jsonl(folder: Path, samples: Iterator[Sample], prompt: PromptConfig, config: DatasetConfig) -> Path:
    """Write `train.jsonl` (and, as PNG, the images beside it) atomically; the path of the JSONL."""
    folder.mkdir(parents=True, exist_ok=True)
    path, partial = folder / "train.jsonl", folder / "train.jsonl.partial"
    store = _ImageStore(folder.resolve() / "images", config.image_format)
    with partial.open("w") as file:
        for number, sample in enumerate(samples):
            file.write(json.dumps(_record(number, sample, prompt, store)) + "\n")
    partial.replace(path)
    return path


def _record(number: int, sample: Sample, prompt: PromptConfig, store: _ImageStore) -> dict[str, Any]:
    episode, snapshot = sample.episode, sample.snapshot
    rendered = render_prompt(snapshot, prompt)
    answer = render_answer(sample.subtask, sample.positions)
    shown = list(zip(snapshot.keyframes, sample.sources, strict=True)) if prompt.keyframes else []
    shown += [(frame, episode) for frame in snapshot.recent]
    height, width = rendered.images[0].shape[:2]
    return {
        "qid": f"{episode.task}_seed{episode.seed}_step{snapshot.step}_n{number}",
        "messages": [*rendered.messages, {"role": "assistant", "content": answer}],
        "images": [store.put(source, frame, camera) for frame, source in shown for camera in prompt.cameras],
        "metadata": {
            "task": episode.task,
            "seed": episode.seed,
            "step": snapshot.step,
            "current_primitive": sample.subtask,
            "keyframe_positions": list(sample.positions),
            "camera_keys": list(prompt.cameras),
            "history_keyframe_count": len(shown) - len(snapshot.recent),
            "num_context_frames": len(snapshot.recent),
            "num_context_images": len(snapshot.recent) * len(prompt.cameras),
            "image_size": [width, height],
            "spliced": sample.spliced,
        },
    }


class _ImageStore:
    """Images of the JSONL: files written once each, or base64 strings."""

    def __init__(self, folder: Path, image_format: str):
        self._folder = folder
        self._format = image_format
        self._written: set[Path] = set()

    def put(self, episode: Episode, frame: Frame, camera: str) -> str:
        if self._format == "base64":
            return "data:image/png;base64," + base64.b64encode(_png(frame.images[camera])).decode()
        path = self._folder / episode.task / f"seed{episode.seed:010d}" / f"{frame.step:06d}_{camera}.png"
        if path not in self._written:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_png(frame.images[camera]))
            self._written.add(path)
        return str(path)


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _goals_by_task(episodes: Sequence[Episode]) -> dict[str, set[str]]:
    goals: dict[str, set[str]] = {}
    for episode in episodes:
        goals.setdefault(episode.task, set()).add(episode.goal)
    return goals
