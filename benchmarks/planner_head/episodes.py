"""Goes through held-out episodes with every trained planner, in processes, one line of a journal for each episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.planner_head.config import HeadStudy, Training
from benchmarks.planner_head.trainings import trained
from planner.split import split_episodes
from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode
from predimem.core.progress import Bar, stage
from predimem.core.weight_files import weights_hash
from predimem.evaluation.run.machine import machine, revision
from predimem.jobs.journal import Journal, JournalError
from predimem.jobs.pool import JobHandler, JobQueue, Pool, WorkerError
from predimem.jobs.processes import Processes

EPISODE_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class EpisodeJob:
    """One planner on one held-out episode.

    episode: the file.
    made_with: what the record depends on besides; a record that was made with something else is made anew.
    """

    training: Training
    episode: str
    made_with: dict[str, Any]

    @property
    def task(self) -> str:
        """Workers stay with a planner: loading another one takes time."""
        return self.training.name

    @property
    def key(self) -> tuple[str, str]:
        return self.training.name, self.episode


class Reader:
    """What a worker does with a job: made once in each process.

    It loads the planner of the job, unless it was that of the last one, and gives the record of the episode.
    """

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self._loaded: Training | None = None
        commit, dirty = revision()
        self._made = {"revision": commit, "dirty": dirty, "machine": machine()["cpu"]}

    def greeting(self) -> None:
        return None

    def do(self, job: EpisodeJob) -> dict[str, Any]:
        if job.training != self._loaded:
            self.load(job.training)
            self._loaded = job.training
        episode = load_episode(job.episode)
        about = {"training": job.training.name, "episode": job.episode, "task": episode.task, "seed": episode.seed}
        return {**about, "made_with": job.made_with, **self._made, **self.read(episode)}

    def load(self, training: Training) -> None:
        raise NotImplementedError

    def read(self, episode: Episode) -> dict[str, Any]:
        raise NotImplementedError

    def close(self) -> None:
        pass


class EpisodeJournal(Journal):
    """The records of one piece of the study, `out`/<piece>/episodes.jsonl; of an episode the last one counts."""

    name: ClassVar[str] = "episodes.jsonl"
    instead: ClassVar[str] = "use another --out"

    def __init__(self, out: str | Path):
        super().__init__(out)
        try:
            lines = self._file.read()
        except ValueError as error:
            self.close()
            raise JournalError(f"{error}: mend the file, or delete it to go through the episodes anew") from error
        self.records = {(line["training"], line["episode"]): line for line in lines}

    def add(self, record: dict[str, Any]) -> None:
        self.append(record)
        self.records[record["training"], record["episode"]] = record

    def has(self, job: EpisodeJob) -> bool:
        found = self.records.get(job.key)
        return found is not None and found["made_with"] == job.made_with


def held_out(study: HeadStudy) -> list[str]:
    """The files of the episodes that no training of the study sees. Raises ValueError where there is none."""
    config = study.train_config(study.trainings[0])
    folders = [config.episodes] if isinstance(config.episodes, str) else config.episodes
    files: dict[int, str] = {}
    episodes: list[Episode] = []
    with stage("looking for held-out episodes"):
        for path in (path for folder in dict.fromkeys(folders) for path in list_episodes(folder)):
            episodes.append(load_episode(path, verify=False))
            files[id(episodes[-1])] = str(path)
    _, left = split_episodes(episodes, config.dataset.validation_fraction)
    if not left:
        raise ValueError(
            f"no episode is held out of {len(episodes)}: raise dataset.validation_fraction in recipe_changes, which "
            f"is {config.dataset.validation_fraction}, or record more episodes of each task"
        )
    of_task: dict[str, list[str]] = {}
    for episode in left:
        of_task.setdefault(episode.task, []).append(files[id(episode)])
    return [file for its in of_task.values() for file in its[: study.held_out_per_task]]


def go_through(
    study: HeadStudy, piece: str, make_reader: Callable[[], JobHandler], settings: dict[str, Any], workers: int
) -> None:
    """Make the records of `piece` that are missing, of all planners that are trained.

    make_reader: picklable; settings: what its records depend on besides the planner, as JSON data.
    Raises ValueError if no planner is trained yet, and WorkerError if an episode cannot be read. After Ctrl-C the same
    call goes on.
    """
    trainings = trained(study)
    out = Path(study.out) / piece
    hashes = {training: weights_hash(study.weights / training.name) for training in trainings}
    files = held_out(study)
    jobs = [EpisodeJob(t, file, {"weights": hashes[t], **settings}) for t in trainings for file in files]
    with EpisodeJournal(out) as journal:
        _read_missing(jobs, journal, make_reader, workers, piece)


def _read_missing(
    jobs: Sequence[EpisodeJob], journal: EpisodeJournal, make_reader: Callable[[], JobHandler], workers: int, title: str
) -> None:
    missing = [job for job in jobs if not journal.has(job)]
    pool: Pool = Pool(Processes(make_reader, journal.out), workers, EPISODE_TIMEOUT_S)
    try:
        with Bar(len(jobs), "episodes", title, done=len(jobs) - len(missing), at_once=workers) as bar:
            for reply in pool.run(JobQueue(missing)):
                if reply.kind != "done":
                    raise WorkerError(f"{reply.job.task}, {reply.job.episode}: it {reply.kind}: {reply.value}")
                journal.add(reply.value)
                bar.add()
    except BaseException:
        pool.close(kill=True)
        raise
    pool.close()
