"""What a training begins with: statistics, tokenizer and weights."""

from __future__ import annotations

from pathlib import Path

import torch

from actor.dataset import FrameSet
from actor.learner import Learner, embed_new_words, order_number_embeddings
from actor.names import from_openpi
from actor.normalize import NormStats, compute_quantiles, load_stats, save_stats
from actor.robot_space import RobotSpace
from actor.tokenizer import Tokenizer, WordTokenizer, load_tokenizer, save_tokenizer, train_word_tokenizer
from actor.training.config import ActorTrainConfig
from actor.training.parts import shape_model
from actor.weights import STATS_FILE, WEIGHTS_FILE, load_into, read_config, read_safetensors, tokenizer_path


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


def new_learner(config: ActorTrainConfig, frames: FrameSet, tokenizer: Tokenizer) -> Learner:
    """On the CPU, with everything frozen that is not trained."""
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
    shape_model(learner.model, config)
    return learner


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
