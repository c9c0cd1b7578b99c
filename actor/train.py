"""Training the actor: `predimem train actor --config configs/actor/tiny.yaml`.

Every batch and every noise sample is a function of (seed, step) alone: a run that was interrupted
and resumed gives the same weights as one that was not.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from actor.dataset import Batch, FrameSet, load_frame_sets
from actor.normalize import load_stats
from actor.pi05 import Pi05
from actor.preprocess import Preprocessor
from actor.tokenizer import load_tokenizer
from actor.training.average import Average
from actor.training.batches import FlowDraw, check_parts, read_ahead
from actor.training.checkpoint import Note, load_checkpoint, read_note, save_checkpoint
from actor.training.config import ActorTrainConfig
from actor.training.interruption import Interruption
from actor.training.log import LOG_FILE, Log, begin_tracking, end_tracking
from actor.training.parts import add_lora, merge_lora, mixed
from actor.training.processes import Trained, agree, make_accelerator
from actor.training.start import new_learner, prepare
from actor.weights import STATS_FILE, WEIGHTS_FILE, Actor, load_into, save_actor, tokenizer_path
from predimem.core.config import in_todays_words, to_dict
from predimem.core.episode_folder import list_episodes
from predimem.core.progress import Bar

SUMMARY_FILE = "summary.json"
_FOLDERS = ("episodes", "more_episodes", "out")
_OUTPUT = ("checkpoint_every", "validate_every", "log_every", "save_optimiser", "trackers")
_MAY_CHANGE = (*_FOLDERS, *_OUTPUT, "threads", "images_gb", "compute")


def train(
    config: ActorTrainConfig,
    episodes: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Path:
    """Train to `config.steps` and export; returns the folder that `actor.policy.load_policy` reads.

    All processes that a launcher started have to call it; together they do what one would do.
    Ctrl-C finishes the step, writes a checkpoint and raises KeyboardInterrupt; `resume` goes on from
    it. Raises ValueError if `out` holds a run already and `resume` is not set, if the run there had
    another config or other episodes, or if the data cannot be used.
    """
    config = dataclasses.replace(config, episodes=str(episodes or config.episodes), out=str(out or config.out))
    run = Path(config.out)
    note = previous_run(run, config, resume)
    accelerator = make_accelerator(config, run)
    check_parts(config, accelerator.num_processes)
    roots = (config.episodes, *config.more_episodes)
    images_gb = config.images_gb / accelerator.num_processes
    train_frames, val_frames = load_frame_sets(roots, config.actor, config.val_every, images_gb, config.hindsight)
    with accelerator.main_process_first():
        stats, tokenizer = prepare(run, config, train_frames, fresh=note is None and accelerator.is_main_process)
    preprocess = Preprocessor(config.actor, stats, tokenizer)
    learner = new_learner(config, train_frames, tokenizer)
    begun = {name: value.clone() for name, value in learner.model.state_dict().items()} if config.start_share else {}
    trained = Trained(learner, config, accelerator)
    average = Average(trained.learner, config.optimiser.ema_decay)
    optimiser = torch.optim.AdamW(
        trained.parameters(),
        lr=config.optimiser.learning_rate,
        weight_decay=config.optimiser.weight_decay,
        betas=(config.optimiser.betas[0], config.optimiser.betas[1]),
    )
    start = 0 if note is None else note.step
    if note is not None:
        load_checkpoint(run, note, trained.learner, average, optimiser)
    begin_tracking(accelerator, to_dict(config))
    log = Log(run / LOG_FILE, start, accelerator)
    batches = read_ahead(train_frames, config, start, accelerator.process_index, accelerator.num_processes)
    figures: dict[str, float] = {}
    shown = progress and accelerator.is_main_process
    with Interruption() as interruption, Bar(config.steps, "steps", "training", start, shown=shown) as bar:
        for step in range(start, config.steps):
            losses = _step(trained, optimiser, batches, preprocess, config, step)
            average.update(step)
            log.add(losses)
            bar.add()
            done = step + 1
            interrupted = agree(accelerator, interruption.requested)
            last = done == config.steps or interrupted
            if done % config.log_every == 0 or last:
                row = log.write(done, optimiser.param_groups[0]["lr"])
                bar.show(", ".join(f"{name} {value:.3f}" for name, value in row.items() if name in losses))
            if done % config.validate_every == 0 or done == config.steps:
                with average.in_place():
                    figures = trained.validate(val_frames, preprocess, config.sampling, config.actor.num_steps)
                log.write_validation(done, figures)
                bar.note(f"step {done}: " + ", ".join(f"{k} {v:.4f}" for k, v in figures.items()))
            if done % config.checkpoint_every == 0 or last:
                note = Note(done, to_dict(config), _digest(config), config.save_optimiser)
                save_checkpoint(run, note, trained.learner, average, optimiser, accelerator)
            if interrupted and done < config.steps:
                raise KeyboardInterrupt(f"stopped after step {done}, of which {run} has a checkpoint")
    with average.in_place():  # on a CPU, the weights that are exported are those of the module itself
        if not figures:  # it was resumed behind its last step, such as after an export that was interrupted
            figures = trained.validate(val_frames, preprocess, config.sampling, config.actor.num_steps)
        weights = trained.whole_model()
        if accelerator.is_main_process:
            _export(run, config, mixed(weights, begun, config.start_share))
            _summarise(run, config, train_frames, val_frames, figures, log.seconds, weights, accelerator.num_processes)
    end_tracking(accelerator)
    accelerator.wait_for_everyone()
    return run / "weights"


def _step(
    trained: Trained,
    optimiser: torch.optim.Optimizer,
    batches: Iterator[tuple[Batch, FlowDraw]],
    preprocess: Preprocessor,
    config: ActorTrainConfig,
    step: int,
) -> dict[str, Tensor]:
    """One step of the optimiser; the mean losses over this process's parts of the batch."""
    for group in optimiser.param_groups:
        group["lr"] = config.optimiser.learning_rate_at(step, config.steps)
    optimiser.zero_grad(set_to_none=True)
    parts = config.compute.accumulation
    means: dict[str, Tensor] = {}
    for part in range(parts):
        batch, flow = next(batches)
        with trained.adding_up(last=part == parts - 1):
            losses = trained(batch, preprocess, flow.noise, flow.time, flow.delay)
            trained.backward(losses, parts)
        for name, loss in losses.items():
            part_of_mean = loss.detach() / parts
            means[name] = means[name] + part_of_mean if name in means else part_of_mean
    torch.nn.utils.clip_grad_norm_(trained.parameters(), config.optimiser.clip_norm)
    optimiser.step()
    return means


