"""Counts how often single subtasks succeed in physics, done by an actor or by playing the labels themselves."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
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
from predimem.jobs.pool import JobQueue, Pool, WorkerError
from predimem.jobs.processes import LOG, Processes
from predimem.jobs.tasks import Job

ATTEMPTS = 3  # that many workers may die while they play a roll-out
TIMEOUT_S = 4 * 3600.0  # a roll-out takes minutes, with a large actor on a CPU perhaps an hour


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
    workers: processes of simulators; what they print is in workers.log beside `out`.
    Raises ValueError for training seeds, and where `out` holds attempts of another actor or config. Raises WorkerError
    where a roll-out cannot be played, and SetupError or OSError for missing weights or a full disk; when that is
    mended, the same call goes on.
    """
    refuse_training_seeds(first_seed, config.episodes, "skills")
    config = replace(config, policy=None, expert_share=0.0, expert_labels=("*",))
    seeds = range(first_seed, first_seed + config.episodes)
    jobs = [Job(name, seed) for name in config.tasks_by_name() for seed in seeds]
    settings = {k: v for k, v in to_dict(config).items() if k not in config.may_differ}
    told = json.loads(json.dumps({"actor": actor} | settings))  # as it comes back from the file
    with closing(JsonLines(out)) as lines:
        done = _played(lines, told, out)
        left = [job for job in jobs if job not in done]
        with Bar(len(jobs), "roll-outs", "skills", len(jobs) - len(left), at_once=workers, shown=progress) as bar:
            for job, attempts in _play_all(left, config, make_policy, workers, out.parent):
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


class _Handler:
    """Plays roll-outs in a process of its own (`predimem.jobs.pool.JobHandler`)."""

    def __init__(self, config: ActorDataConfig, make_policy: MakePolicy | None):
        self._worker = ActorDataWorker(config, make_policy)
        self._ids = {name: task.task_id for name, task in config.tasks_by_name().items()}

    def greeting(self) -> None:
        return None

    def do(self, job: Job) -> list[dict[str, Any]]:
        return attempts_of(self._worker.rollout(job, np.random.default_rng([job.seed, self._ids[job.task]])))

    def close(self) -> None:
        self._worker.close()


def _play_all(
    jobs: Sequence[Job], config: ActorDataConfig, make_policy: MakePolicy | None, workers: int, logs: Path
) -> Iterator[tuple[Job, list[dict[str, Any]]]]:
    """Raises WorkerError where a roll-out ends in an exception, or its workers die again and again."""
    make_handler = partial(_Handler, config.for_workers(), make_policy)
    pool, queue = Pool(Processes(make_handler, logs), workers, TIMEOUT_S, ATTEMPTS), JobQueue(jobs)
    deaths: Counter[Job] = Counter()
    try:
        for reply in pool.run(queue):
            if reply.kind == "done":
                yield reply.job, reply.value
                continue
            deaths[reply.job] += 1
            if reply.kind == "raised":
                print(reply.value, file=sys.stderr)
                what = reply.value.splitlines()[0]
                raise WorkerError(f"{reply.job} ended in an error, which is no failure of the actor: {what}")
            if deaths[reply.job] == ATTEMPTS:
                hint = f"{logs / LOG} may say why"
                raise WorkerError(f"{reply.job}: {ATTEMPTS} workers died, the last one {reply.value}; {hint}")
            queue.put_back(reply.job)
    except BaseException:
        pool.close(kill=True)
        raise
    pool.close()
