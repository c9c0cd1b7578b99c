"""Training the actor: `predimem train actor --config configs/actor/tiny.yaml`.

Every batch and every noise sample is a function of (seed, step) alone: a run that was interrupted
and resumed gives the same weights as one that was not.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from actor.checkpoint import Checkpoint, Interruption, load_checkpoint, save_checkpoint
from actor.dataset import FrameSet, SamplingConfig, load_frame_sets
from actor.learner import Learner, embed_new_words, order_number_embeddings, validate
from actor.names import from_openpi
from actor.normalize import NormStats, compute_quantiles, load_stats, save_stats
from actor.pi05 import Pi05
from actor.preprocess import Preprocessor
from actor.robot_space import RobotSpace
from actor.tiny.auxiliary import AuxiliaryConfig
from actor.tokenizer import Tokenizer, WordTokenizer, load_tokenizer, save_tokenizer, train_word_tokenizer
from actor.weights import (
    STATS_FILE,
    WEIGHTS_FILE,
    Actor,
    ActorConfig,
    load_into,
    read_config,
    read_safetensors,
    save_actor,
    tokenizer_path,
)
from predimem.core.config import from_dict, in_todays_words, to_dict
from predimem.core.episodes import list_episodes
from predimem.core.progress import Bar
from predimem.core.seeds import ACTOR_DAGGER_SEEDS

CHECKPOINT_FILE = "checkpoint.pt"
LOG_FILE = "log.jsonl"
SUMMARY_FILE = "summary.json"
_FOLDERS = ("episodes", "more_episodes", "out")
_MAY_CHANGE = (*_FOLDERS, "threads", "images_gb", "checkpoint_every", "validate_every", "log_every")


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with a linear warm-up, a plateau, and a linear decay to 2 % over the last `decay_share` of the steps.

    ema_decay: the decay of the averaged weights, which are validated and exported; 0 keeps no average.
    """

    learning_rate: float = 1.2e-3
    weight_decay: float = 0.02
    betas: tuple[float, ...] = (0.9, 0.95)
    warmup_steps: int = 60
    decay_share: float = 0.4
    clip_norm: float = 1.0
    ema_decay: float = 0.998

    def learning_rate_at(self, step: int, steps: int) -> float:
        """The rate of the step after `step` steps are done."""
        warm = min(1.0, (step + 1) / max(1, self.warmup_steps))
        left = (steps - step) / max(1.0, self.decay_share * steps)
        return self.learning_rate * warm * min(1.0, max(0.02, left))


@dataclass(frozen=True)
class DaggerConfig:
    """Rounds of DAgger after the first training (`actor.rounds`).

    In each round the actor of the last round plays, the expert labels what it met, and training goes on with all data.

    rounds: how many rounds there are; 0 for none.
    expert_episodes: how many seeds of each task the expert plays, with noise, for the first training.
    episodes: how many seeds of each task the actor plays in a round.
    first_seed: the first seed; the expert's seeds begin there, and those of each round follow.
    chain_share: the share of the roll-outs that go on with the next subtask after a success.
    steps: how many steps of training a round adds.
    data: the config of the actor's data, which says how roll-outs are made.
    """

    rounds: int = 0
    expert_episodes: int = 0
    episodes: int = 16
    first_seed: int = ACTOR_DAGGER_SEEDS.start
    chain_share: float = 0.5
    steps: int = 600
    data: str = "configs/datagen_actor_data.yaml"

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise ValueError(f"dagger.rounds must be at least 0, got {self.rounds}")
        if self.expert_episodes < 0:
            raise ValueError(f"dagger.expert_episodes must be at least 0, got {self.expert_episodes}")
        for name in ("episodes", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"dagger.{name} must be at least 1, got {getattr(self, name)}")

    def seeds(self, number: int) -> range:
        """Those of each task that are played for a round; the expert's are those of round 0."""
        if number == 0:
            return range(self.first_seed, self.first_seed + self.expert_episodes)
        first = self.first_seed + self.expert_episodes + (number - 1) * self.episodes
        return range(first, first + self.episodes)


