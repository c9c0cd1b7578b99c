"""Make the episodes of a config of practice: on this machine or on Ray, going on where an earlier run stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from datagen.dagger.config import PracticeConfig
from datagen.dagger.runtime import Runtime
from predimem.core.config import to_dict
from predimem.core.episodes import episode_path
from predimem.envs.arena.task_file import SUFFIX
from predimem.envs.arena.tasks import TASKS, task_of
from predimem.jobs.journal import Journal
from predimem.jobs.runner import BackendConfig, run_jobs
from predimem.jobs.tasks import Job, Outcome, Worker

MAY_DIFFER = ("out", "tasks", "episodes", "first_seed")  # none of them changes an episode


def practise(
    config: PracticeConfig,
    runtime: Runtime,
    backend: BackendConfig | None = None,
    progress: bool = True,
    retry_errors: bool = False,
) -> list[Outcome]:
    """Make what is not there yet below `config.out`; see `run_jobs` for deaths, errors and Ctrl-C.

    Raises ValueError for unknown tasks.
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
        return run_jobs(jobs, partial(make_worker, config, files, runtime), journal, backend, progress, retry_errors)


def make_worker(config: PracticeConfig, task_files: dict[str, str], runtime: Runtime) -> Worker:
    """Called in the process that the worker lives in: only there is the simulator loaded."""
    from datagen.dagger.worker import PracticeWorker

    return PracticeWorker(config, task_files, runtime)


def practice_summary(outcomes: Sequence[Outcome], out: str | Path) -> str:
    """How the episodes ended, in a few lines for the terminal."""
    kept = [outcome for outcome in outcomes if outcome.kept]
    steps, seconds = sum(o.steps for o in kept), sum(o.seconds for o in kept)
    lines = [f"{len(kept)} of {len(outcomes)} episodes in {out}: {steps} control steps in {seconds:.0f} s of workers"]
    ends = Counter(outcome.report.get("ended", "?") for outcome in kept)
    return "\n".join([*lines, *(f"  {count:5d}  {end}" for end, count in ends.most_common())])
