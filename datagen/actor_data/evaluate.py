"""Counts how often single subtasks succeed in physics, done by an actor or by playing the labels themselves."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from datagen.actor_data.config import ActorDataConfig
from datagen.actor_data.rollouts import MakePolicy
from datagen.actor_data.worker import ActorDataWorker, attempts_of
from predimem.core.config import to_dict
from predimem.core.jsonl import JsonLines
from predimem.core.progress import Bar
from predimem.core.seeds import refuse_training_seeds
from predimem.jobs.tasks import Job

_WORKERS: list[ActorDataWorker] = []  # that of this process


def play_skills(
    config: ActorDataConfig,
    first_seed: int,
    out: Path,
    make_policy: MakePolicy | None = None,
    actor: str = "labels",
    workers: int = 1,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """`config.episodes` roll-outs of each of its tasks, from `first_seed` on; every attempt at a subtask as JSON data.

    out: a file of JSON lines: what is played, then one line for each roll-out. A roll-out that is there is not played
    again, so that the same call goes on after Ctrl-C.
    make_policy: who acts, whatever policy the config names; None replays label chunks, without noise, each open loop
    until the next look: the check that labels mean what they say. actor: what tells its attempts from another's, such
    as the weights' hash.
    workers: processes of simulators.
    Raises ValueError for training seeds, and where `out` holds attempts of another actor or config.
    """
    refuse_training_seeds(first_seed, config.episodes, "skills")
    config = replace(config, policy=None, expert_share=0.0, expert_labels=("*",))
    ids = {name: task.task_id for name, task in config.tasks_by_name().items()}
    jobs = [Job(name, seed) for name in ids for seed in range(first_seed, first_seed + config.episodes)]
    settings = {k: v for k, v in to_dict(config).items() if k not in config.may_differ}
    told = json.loads(json.dumps({"actor": actor} | settings))  # as it comes back from the file
    with closing(JsonLines(out)) as lines:
        done = _played(lines, told, out)
        left = [job for job in jobs if job not in done]
        with Bar(len(jobs), "roll-outs", "skills", len(jobs) - len(left), at_once=workers, shown=progress) as bar:
            for job, attempts in _play_all(left, ids, config, make_policy, workers):
                lines.append({"task": job.task, "seed": job.seed, "attempts": attempts})
                done[job] = attempts
                bar.add()
    return [{"task": job.task, "seed": job.seed, **attempt} for job in jobs for attempt in done[job]]


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


def _played(lines: JsonLines, told: dict[str, Any], out: Path) -> dict[Job, list[dict[str, Any]]]:
    """The roll-outs of a file; its first line says what is played."""
    first, *rest = lines.read() or [told]
    if first != told:
        differ = (
            f"{k} {first.get(k)!r} instead of {told.get(k)!r}" for k in told | first if first.get(k) != told.get(k)
        )
        raise ValueError(f"{out} holds attempts with {', '.join(differ)}: give another --out")
    if not rest:
        lines.clear()
        lines.append(told)
    return {Job(line["task"], line["seed"]): line["attempts"] for line in rest}


def _play_all(
    jobs: Sequence[Job], ids: dict[str, int], config: ActorDataConfig, make_policy: MakePolicy | None, workers: int
) -> Iterator[tuple[Job, list[dict[str, Any]]]]:
    if not jobs:
        return
    spawn = multiprocessing.get_context("spawn")
    begin = partial(_begin, config.for_workers(), make_policy)
    with _interruptible(ProcessPoolExecutor(workers, mp_context=spawn, initializer=begin)) as pool:
        playing = {pool.submit(_play, job, ids[job.task]): job for job in jobs}
        for future in as_completed(playing):
            yield playing[future], future.result()


@contextmanager
def _interruptible(pool: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    """After an error or Ctrl-C nothing new is begun."""
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _begin(config: ActorDataConfig, make_policy: MakePolicy | None) -> None:
    _WORKERS.append(ActorDataWorker(config, make_policy))


def _play(job: Job, task_id: int) -> list[dict[str, Any]]:
    return attempts_of(_WORKERS[0].rollout(job, np.random.default_rng([job.seed, task_id])))
