"""Counts how often single subtasks succeed in physics, done by an actor or by playing the labels themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.rollouts import MakePolicy
from datagen.actor_data.worker import ActorDataWorker, attempts_of
from predimem.core.seeds import refuse_training_seeds
from predimem.envs.arena.tasks import task_of
from predimem.jobs.tasks import Job


def play_skills(
    config: ActorDataConfig,
    first_seed: int,
    make_policy: MakePolicy | None = None,
    played: Callable[[dict[str, Any]], None] = lambda attempt: None,
) -> list[dict[str, Any]]:
    """`config.episodes` roll-outs of each of its tasks, from `first_seed` on; every attempt at a subtask as JSON data.

    make_policy: None replays label chunks, without noise, each open loop until the next look: the check that
    labels mean what they say. played: told of each attempt. Nothing is stored. Raises ValueError for training
    seeds.
    """
    refuse_training_seeds(first_seed, config.episodes, "skills")
    attempts: list[dict[str, Any]] = []
    with closing(ActorDataWorker(config, make_policy)) as worker:
        for key in config.tasks:
            task = task_of(key)
            for seed in range(first_seed, first_seed + config.episodes):
                rollout = worker.rollout(Job(task.name, seed), np.random.default_rng([seed, task.task_id]))
                for attempt in attempts_of(rollout):
                    attempts.append({"task": task.name, "seed": seed, **attempt})
                    played(attempts[-1])
    return attempts


def counts(attempts: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Kind of skill -> (successes, attempts): pick, open, close, and place by where to."""
    done: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for attempt in attempts:
        kind = kind_of(attempt)
        tried[kind] += 1
        done[kind] += attempt["done"]
    return {kind: (done[kind], tried[kind]) for kind in sorted(tried)}


def kind_of(attempt: dict[str, Any]) -> str:
    target = str(attempt["target"])
    where = "drawer" if "drawer" in target else target.split("_")[0]
    return "pick" if attempt["skill"] == "Move" else f"{attempt['skill'].lower()} {where}"
