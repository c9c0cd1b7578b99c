"""The actor's rounds of DAgger in the arena: the memoryless expert labels what the actor of the last round meets."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from actor.policy import load_policy
from actor.rounds import train_rounds
from actor.training.config import ActorTrainConfig, DaggerConfig
from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.worker import ActorDataWorker
from datagen.generation import run_generation
from predimem.core.config import load_config
from predimem.jobs.runner import BackendConfig


def train_actor_rounds(recipe: ActorTrainConfig, workers: int) -> Path:
    """Trains, plays, and trains on, as `recipe.dagger` says; the last round's weights folder.

    workers: processes of simulators. Raises what `actor.rounds.train_rounds` and `run_generation` raise.
    """
    data = load_config(ActorDataConfig, recipe.dagger.data)

    def collect(weights: Path | None, out: Path, number: int) -> None:
        make_policy = functools.partial(load_policy, weights) if weights else None
        worker = functools.partial(ActorDataWorker, make_policy=make_policy)
        run_generation(rollouts_of(data, recipe.dagger, number, out), worker, BackendConfig(workers), retry_errors=True)

    return train_rounds(recipe, collect)


def rollouts_of(data: ActorDataConfig, dagger: DaggerConfig, number: int, out: Path) -> ActorDataConfig:
    """What is played before the training of round `number`: by the actor that is trained, whoever `data` names."""
    seeds = dagger.seeds(number)
    return replace(
        data,
        sampling="rollouts",
        policy=None,
        expert_share=0.0,
        expert_labels=("*",),
        out=str(out),
        episodes=len(seeds),
        first_seed=seeds.start,
        chain_share=dagger.chain_share,
    )