def _export(run: Path, config: ActorTrainConfig, weights: dict[str, Tensor]) -> None:
    """Write the weights folder: float16, adapters merged, no training heads."""
    model = Pi05(config.actor.model)
    add_lora(model, config.lora)
    load_into(model, weights, run)
    if config.lora.on:
        merge_lora(model)
    tokenizer = load_tokenizer(tokenizer_path(run, config.actor))
    save_actor(run / "weights", Actor(config.actor, model, load_stats(run / STATS_FILE), tokenizer))


def previous_run(run: Path, config: ActorTrainConfig, resume: bool) -> Note | None:
    """The note of its checkpoint, if there is one. Raises ValueError as `train`."""
    note = read_note(run)
    if note is None:
        return None
    if not resume:
        raise ValueError(f"{run} already holds a run: pass --resume to go on with it, or choose another --out")
    _check_config(run, note, config)
    if note.episodes != _digest(config):
        folders = ", ".join((config.episodes, *config.more_episodes))
        raise ValueError(f"the episodes under {folders} are not those that {run} was trained on")
    return note


def is_finished(run: Path, config: ActorTrainConfig) -> bool:
    """Whether `run` holds a training that has exported its weights. Raises ValueError if it had another config."""
    if not ((run / SUMMARY_FILE).is_file() and (run / "weights" / WEIGHTS_FILE).is_file()):
        return False
    if (note := read_note(run)) is not None:
        _check_config(run, note, config)
    return True


def _check_config(run: Path, note: Note, config: ActorTrainConfig) -> None:
    before, now = in_todays_words(ActorTrainConfig, note.config), to_dict(config)
    for name in now:
        if name not in _MAY_CHANGE and json.dumps(before.get(name)) != json.dumps(now[name]):
            raise ValueError(f"{run} was trained with {name} = {before.get(name)}, the config says {now[name]}")


def _digest(config: ActorTrainConfig) -> str:
    roots = [Path(folder) for folder in (config.episodes, *config.more_episodes)]
    names = "\n".join(str(path.relative_to(root)) for root in roots for path in list_episodes(root))
    return hashlib.sha256(names.encode()).hexdigest()


def _summarise(
    run: Path,
    config: ActorTrainConfig,
    train_frames: FrameSet,
    val_frames: FrameSet,
    figures: dict[str, float],
    seconds: float,
    weights: dict[str, Tensor],
    processes: int,
) -> None:
    summary: dict[str, Any] = {
        "config": to_dict(config),
        "parameters": sum(weight.numel() for name, weight in weights.items() if "lora_" not in name),
        "training_episodes": len(train_frames.episodes),
        "validation_episodes": len(val_frames.episodes),
        "validation": figures,
        "seconds": round(seconds, 1),
        "processes": processes,
    }
    (run / SUMMARY_FILE).write_text(json.dumps(summary, indent=1) + "\n")
