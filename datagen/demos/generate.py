"""Generate the episodes of a config: on this machine or on Ray, going on where an earlier run stopped."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from datagen.demos.config import GenerationConfig
from predimem.core.config import to_dict
from predimem.core.episodes import episode_path
from predimem.envs.arena.task_file import SUFFIX
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.jobs.journal import Journal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome, Worker

MAY_DIFFER = ("out", "tasks", "episodes", "first_seed")  # none of them changes an episode


def generate(
    config: GenerationConfig, backend: BackendConfig | None = None, progress: bool = True, retry_errors: bool = False
) -> list[Outcome]:
    """Make what is not there yet below `config.out`; see `run_jobs` for deaths, errors and Ctrl-C.

    Raises ValueError for unknown tasks, and what the grasp detector and the decomposer raise where they
    cannot be had.
    """
    keys = config.tasks or tuple(task.name for task in TASKS)
    tasks = {task_of(key).name: key for key in keys}
    if len(tasks) < len(keys):
        raise ValueError(f"each task may be named once, in whatever way; got {', '.join(keys)}")
    files = {name: str(Path(key).resolve()) for name, key in tasks.items() if key.endswith(SUFFIX)}
    jobs = [Job(name, seed) for name in tasks for seed in config.seeds]
    out = Path(config.out)
    with Journal(
        out, to_dict(config), lambda job: episode_path(out, job.task, job.seed), may_differ=MAY_DIFFER
    ) as journal:
        return run_jobs(jobs, partial(make_worker, config, files), journal, backend, progress, retry_errors)


def make_worker(config: GenerationConfig, task_files: dict[str, str]) -> Worker:
    """Called in the process that the worker lives in: only there is the simulator loaded."""
    from datagen.demos.worker import ArenaWorker

    return ArenaWorker(config, task_files)
