"""From episodes to S2's training data: the SFT JSONL of RoboMemArena (arXiv:2605.10921), §8, which ms-swift reads.

Every sample replays the same memory bank that the robot runs with, and the same prompt renderer. The
keyframes in a replay are the annotated ones (teacher forcing). In a part of the replays they are disturbed in the way
in which a planner errs: a keyframe comes late or early, is forgotten, or is one too many.

Counterfactual memory augmentation: many samples get the memory of another episode, and the label that is right with
that memory (`planner.counterfactual`). Without it a small planner learns by heart which layout goes with which answer,
and never looks at its memory.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, compress, islice
from pathlib import Path
from typing import ClassVar, Literal

from memory_bank import MemoryConfig
from planner.ahead import planned_ahead
from planner.branch_points import branch_points
from planner.counterfactual import with_memory_of, with_replayed_memory
from planner.named import as_named, unnamed_steps
from planner.nominations import Targets, frames_back, keyframe_positions, keyframe_targets, own_nominations
from planner.replay import Replay, Sample, frame_at, on_grid
from planner.setbacks import setbacks
from planner.split import by_task
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode, check_subtasks
from predimem.core.frames import StepImages
from predimem.core.paraphrases import read_paraphrases
from predimem.core.seeds import refuse_evaluation_seed
from predimem.core.task_weights import check_task_weights, weights_of
from predimem.core.types import MemorySnapshot


class DatasetError(ValueError):
    """Episodes that S2 must not or cannot be trained on."""


@dataclass(frozen=True)
class DatasetConfig:
    """Which samples are drawn from the episodes, and how they are changed. Probabilities and shares lie in 0..1.

    samples: how many lines the JSONL has.
    task_weights: how often each task is drawn, however many episodes it has: pattern of its name -> weight, of which
        the first that matches counts (`*` is any other task). Without any, each episode is drawn equally often.
    metadata_shares: field of an episode's metadata -> the share of a task's draws that are of episodes with that field,
        however many they are. Of several fields the first that an episode has counts; a task that has no such episodes
        draws the others.
    phase_weights: how often each kind of subtask is drawn. The key is the first word of its label; `*` is any other.
    cue_subtask: the subtask that shows what has to be remembered; `counterfactual: cue` needs it.
    counterfactual: what a sample gets from another episode with the same instruction. "cue" exchanges the keyframes of
        `cue_subtask`; "progress" exchanges the whole memory with that of an episode of the same task that has got just
        as far. The hidden state of that episode may be another, as long as the recent window does not show it.
    counterfactual_probability: the share of samples whose memory is exchanged, where it can be.
    counterfactual_steps: for so many steps after the subtasks of two episodes part, the window does not yet show it.
    late_probability: the share of replays whose first keyframe is a later frame of the same subtask.
    extra_probability: the share of replays that hold one keyframe too many.
    missing_probability: the probability of each keyframe to be forgotten.
    jitter_steps: each keyframe is early or late by up to so many steps.
    lag_steps: a text memory has a subtask late by up to so many steps; 0: it is always one step late.
    early_steps: with lag_steps, a text memory has a subtask early by up to so many steps; null: half of lag_steps,
        rounded up.
    own_memory_probability: in this share of the replays, the memory holds what the planner that drove the episode
        nominated itself (metadata `nominated_steps`, where it is known) in place of the targets.
    nominate: the keyframes that the planner is taught to nominate. "annotated" are all that are annotated;
        "subtask_ends" is the last annotated one of each subtask, which shows how it ended; "changes" are the frames at
        which the subtask changes: then nominating a frame and naming another subtask than before are one decision.
    traceless: patterns (`fnmatch`) of the subtasks that leave no trace in the frame after them, such as a pour. At
        their end the oldest frame of the window is nominated in place of the newest: it shows the motion.
    told: patterns of the subtasks at whose end nothing is nominated, because the list of past subtasks (`memory:
        {past_subtasks: true}`) tells that they were done.
    plan_ahead: patterns of the subtasks that are named together with those that follow them and match as well
        (`planner.ahead`), as `prompt.plan_ahead` asks. For episodes whose order follows from what was shown before.
    events: patterns of the kinds of events in an episode's metadata (`events`), at whose end a frame is
        nominated as well, such as `carried into a drawer`: what somebody else does is no end of a subtask.
    named_memory_probability: in this share of the replays of an episode that says what its driver named (metadata
        `spoken`), a change of subtask is remembered when the driver named it, and not when it was due. Until then the
        planner is taught to nominate the newest frame, if the change has left the window.
    unnamed_probability: of such an episode, the share of samples at which the driver named another subtask than the one
        that was due.
    boundary_probability: the share of samples that lie within `boundary_steps` of a change of subtask.
    branch_point_probability: of an episode that has branch points (`planner.branch_points`), the share of samples that
        lie within `counterfactual_steps` after one.
    setback_probability: of an episode that has setbacks (`planner.setbacks`), the share of samples that lie within
        `setback_steps` after one.
    paraphrases: a YAML file with other words for the instructions (`predimem.core.paraphrases`). A task that it lacks
        keeps its own.
    paraphrase_probability: the share of samples whose instruction is put into other words.
    step_grid: samples and keyframes are taken at multiples of it, so that many samples share images.
    samples_per_replay: how many samples are drawn from one replay of an episode.
    image_format: "png" writes files beside the JSONL, "base64" puts the images inside it.
    validation_fraction: the share of the episodes of each task that is kept for evaluation.
    training_share: of the other seeds of each task so large a share is trained on, the lowest ones; above 0.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {
        "splice": "counterfactual",
        "splice_probability": "counterfactual_probability",
        "splice_steps": "counterfactual_steps",
        "fork_probability": "branch_point_probability",
    }

    samples: int = 12_000
    task_weights: dict[str, float] = field(default_factory=dict)
    metadata_shares: dict[str, float] = field(default_factory=dict)
    phase_weights: dict[str, float] = field(default_factory=lambda: {"*": 1.0})
    cue_subtask: str | None = None
    counterfactual_probability: float = 0.0
    late_probability: float = 0.0
    extra_probability: float = 0.0
    image_format: str = "png"
    validation_fraction: float = 0.1
    nominate: Targets = "annotated"
    traceless: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    plan_ahead: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    counterfactual: Literal["cue", "progress"] = "progress"
    counterfactual_steps: int = 20
    boundary_probability: float = 0.0
    boundary_steps: int = 20
    branch_point_probability: float = 0.0
    setback_probability: float = 0.0
    setback_steps: int = 40
    step_grid: int = 1
    samples_per_replay: int = 2
    missing_probability: float = 0.0
    jitter_steps: int = 0
    lag_steps: int = 0
    early_steps: int | None = None
    own_memory_probability: float = 0.0
    named_memory_probability: float = 0.0
    unnamed_probability: float = 0.0
    training_share: float = 1.0
    paraphrases: str | None = None
    paraphrase_probability: float = 0.0

    def __post_init__(self) -> None:
        if self.image_format not in ("png", "base64"):
            raise ValueError(f"image_format must be png or base64, got {self.image_format!r}")
        if self.samples < 1:
            raise ValueError(f"samples must be at least 1, got {self.samples}")
        if min(self.step_grid, self.samples_per_replay) < 1:
            raise ValueError("step_grid and samples_per_replay must be at least 1")
        for name in (f.name for f in fields(self)):
            value = getattr(self, name)
            if (name.endswith("_probability") or name == "validation_fraction") and not 0 <= value <= 1:
                raise ValueError(f"{name} must be from 0 to 1, got {value}")
            if name.endswith("_steps") and (value or 0) < 0:
                raise ValueError(f"{name} must be at least 0, got {value}")
        if self.early_steps and not self.lag_steps:
            raise ValueError("early_steps is for lag_steps above 0: a text memory that is never late is never early")
        if "*" not in self.phase_weights:
            raise ValueError("phase_weights needs the key '*' for the subtasks that it does not name")
        if self.counterfactual == "cue" and self.counterfactual_probability > 0 and self.cue_subtask is None:
            raise ValueError("counterfactual: cue exchanges the keyframes of one subtask: name it in cue_subtask")
        if self.paraphrase_probability > 0 and self.paraphrases is None:
            raise ValueError("paraphrase_probability needs the other words: name their file in paraphrases")
        check_task_weights(self.task_weights)
        if min(self.metadata_shares.values(), default=1.0) <= 0 or sum(self.metadata_shares.values()) >= 1:
            raise ValueError(f"metadata_shares must be above 0 and below 1 together, got {self.metadata_shares}")
        if not 0 < self.training_share <= 1:
            raise ValueError(
                f"training_share must be above 0 and at most 1, which is all episodes; got {self.training_share}"
            )