@dataclass(frozen=True)
class ActorTrainConfig:
    """One training run.

    episodes: a folder of episodes.
    out: the folder for everything that the training makes.
    more_episodes: further folders of episodes.
    init_from: a safetensors file with openpi's names to start from; its action head must fit.
    continue_from: a weights folder to start from, such as one that `predimem import actor` wrote. Its tokenizer is
        kept; words that a tiny tokenizer does not know are added to it.
    stats_from: with `continue_from`, whether its statistics are kept (`checkpoint`), or computed from the episodes
        (`data`).
    seed: batches and noise are functions of the seed and the step.
    steps: how many steps the training has.
    device: the torch device.
    bfloat16: whether the model runs in bfloat16 (autocast).
    threads: how many threads torch uses; None leaves them as they are.
    images_gb: images that would take more memory than this are read from the files for each batch.
    val_every: every so manyth episode is for validation.
    flow_samples: how many noise samples each prompt has.
    checkpoint_every, validate_every, log_every: so many steps lie between two of each.
    actor: what the actor expects and gives.
    sampling: how a batch is drawn.
    auxiliary: the weights of the training-only losses.
    optimiser: how the weights are optimised.
    dagger: the rounds after this training.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"pictures_gb": "images_gb"}

    episodes: str = "runs/data/mikasa"
    out: str = "runs/train/actor"
    more_episodes: tuple[str, ...] = ()
    init_from: str | None = None
    continue_from: str | None = None
    stats_from: Literal["checkpoint", "data"] = "checkpoint"
    seed: int = 0
    steps: int = 1600
    device: str = "cpu"
    bfloat16: bool = False
    threads: int | None = None
    images_gb: float = 2.0
    val_every: int = 10
    flow_samples: int = 2
    checkpoint_every: int = 100
    validate_every: int = 200
    log_every: int = 20
    actor: ActorConfig = field(default_factory=ActorConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    dagger: DaggerConfig = field(default_factory=DaggerConfig)

    def __post_init__(self) -> None:
        if self.init_from and self.continue_from:
            raise ValueError("init_from and continue_from both say where to start from: give one of them")
        for name in ("steps", "val_every", "flow_samples", "checkpoint_every", "validate_every", "log_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def train(
    config: ActorTrainConfig,
    episodes: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Path:
    """Train to `config.steps` and export; returns the folder that `actor.policy.load_policy` reads.

    Ctrl-C finishes the step, writes a checkpoint and raises KeyboardInterrupt; `resume` goes on from
    it. Raises ValueError if `out` holds a run already and `resume` is not set, if the run there had
    another config or other episodes, or if the data cannot be used.
    """
    config = dataclasses.replace(config, episodes=str(episodes or config.episodes), out=str(out or config.out))
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    run = Path(config.out)
    checkpoint = previous_checkpoint(run, config, resume)
    roots = (config.episodes, *config.more_episodes)
    train_frames, val_frames = load_frame_sets(roots, config.actor, config.val_every, config.images_gb)
    stats, tokenizer = prepare(run, config, train_frames, fresh=checkpoint is None)
    preprocess = Preprocessor(config.actor, stats, tokenizer)
    learner = new_learner(config, train_frames, tokenizer)
    average = copy.deepcopy(learner).requires_grad_(False) if config.optimiser.ema_decay else learner
    optimiser = torch.optim.AdamW(
        learner.parameters(),
        lr=config.optimiser.learning_rate,
        weight_decay=config.optimiser.weight_decay,
        betas=(config.optimiser.betas[0], config.optimiser.betas[1]),
    )
    start = 0
    if checkpoint is not None:
        start = checkpoint.step
        learner.load_state_dict(checkpoint.learner)
        average.load_state_dict(checkpoint.average)
        optimiser.load_state_dict(checkpoint.optimiser)
    log = _Log(run / LOG_FILE, start)
    figures: dict[str, float] = {}
    with Interruption() as interruption, Bar(config.steps, "steps", "training", start, shown=progress) as bar:
        for step in range(start, config.steps):
            losses = _step(learner, average, optimiser, train_frames, preprocess, config, step)
            log.add(losses)
            bar.add()
            done = step + 1
            last = done == config.steps or interruption.requested
            if done % config.log_every == 0 or last:
                row = log.write(done, optimiser.param_groups[0]["lr"])
                bar.show(", ".join(f"{name} {value:.3f}" for name, value in row.items() if name in losses))
            if done % config.validate_every == 0 or done == config.steps:
                figures = validate(average, val_frames, preprocess, config.sampling, config.actor.num_steps)
                log.write_validation(done, figures)
                bar.note(f"step {done}: " + ", ".join(f"{k} {v:.4f}" for k, v in figures.items()))
            if done % config.checkpoint_every == 0 or last:
                _save(run, config, done, learner, average, optimiser)
            if interruption.requested and done < config.steps:
                raise KeyboardInterrupt(f"stopped after step {done}, of which {run} has a checkpoint")
    _summarise(run, config, average, train_frames, val_frames, figures, log.seconds)
    return export(run, run / "weights")


def export(run: str | Path, folder: str | Path) -> Path:
    """Write the weights folder of a run's last checkpoint: averaged weights in float16, no training heads."""
    run = Path(run)
    checkpoint = load_checkpoint(run / CHECKPOINT_FILE)
    config = from_dict(ActorTrainConfig, checkpoint.config, where=str(run / CHECKPOINT_FILE))
    weights = {
        name.removeprefix("model."): tensor for name, tensor in checkpoint.average.items() if name.startswith("model.")
    }
    model = Pi05(config.actor.model)
    load_into(model, weights, run / CHECKPOINT_FILE)
    tokenizer = load_tokenizer(tokenizer_path(run, config.actor))
    save_actor(folder, Actor(config.actor, model, load_stats(run / STATS_FILE), tokenizer))
    return Path(folder)


