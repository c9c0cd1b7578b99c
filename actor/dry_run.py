"""`predimem train actor --dry-run`: says what a training would do, after everything is checked that can be."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from actor.dataset import FrameSet, load_frame_sets
from actor.preprocess import Preprocessor
from actor.train import previous_run
from actor.training.batches import draw_flow
from actor.training.config import ActorTrainConfig
from actor.training.start import new_learner, prepare


def describe_training(config: ActorTrainConfig, resume: bool = False) -> str:
    """What `actor.train.train` would do, a line for each thing. The losses of one batch are computed, too.

    Nothing is written. Raises what the training would raise: ValueError if `out` holds a run already or the data cannot
    be used, and for weights to start from that are missing or do not fit.
    """
    run = Path(config.out)
    note = None if config.dagger.rounds else previous_run(run, config, resume)
    roots = (config.episodes, *config.more_episodes)
    training, validation = load_frame_sets(roots, config.actor, config.val_every, config.images_gb, config.hindsight)
    with tempfile.TemporaryDirectory() as scratch:
        stats, tokenizer = prepare(Path(scratch), config, training, fresh=True)
    learner = new_learner(config, training, tokenizer)
    preprocess = Preprocessor(config.actor, stats, tokenizer)
    batch = training.batch(np.random.default_rng([config.seed, 0]), config.sampling)
    flow = draw_flow(config, 0, len(batch.prompts))
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=config.precision != "float32")
    with torch.no_grad(), autocast:
        losses = learner(batch, preprocess, flow.noise, flow.time)
    start = 0 if note is None else note.step
    model, heads = _parameters(learner.model), _parameters(learner)
    lines = [
        f"data: {_count(training)} to train on, {_count(validation)} to validate with, from {', '.join(roots)}",
        f"model: {model / 1e6:.2f} million parameters, and {(heads - model) / 1e6:.2f} million of heads for training",
        f"starts from: {_start(config, start)}",
        f"steps: {config.steps - start} on {config.device}, a checkpoint every {config.checkpoint_every}",
        f"first batch: {', '.join(f'{name} {float(loss):.3f}' for name, loss in losses.items())}",
    ]
    if config.dagger.rounds:
        lines.append(f"then: {config.dagger.rounds} rounds of DAgger with {config.dagger.steps} steps each")
    lines.append(f"out: {run}")
    return "\n".join(lines)


def _count(frames: FrameSet) -> str:
    return f"{len(frames.episodes)} episodes of {len(frames.states)} frames"


def _parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _start(config: ActorTrainConfig, start: int) -> str:
    if start:
        return f"the checkpoint of step {start} in {config.out}"
    return config.continue_from or config.init_from or "weights drawn at random"