def training_episodes(folder: str | Path) -> list[Episode]:
    """The episodes of a folder. Raises ValueError where one of them is kept for evaluation, or has no subtasks."""
    episodes = load_episodes(folder)
    for episode in episodes:
        check_subtasks(episode, folder)
        refuse_evaluation_seed(episode.seed, f"{folder}: {episode.task}")
    return episodes


def told_instructions(episodes: Sequence[Episode], config: DatasetConfig) -> set[str]:
    """What a planner that is trained on these episodes is told, in other words as well where it is."""
    words = read_paraphrases(Path(config.paraphrases)) if config.paraphrases else {}
    own = {(episode.task, episode.instruction) for episode in episodes}
    others = {text for task, instruction in own if task in words for text in words[task].of(instruction)}
    return others | {instruction for _, instruction in own}


class SampleMaker:
    """Draws training samples from episodes. Raises ValueError on seeds kept for evaluation."""

    def __init__(self, episodes: Sequence[Episode], memory: MemoryConfig, config: DatasetConfig):
        if not episodes:
            raise DatasetError("no episodes to make training data from")
        for episode in episodes:
            refuse_evaluation_seed(episode.seed, episode.task)
        episodes = [planned_ahead(episode, config.plan_ahead) for episode in episodes]
        self._memory = memory
        self._config = config
        self._by_task = by_task(episodes)
        self._task_weights = weights_of(self._by_task, config.task_weights) if config.task_weights else None
        groups = list(self._by_task.values()) if config.task_weights else [list(episodes)]
        self._groups = [_by_metadata(group, config.metadata_shares) for group in groups]
        self._goals = _goals_by_task(episodes)
        self._branch_points = branch_points(episodes)
        self._setbacks = {id(e): setbacks(e) if config.setback_probability else () for e in episodes}
        self._unnamed = {id(e): unnamed_steps(e) if config.unnamed_probability else [] for e in episodes}
        self._told_the_same = _by_instruction(episodes)
        self._paraphrases = read_paraphrases(Path(config.paraphrases)) if config.paraphrases else {}
        self._cues = [(e, step) for e in episodes for step in self._cue_steps(e)]

    def draw(self, count: int, rng: random.Random) -> Iterator[Sample]:
        """`count` samples, a few of each replay."""
        made = 0
        while made < count:
            episode = self._episode(rng)
            replay = self._replay(episode, rng, self._config.step_grid)
            for _ in range(min(self._config.samples_per_replay, count - made)):
                yield self._in_other_words(self._sample(episode, replay, self._step(episode, rng), rng), rng)
                made += 1

    def _episode(self, rng: random.Random) -> Episode:
        shares = rng.choices(self._groups, self._task_weights)[0] if self._task_weights else self._groups[0]
        if len(shares) == 1:
            return rng.choice(shares[0][1])
        return rng.choice(rng.choices([group for _, group in shares], [share for share, _ in shares])[0])

    def _replay(self, episode: Episode, rng: random.Random, every: int = 1) -> Replay:
        share = self._config.named_memory_probability
        remembered = as_named(episode) if share and rng.random() < share else episode
        nominated, lag = self._nominations(remembered, rng), self._lag(rng)
        return Replay(episode, self._memory, nominated, lag, remembered.subtasks, every)

    def _step(self, episode: Episode, rng: random.Random) -> int:
        config, points, unnamed = self._config, self._branch_points[id(episode)], self._unnamed[id(episode)]
        went_wrong = self._setbacks[id(episode)]
        if went_wrong and rng.random() < config.setback_probability:
            step = min(rng.choice(went_wrong) + rng.randint(0, config.setback_steps), len(episode) - 1)
        elif unnamed and rng.random() < config.unnamed_probability:
            step = _one_of(unnamed, rng)
        elif points and config.branch_point_probability and rng.random() < config.branch_point_probability:
            after = rng.randint(config.step_grid - 1, max(config.step_grid - 1, config.counterfactual_steps))
            step = min(rng.choice(points) + after, len(episode) - 1)
        elif config.boundary_probability and rng.random() < config.boundary_probability:
            boundaries = [span.start for span in episode.subtasks[1:]] or [0]
            near = rng.choice(boundaries) + rng.randint(-config.boundary_steps, config.boundary_steps)
            step = min(max(near, 0), len(episode) - 1)
        else:
            step = self._step_of_a_phase(episode, rng)
        return step // config.step_grid * config.step_grid

    def _lag(self, rng: random.Random) -> int:
        late, early = self._config.lag_steps, self._config.early_steps
        return rng.randint(-late // 2 if early is None else -early, late) if late else 1

    def _step_of_a_phase(self, episode: Episode, rng: random.Random) -> int:
        weights = self._config.phase_weights
        phases: dict[str, list[range]] = {}
        for span in episode.subtasks:
            word = span.label.split()[0]
            phases.setdefault(word if word in weights else "*", []).append(range(span.start, span.end))
        phase = rng.choices(list(phases), [weights[name] for name in phases])[0]
        return _one_of(phases[phase], rng)

    def _nominations(self, episode: Episode, rng: random.Random) -> list[tuple[int, int]]:
        """(frame, when it is nominated), both steps on the grid."""
        config, memory = self._config, self._memory
        window_steps = (memory.recent_window - 1) * memory.recent_stride_steps
        own = own_nominations(episode, config.traceless, window_steps)
        if own and config.own_memory_probability and rng.random() < config.own_memory_probability:
            frames = on_grid([frame for frame, _ in own], config.step_grid, episode)
            return [(frame, max(frame, at)) for frame, (_, at) in zip(frames, own, strict=True)]
        steps = list(keyframe_targets(episode, config.nominate, config.told, config.events))
        back = [self._back(episode, step) * memory.recent_stride_steps for step in steps]
        if config.missing_probability:
            kept = [rng.random() >= config.missing_probability for _ in steps]
            steps, back = list(compress(steps, kept)), list(compress(back, kept))
        if config.jitter_steps:
            moved = (step + rng.randint(-config.jitter_steps, config.jitter_steps) for step in steps)
            steps = [min(max(step, 0), len(episode) - 1) for step in moved]
        steps = on_grid(steps, config.step_grid, episode)
        if steps and rng.random() < config.late_probability:
            subtask = episode.subtask_at(steps[0])
            end = next(s.end for s in episode.subtasks if s.start <= steps[0] < s.end and s.label == subtask)
            steps[0] = rng.randrange(steps[0], end, config.step_grid)
        if rng.random() < config.extra_probability:
            steps += on_grid([rng.randrange(len(episode))], config.step_grid, episode)
            back = [*back, 0]
        return [(max(step - n, 0), step) for step, n in zip(steps, back, strict=True)]

    def _back(self, episode: Episode, target: int) -> int:
        traceless = self._config.traceless if self._memory.keyframes else ()
        return frames_back(episode, target, traceless, self._memory.recent_window)

    def _sample(self, episode: Episode, replay: Replay, step: int, rng: random.Random) -> Sample:
        config, snapshot = self._config, replay[step]
        targets = keyframe_targets(episode, config.nominate, config.told, config.events)
        if replay.named.subtask_at(step) != episode.subtask_at(step) and self._is_late(episode, snapshot, targets):
            targets = (*targets, step)
        back = [self._back(episode, target) for target in targets]
        positions = keyframe_positions(snapshot, targets, self._memory.recent_stride_steps, back)
        subtask = episode.subtask_at(step)
        sample = Sample(episode, snapshot, subtask, positions, (episode,) * len(snapshot.keyframes))
        if rng.random() < self._config.counterfactual_probability:
            by_progress = self._config.counterfactual == "progress"
            return self._with_other_memory(sample, rng) if by_progress else self._with_other_cue(sample, rng)
        return sample

    @staticmethod
    def _is_late(episode: Episode, snapshot: MemorySnapshot, targets: Sequence[int]) -> bool:
        """Whether a change that is a target has left the window, so that the newest frame takes its place."""
        began = next(span.start for span in episode.subtasks if span.start <= snapshot.step < span.end)
        return began in targets and began < snapshot.recent[0].step

    def _in_other_words(self, sample: Sample, rng: random.Random) -> Sample:
        known, share = self._paraphrases.get(sample.episode.task), self._config.paraphrase_probability
        if known is None or rng.random() >= share:
            return sample
        told = rng.choice(known.of(sample.episode.instruction))
        return replace(sample, snapshot=replace(sample.snapshot, instruction=told))

    def _with_other_memory(self, sample: Sample, rng: random.Random) -> Sample:
        own = sample.episode
        alike, place = self._told_the_same[id(own)]
        if len(alike) == 1:
            return sample
        drawn = rng.randrange(len(alike) - 1)  # of all but its own
        other, parted = alike[drawn + (drawn >= place)], self._config.counterfactual_steps
        if self._memory.implementation is not None:  # what it would have kept of the other episode, it alone knows
            return with_replayed_memory(sample, other, parted, lambda: self._replay(other, rng))
        return with_memory_of(sample, other, parted, self._config.step_grid)

    def _with_other_cue(self, sample: Sample, rng: random.Random) -> Sample:
        """The same moment, remembered with another episode's cue; unchanged if it shows no cue."""
        episode = sample.episode
        cues = [
            i
            for i, frame in enumerate(sample.snapshot.keyframes)
            if episode.subtask_at(frame.step) == self._config.cue_subtask
        ]
        possible = episode.alternatives.subtasks if episode.alternatives else self._goals[episode.task]
        others = [(e, s) for e, s in self._cues if e.goal in possible and e.instruction == episode.instruction]
        if not cues or not others:
            return sample
        if any(not isinstance(sample.snapshot.keyframes[i].images, StepImages) for i in cues):
            raise DatasetError(
                f"{self._memory.implementation} shows keyframes that are no images of the episode, so a cue cannot be "
                "exchanged for another episode's: set dataset: {counterfactual: progress}, which exchanges the "
                "whole memory, or counterfactual_probability: 0"
            )
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


def _one_of(steps: Sequence[range], rng: random.Random) -> int:
    """One step of these, each equally often."""
    return next(islice(chain.from_iterable(steps), rng.randrange(sum(map(len, steps))), None))


def _by_instruction(episodes: Sequence[Episode]) -> dict[int, tuple[list[Episode], int]]:
    """For each episode, by its identity: those of its task and instruction, and which of them it is."""
    groups: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        groups.setdefault((episode.task, episode.instruction), []).append(episode)
    return {id(episode): (group, place) for group in groups.values() for place, episode in enumerate(group)}


def _by_metadata(episodes: Sequence[Episode], shares: Mapping[str, float]) -> list[tuple[float, list[Episode]]]:
    """(share, episodes) of each field of `shares` that some of these episodes have, and of those that have none."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(next((name for name in shares if name in episode.metadata), ""), []).append(episode)
    rest = 1.0 - sum(shares.get(name, 0.0) for name in groups)
    return [(shares.get(name, rest), group) for name, group in groups.items()]


def _goals_by_task(episodes: Sequence[Episode]) -> dict[str, set[str]]:
    goals: dict[str, set[str]] = {}
    for episode in episodes:
        goals.setdefault(episode.task, set()).add(episode.goal)
    return goals
