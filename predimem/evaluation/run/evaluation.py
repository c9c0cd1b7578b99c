"""`predimem eval`: plays every episode of an evaluation, whatever happens, and writes down what came out.

It writes `episodes.jsonl` (the journal that an interrupted run resumes from), `traces/` and `videos/` into the output
folder, and at the end `results.json`, `compact.json` (see `compact`), `report.html` and, for a benchmark with
categories, `table.md`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from predimem.core.faults import SetupError
from predimem.core.files import check_folder, write_text
from predimem.core.progress import Bar, stage, watched
from predimem.core.seeds import EVALUATION_SEEDS_FROM, refuse_training_seeds
from predimem.envs.benchmark import load_benchmark
from predimem.evaluation.analysis.categories import Categories, format_categories, markdown_table, summarise_categories
from predimem.evaluation.analysis.compact import compact_json
from predimem.evaluation.analysis.diagnosis import diagnose, format_diagnosis
from predimem.evaluation.analysis.studies import StudyConfig, draw_studies
from predimem.evaluation.report.clips import choose_clips, read_clip
from predimem.evaluation.report.episodes import load_traces
from predimem.evaluation.report.report import write_report
from predimem.evaluation.report.summary import compare, means_note, summarise, summarise_means
from predimem.evaluation.report.video import Film
from predimem.evaluation.run.jobs import EpisodeJob, EpisodeRecord, EvaluationError, Player, WorkerPool
from predimem.evaluation.run.journal import EvaluationJournal
from predimem.evaluation.run.machine import machine, revision
from predimem.evaluation.run.migrations import SCHEMA

__all__ = ["EvaluationConfig", "EvaluationError", "Player", "errors_alone", "format_table", "run_evaluation"]


@dataclass(frozen=True)
class EvaluationConfig:
    """What to play: for each task and agent, the seeds seed_start ... seed_start + episodes - 1.

    None of the seeds may be a training seed.

    out: the folder for everything that is written
    workers: how many processes play side by side
    videos_per_task: how many first episodes of each task and agent are filmed, as `film` says
    traces_per_task: for how many of them the record of every control step is kept; None: for all
    clips_per_cause: how many failed episodes of each agent and cause get a clip of the seconds around the failure
    episode_timeout_s: a worker that plays one episode for so long is stopped, and the episode is an error; the first
        episode of a task includes building its environment
    overwrite: throw away what `out` holds
    retry_errors: on resuming, play those episodes again that ended in an error (never those that failed)
    references: agent -> the agent that it is compared with on the same seeds; without one, the first agent
    notes: agent -> what it is, for the report
    horizons: task -> its control steps; the longest tasks are played first, so that no worker is left with one at the
        end
    studies: agents that are drawn against what they differ in
    """

    benchmark: str
    tasks: tuple[str, ...]
    agents: tuple[str, ...]
    episodes: int = 100
    seed_start: int = EVALUATION_SEEDS_FROM
    out: str = "runs/eval"
    workers: int = 1
    videos_per_task: int = 2
    film: Film = field(default_factory=Film)
    traces_per_task: int | None = None
    clips_per_cause: int = 0
    episode_timeout_s: float = 1800.0
    overwrite: bool = False
    retry_errors: bool = False
    references: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    studies: dict[str, StudyConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("tasks", "agents"):
            values = getattr(self, name)
            if isinstance(values, str) or not values or len(set(values)) != len(values):
                raise ValueError(f"{name}: expected one or more different names, got {values!r}")
        leasts = {"episodes": 1, "workers": 1, "videos_per_task": 0, "clips_per_cause": 0, "seed_start": 0}
        for name, least in leasts.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        refuse_training_seeds(self.seed_start, self.episodes, "seed_start")
        if self.episode_timeout_s <= 0:
            raise ValueError(f"episode_timeout_s: expected more than 0, got {self.episode_timeout_s}")


def run_evaluation(
    config: EvaluationConfig, make_player: Callable[[], Player], categories: Categories | None = None
) -> dict[str, Any]:
    """Play what is not in the journal yet, write results.json and report.html, print and return the results.

    After Ctrl-C (KeyboardInterrupt) the same call goes on with the episodes that are missing.

    make_player: each worker process builds its own player with it, once; it must be picklable
    categories: category -> tasks, where the benchmark groups its tasks; they get figures and a table of their own

    Raises EvaluationError if a player cannot be built, or if `out` holds another evaluation's episodes. Faults of the
    set-up (`predimem.core.faults`) are raised as SetupError or OSError; they are no outcome of the episode that met
    them, and the same call goes on with it. Models are loaded before the first environment is made.
    """
    out = Path(config.out)
    check_folder(out)
    jobs = plan_jobs(config)
    pool = WorkerPool(make_player, out, config.workers, config.episode_timeout_s)
    try:
        with stage("starting the first worker"):
            provenance = pool.start()
        common = {name: value for name, value in provenance.items() if name != "agent_configs"}
        identity = {"benchmark": load_benchmark(config.benchmark).name, "provenance": common}
        with EvaluationJournal(out, identity, config.overwrite, provenance.get("agent_configs")) as journal:
            _play_missing(config, pool, jobs, journal)
            _film_failures(config, pool, [journal.records[job.key] for job in jobs])
    except BaseException:
        pool.close(kill=True)
        raise
    pool.close()
    results = _results(config, jobs, journal, provenance)
    if len(config.agents) > 1:
        played = [journal.records[job.key] for job in jobs]
        results["comparisons"] = compare(played, config.tasks, config.agents, config.references, categories)
    if categories:
        played = [journal.records[job.key] for job in jobs]
        results["categories"] = summarise_categories(played, config.agents, config.tasks, categories)
    results["diagnosis"] = diagnose([journal.records[job.key] for job in jobs], config.agents)
    write_text(out / "results.json", json.dumps(results, indent=1, ensure_ascii=False))
    if categories:
        write_text(out / "table.md", markdown_table(results))
    write_text(out / "compact.json", compact_json(results))
    studies = draw_studies(results, config.studies, out)
    report = write_report(results, load_traces(results, out), out, studies)
    print("\n\n".join(part for part in ("", format_table(results), format_diagnosis(results["diagnosis"])) if part))
    print(f"\nreport: {report}")
    return results


def plan_jobs(config: EvaluationConfig) -> list[EpisodeJob]:
    """Every episode of the evaluation, in the order of the results."""
    return [
        EpisodeJob(
            task,
            config.seed_start + i,
            agent,
            film=config.film if i < config.videos_per_task else None,
            trace=config.traces_per_task is None or i < config.traces_per_task,
        )
        for task in config.tasks
        for agent in config.agents
        for i in range(config.episodes)
    ]


def errors_alone(results: dict[str, Any]) -> str:
    """What to tell of agents all of whose episodes ended in an error; "" where there are none."""
    agents = [agent for agent, mean in results["mean"].items() if mean["errors"] and not mean["n"]]
    first = next((record for record in results["episodes"] if record["agent"] in agents), None)
    if first is None:
        return ""
    reason = (first["message"] or "no message").splitlines()[0]
    return (
        f"every episode of {', '.join(agents)} ended in an error, the first one {first['task']} seed {first['seed']}: "
        f"{reason}; when that is mended, the same command with --retry-errors plays them again"
    )


def format_table(results: dict[str, Any]) -> str:
    """The success table for a terminal, beside the best published figure of each task."""
    if "categories" in results:
        return format_categories(results)
    agents = results["config"]["agents"]
    header = ["task", *agents, "best published"]
    lines = [header]
    for task, cells in results["results"].items():
        best = results["published"]["tasks"][task]
        published = f"{best[0]['success']:.2f}  {best[0]['method']}" if best else "-"
        lines.append([task, *(_cell(cells[agent]) for agent in agents), published])
    if len(results["results"]) > 1:
        lines.append(["mean", *(_cell(results["mean"][agent]) for agent in agents), ""])
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    rows = ["  ".join(line).rstrip() for line in padded]
    rows.insert(1, "  ".join("-" * width for width in widths))
    notes = ["success [95 % interval by Wilson] over n episodes; errors are not counted in n"]
    if len(results["results"]) > 1:
        notes.append(means_note(results))
    errors = sum(mean["errors"] for mean in results["mean"].values())
    if errors:
        notes.append(f"{errors} episodes ended in an error and are in no rate: see the report")
    return "\n".join([*rows, *notes])


def _cell(figures: dict[str, Any]) -> str:
    if figures["success"] is None:
        return f"- ({figures['errors']} errors)"
    errors = f" +{figures['errors']} errors" if figures["errors"] else ""
    interval = f"[{figures['ci_low']:.2f}, {figures['ci_high']:.2f}]"
    return f"{figures['success']:.2f} {interval} n={figures['n']}{errors}"


def _film_failures(config: EvaluationConfig, pool: WorkerPool, records: Sequence[EpisodeRecord]) -> None:
    """Film what is not filmed yet of the failures that the report shows."""
    chosen = list(choose_clips(records, config.clips_per_cause))
    jobs = [EpisodeJob(c.task, c.seed, c.agent, clip=c) for c in chosen if read_clip(c, Path(config.out)) is None]
    if not jobs:
        return
    for done in watched(pool.play(jobs), len(jobs), "clips", at_once=config.workers):
        if done.get("message"):
            first = done["message"].splitlines()[0]
            print(f"no clip: {done['task']} {done['agent']} seed {done['seed']}: {first}")


def _is_missing(record: EpisodeRecord | None, retry_errors: bool) -> bool:
    return record is None or (retry_errors and record["status"] == "error")


def _play_missing(
    config: EvaluationConfig, pool: WorkerPool, jobs: Sequence[EpisodeJob], journal: EvaluationJournal
) -> None:
    missing = [job for job in jobs if _is_missing(journal.records.get(job.key), config.retry_errors)]
    if not missing:
        return
    keys = {job.key for job in missing}
    finished = [journal.records[job.key] for job in jobs if job.key not in keys]
    played = f"of {len(jobs)} episodes played"
    began_s: float | None = None
    try:
        pool.load(tuple(dict.fromkeys(job.agent for job in missing)))
        commit, dirty = revision()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        journal.begin({"started": started, "revision": commit, "dirty": dirty, "machine": machine()})
        began_s = time.monotonic()
        _play(pool, missing, finished, journal, config.horizons)
    except KeyboardInterrupt:
        print(f"\ninterrupted: {len(finished)} {played}; the same command goes on")
        raise
    except (SetupError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = config.out
        print(f"\nstopped: {len(finished)} {played}; when the fault is mended, the same command goes on")
        raise
    finally:
        if began_s is not None:
            journal.note_seconds(time.monotonic() - began_s)


def _play(
    pool: WorkerPool,
    missing: Sequence[EpisodeJob],
    finished: list[EpisodeRecord],
    journal: EvaluationJournal,
    horizons: Mapping[str, int],
) -> None:
    """Play what is missing, appending to `finished` and to the journal as the episodes end."""
    total = len(finished) + len(missing)
    with Bar(total, "episodes", done=len(finished), at_once=pool.size) as bar:
        bar.show(_running(finished))
        for record in pool.play(sorted(missing, key=lambda job: -horizons.get(job.task, 0))):
            journal.add(record)
            finished.append(record)
            if record["status"] == "error":
                first = (record["message"] or "no message").splitlines()[0]
                bar.note(f"error: {record['task']} {record['agent']} seed {record['seed']}: {first}")
            bar.add(text=_running(finished))


def _running(records: Sequence[EpisodeRecord]) -> str:
    """Success so far, for each agent: "predimem 9/10"."""
    counts: dict[str, list[bool]] = {}
    for record in records:
        if record["status"] != "error":
            counts.setdefault(record["agent"], []).append(record["status"] == "success")
    return "  ".join(f"{agent} {sum(c)}/{len(c)}" for agent, c in counts.items())


def _results(
    config: EvaluationConfig,
    jobs: Sequence[EpisodeJob],
    journal: EvaluationJournal,
    provenance: dict[str, Any],
) -> dict[str, Any]:
    records = [journal.records[job.key] for job in jobs]
    table = {
        task: {
            agent: summarise([r for r in records if r["task"] == task and r["agent"] == agent])
            for agent in config.agents
        }
        for task in config.tasks
    }
    last = journal.runs[-1]
    drop = ("s1_ms", "s2_ms", "plan_ages", "planner")  # in the journal; here they are summed up
    return {
        "schema": SCHEMA,
        "benchmark": load_benchmark(config.benchmark).name,
        "benchmark_version": provenance.get("benchmark_version"),
        "revision": last["revision"],
        "dirty": last["dirty"],
        "revisions": sorted({run["revision"] for run in journal.runs if run["revision"]}),
        "machine": last["machine"],
        "config": asdict(config) | {"tasks": list(config.tasks), "agents": list(config.agents)},
        "provenance": provenance,
        "started": journal.runs[0]["started"],
        "wall_s": round(journal.seconds, 1),
        "results": table,
        "mean": summarise_means(records, config.agents, config.tasks),
        "comparisons": None,
        "published": _published(config),
        "episodes": [{k: v for k, v in record.items() if k not in drop} for record in records],
    }


def _published(config: EvaluationConfig) -> dict[str, Any]:
    """The published figures to stand beside these, as JSON data."""
    benchmark = load_benchmark(config.benchmark)
    return {
        "tasks": {task: [asdict(figure) for figure in benchmark.published(task)] for task in config.tasks},
        "note": benchmark.published_note(),
        "means": asdict(benchmark.published_means()),
    }