def _step(
    learner: Learner,
    average: Learner,
    optimiser: torch.optim.Optimizer,
    frames: FrameSet,
    preprocess: Preprocessor,
    config: ActorTrainConfig,
    step: int,
) -> dict[str, float]:
    for group in optimiser.param_groups:
        group["lr"] = config.optimiser.learning_rate_at(step, config.steps)
    batch = frames.batch(np.random.default_rng([config.seed, step]), config.sampling)
    generator = torch.Generator().manual_seed(int(np.random.default_rng([config.seed, step, 1]).integers(2**62)))
    with torch.autocast(config.device, torch.bfloat16, enabled=config.bfloat16):
        losses = learner.losses(batch, preprocess, generator, config.flow_samples)
    optimiser.zero_grad(set_to_none=True)
    losses["total"].backward()
    torch.nn.utils.clip_grad_norm_(learner.parameters(), config.optimiser.clip_norm)
    optimiser.step()
    if average is not learner:
        decay = min(config.optimiser.ema_decay, (1 + step) / (10 + step))
        with torch.no_grad():
            for mean, value in zip(average.parameters(), learner.parameters(), strict=True):
                mean.lerp_(value, 1 - decay)
    return {name: float(loss.detach()) for name, loss in losses.items()}


def new_learner(config: ActorTrainConfig, frames: FrameSet, tokenizer: Tokenizer) -> Learner:
    torch.manual_seed(config.seed)
    learner = Learner(config.actor.model, config.auxiliary, frames.targets_m)
    if config.continue_from is not None:
        path = Path(config.continue_from) / WEIGHTS_FILE
        load_into(learner.model, from_openpi(read_safetensors(path)), path)
        if isinstance(tokenizer, WordTokenizer):
            before = load_tokenizer(tokenizer_path(config.continue_from, config.actor)).vocab_size
            embed_new_words(learner.model.language_model, range(before, tokenizer.vocab_size), tokenizer.unknown_id)
    elif config.init_from is not None:
        load_into(learner.model, from_openpi(read_safetensors(config.init_from)), config.init_from)
    elif isinstance(tokenizer, WordTokenizer):
        generator = torch.Generator().manual_seed(config.seed)
        order_number_embeddings(learner.model.language_model, tokenizer.number_ids(), generator)
    return learner.to(config.device)


def prepare(run: Path, config: ActorTrainConfig, frames: FrameSet, fresh: bool) -> tuple[NormStats, Tokenizer]:
    """Statistics and tokenizer of the run: made from the training frames, taken over, or read back on resuming."""
    path = tokenizer_path(run, config.actor)
    if fresh:
        stats = _stats_to_start_from(config, frames)
        run.mkdir(parents=True, exist_ok=True)
        save_stats(run / STATS_FILE, stats)
        if config.continue_from is not None:
            path = run / path.name
            save_tokenizer(_known(config, frames), path)
        elif path.suffix == ".json":
            save_tokenizer(train_word_tokenizer(frames.prompts), path)
    return load_stats(run / STATS_FILE), load_tokenizer(path)


