"""The episodes of an evaluation as jobs for worker processes.

When a worker dies while playing (a segmentation fault in the simulator, the kernel's out-of-memory
killer), that episode is an `error` and another worker takes its place.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from predimem.agent.recording import TraceRecorder
from predimem.core.faults import SetupError, setup_fault
from predimem.core.files import check_folder, write_json
from predimem.core.interfaces import Subscriber
from predimem.core.types import EpisodeResult
from predimem.evaluation.report.clips import Clip, film_clip
from predimem.evaluation.report.episode_log import LogRecorder
from predimem.evaluation.report.thumbnails import KeyframeThumbnails
from predimem.evaluation.report.ticks import TickStatistics
from predimem.evaluation.report.video import Film, VideoRecorder
from predimem.evaluation.run.fingerprint import TrajectoryFingerprint
from predimem.evaluation.run.player import Player
from predimem.evaluation.run.review import NO_REVIEW, review
from predimem.jobs.pool import JobQueue, Pool, Reply, WorkerError
from predimem.jobs.processes import LOG, Processes
from predimem.jobs.tasks import Job

EpisodeRecord = dict[str, Any]  # what is kept of one episode, as JSON data


class EvaluationError(ValueError):
    """The evaluation cannot go on or cannot be trusted; says why and how to mend it."""


@dataclass(frozen=True)
class EpisodeJob(Job):
    """One episode to play, and by whom.

    film: also write its video and the thumbnails of its keyframes
    trace: also write its trace
    clip: play it once more, only to film these steps of it
    """

    agent: str
    film: Film | None = None
    trace: bool = True
    clip: Clip | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.agent, self.seed

    def file(self, folder: str, suffix: str) -> str:
        """Where something of this episode is kept, relative to the evaluation's folder."""
        return f"{folder}/{self.task}/{self.agent}/seed{self.seed:010d}{suffix}"


@dataclass(frozen=True)
class LoadJob:
    """Load all that these agents are made of, once, before anything is simulated."""

    agents: tuple[str, ...]
    task: str = ""


def play_job(player: Player, job: EpisodeJob, out: Path) -> EpisodeRecord:
    """Play one episode, write its trace and its video under `out`, and sum it up as plain data.

    Raises what is behind a fault of the set-up, which is no outcome of the episode.
    """
    recorder, statistics, thumbnails = TraceRecorder(), TickStatistics(), KeyframeThumbnails()
    trajectory = TrajectoryFingerprint()
    log = LogRecorder()
    subscribers: list[Subscriber] = [statistics, trajectory, log]
    if job.trace:
        subscribers.append(recorder)
    video = None
    if job.film is not None:
        video = job.file("videos", ".mp4")
        title = f"{job.task}   agent {job.agent}   seed {job.seed}"
        subscribers += [thumbnails, VideoRecorder(out / video, job.film, title=title)]
    began_s = time.perf_counter()
    try:
        result = player.play(job.task, job.agent, job.seed, subscribers)
    except Exception as error:
        if setup_fault(error) is not None:
            raise
        message = f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"
        result = EpisodeResult(job.task, job.agent, job.seed, "error", 0, message=message)
    reviewed = review(log, result, player.true_keyframes)
    trace = job.file("traces", ".json") if job.trace else None
    if trace is not None:
        data = {"task": job.task, "agent": job.agent, "seed": job.seed} | recorder.trace
        write_json(out / trace, data | {"mistake": reviewed["mistake"], "thumbnails": thumbnails.as_json()})
    if video is not None and not (out / video).is_file():
        video = None  # the episode crashed before its first step
    files = {"trace": trace, "video": video}
    measured = {"changed": log.log.changed, "trajectory": trajectory.value, "wall_s": time.perf_counter() - began_s}
    return episode_record(result) | statistics.numbers | reviewed | measured | files


def episode_record(result: EpisodeResult) -> EpisodeRecord:
    """The result as the beginning of a record: numbers that JSON does not have (NaN, infinity) become None."""
    return {
        "task": result.task,
        "agent": result.agent,
        "seed": result.seed,
        "status": result.status,
        "steps": result.steps,
        "stages_passed": result.stages_passed,
        "stages_total": result.stages_total,
        "message": result.message,
        "metrics": {name: x if math.isfinite(x) else None for name, x in result.metrics.items()},
    }


class WorkerPool:
    """Plays jobs in up to `size` processes. `start` before `play`; `close` when done."""

    def __init__(self, make_player: Callable[[], Player], out: Path, size: int, timeout_s: float):
        self._out = out
        self.size = size
        self._pool = Pool(Processes(partial(_EpisodeHandler, make_player, out), out), size, timeout_s)

    def start(self) -> dict[str, Any]:
        """Start the first worker, and return its player's provenance. Raises EvaluationError if it cannot be built."""
        try:
            return self._pool.start()
        except WorkerError as error:
            raise EvaluationError(str(error)) from error

    def load(self, agents: Sequence[str]) -> None:
        """Let the first worker load the models of these agents, which it plays with afterwards.

        Raises SetupError if they cannot be loaded, and EvaluationError if the worker fails otherwise.
        """
        for reply in self._pool.run(JobQueue([LoadJob(tuple(agents))])):
            if reply.kind != "done":
                raise EvaluationError(f"a worker failed while it loaded {', '.join(agents)} (see {LOG}): {reply.value}")

    def play(self, jobs: Sequence[EpisodeJob]) -> Iterator[EpisodeRecord]:
        """Yield one record for each job, in the order in which they end.

        Raises SetupError or OSError for a fault of the set-up, and EvaluationError if a worker cannot be built.
        """
        try:
            for reply in self._pool.run(JobQueue(jobs)):
                if reply.kind == "died":
                    check_folder(self._out)  # on a full disk that is no fault of the episode
                yield reply.value if reply.kind == "done" else _lost_record(reply)
        except WorkerError as error:
            raise EvaluationError(str(error)) from error

    def close(self, kill: bool = False) -> None:
        """End the workers; `kill` does not wait for the episodes being played."""
        self._pool.close(kill)


class _EpisodeHandler:
    """What a worker process does: it builds a player, and plays the jobs that it is sent."""

    def __init__(self, make_player: Callable[[], Player], out: Path):
        self._player = make_player()
        self._out = out

    def greeting(self) -> dict[str, Any]:
        return json.loads(json.dumps(self._player.provenance()))

    def do(self, job: EpisodeJob | LoadJob) -> EpisodeRecord | None:
        if isinstance(job, LoadJob):
            return self._load(job.agents)
        if job.clip is not None:
            return film_clip(self._player, job.clip, self._out)
        return play_job(self._player, job, self._out)

    def close(self) -> None:
        self._player.close()

    def _load(self, agents: Sequence[str]) -> None:
        try:
            self._player.load(agents)
        except ValueError as error:  # whatever is wrong before the first episode is to be mended first
            raise SetupError(str(error)) from error


def _lost_record(reply: Reply[EpisodeJob]) -> EpisodeRecord:
    """The record of an episode that gave none: its worker died, or could not write what it had played."""
    message = str(reply.value)
    if reply.kind == "died":
        message = f"the worker process {message} while it played this episode (see {LOG})"
    result = EpisodeResult(reply.job.task, reply.job.agent, reply.job.seed, "error", 0, message=message)
    files = {"trace": None, "video": None}
    unmeasured = {"changed": None, "trajectory": None, "wall_s": None}
    return episode_record(result) | TickStatistics().numbers | NO_REVIEW | unmeasured | files