def _stats_to_start_from(config: ActorTrainConfig, frames: FrameSet) -> NormStats:
    """Raises ValueError for statistics of a checkpoint that are about another robot."""
    if config.continue_from is None or config.stats_from == "data":
        space = RobotSpace(config.actor)
        chunks = space.to_model(frames.chunks, frames.chunk_states)
        return NormStats(compute_quantiles(space.state(frames.states)), compute_quantiles(chunks))
    folder = Path(config.continue_from)
    stats, theirs = load_stats(folder / STATS_FILE), read_config(folder)
    stats.check(config.actor.state_dim, config.actor.action_dim, folder / STATS_FILE)
    for name in ("relative_to_state", "aloha_space"):
        ours, found = getattr(config.actor, name), getattr(theirs, name)
        if ours != found:
            raise ValueError(
                f"actor.{name} is {ours}, and {folder} was made with {found}, so that its statistics do not fit: say "
                f"{name}: {found}, or stats_from: data"
            )
    return stats


def _known(config: ActorTrainConfig, frames: FrameSet) -> Tokenizer:
    """The tokenizer of the weights to start from, with the words that they have not seen."""
    assert config.continue_from is not None
    tokenizer = load_tokenizer(tokenizer_path(config.continue_from, config.actor))
    return tokenizer.with_words(frames.prompts) if isinstance(tokenizer, WordTokenizer) else tokenizer


def previous_checkpoint(run: Path, config: ActorTrainConfig, resume: bool) -> Checkpoint | None:
    path = run / CHECKPOINT_FILE
    if not path.is_file():
        return None
    if not resume:
        raise ValueError(f"{run} already holds a run: pass --resume to go on with it, or choose another --out")
    checkpoint = load_checkpoint(path)
    before, now = in_todays_words(ActorTrainConfig, checkpoint.config), to_dict(config)
    for name in now:
        if name not in _MAY_CHANGE and json.dumps(before.get(name)) != json.dumps(now[name]):
            raise ValueError(f"{run} was trained with {name} = {before.get(name)}, the config says {now[name]}")
    if checkpoint.episodes != _digest(config):
        raise ValueError(f"the episodes under {config.episodes} are not those that {run} was trained on")
    return checkpoint


def _save(
    run: Path,
    config: ActorTrainConfig,
    step: int,
    learner: Learner,
    average: Learner,
    optimiser: torch.optim.Optimizer,
) -> None:
    checkpoint = Checkpoint(
        step=step,
        learner=learner.state_dict(),
        average=average.state_dict(),
        optimiser=optimiser.state_dict(),
        config=to_dict(config),
        episodes=_digest(config),
    )
    save_checkpoint(run / CHECKPOINT_FILE, checkpoint)


def _digest(config: ActorTrainConfig) -> str:
    roots = [Path(folder) for folder in (config.episodes, *config.more_episodes)]
    names = "\n".join(str(path.relative_to(root)) for root in roots for path in list_episodes(root))
    return hashlib.sha256(names.encode()).hexdigest()


def _summarise(
    run: Path,
    config: ActorTrainConfig,
    average: Learner,
    train_frames: FrameSet,
    val_frames: FrameSet,
    figures: dict[str, float],
    seconds: float,
) -> None:
    summary: dict[str, Any] = {
        "config": to_dict(config),
        "parameters": sum(p.numel() for p in average.model.parameters()),
        "training_episodes": len(train_frames.episodes),
        "validation_episodes": len(val_frames.episodes),
        "validation": figures,
        "seconds": round(seconds, 1),
    }
    (run / SUMMARY_FILE).write_text(json.dumps(summary, indent=1) + "\n")


class _Log:
    """Writes JSON lines with mean losses and validation figures. Resuming drops the lines of later steps."""

    def __init__(self, path: Path, start: int) -> None:
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        rows = [row for row in rows if row["step"] <= start]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._path = path
        self._before = max((row.get("seconds", 0.0) for row in rows), default=0.0)
        self._began = time.monotonic()
        self._sums: dict[str, list[float]] = {}

    @property
    def seconds(self) -> float:
        """Training time, over all the parts of an interrupted run."""
        return self._before + time.monotonic() - self._began

    def add(self, losses: dict[str, float]) -> None:
        for name, value in losses.items():
            self._sums.setdefault(name, []).append(value)

    def write(self, step: int, learning_rate: float) -> dict[str, float]:
        row = {"step": step, "seconds": round(self.seconds, 1), "learning_rate": learning_rate}
        row |= {name: float(np.mean(values)) for name, values in self._sums.items()}
        self._sums = {}
        self._append(row)
        return row

    def write_validation(self, step: int, figures: dict[str, float]) -> None:
        self._append({"step": step, **{f"val_{name}": value for name, value in figures.items()}})

    def _append(self, row: dict[str, float]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
