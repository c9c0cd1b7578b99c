"""Commands that play a benchmark and count successes: `eval`, and `harness` for the benchmark's own code."""

from __future__ import annotations

import functools
import sys
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predimem.cli.agents import played_by, warn_of_unseen
from predimem.cli.options import Agents, BenchmarkOption, Out, Tasks, Weights, check_out, split

if TYPE_CHECKING:
    from predimem.evaluation.report.video import Film
    from predimem.evaluation.run.config import EvaluationFile


def evaluate(
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file that says what to play, see configs/eval/; the options below override it."),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Names of tasks, or task files, comma-separated; default: all (of mikasa, name some)."),
    ] = None,
    benchmark: BenchmarkOption = None,
    condition: Annotated[
        str | None,
        typer.Option(
            "--condition",
            "--conditions",
            help="Conditions that the tasks are played in, comma-separated: of arena plain,camera or the like; of "
            "interference k0,k7 or the like, where --tasks then names families.",
        ),
    ] = None,
    difficulty: Annotated[
        str | None,
        typer.Option(help="How hard the tasks are; of arena: `standard` (the 26 tasks) or `long` (12 to 16 stages)."),
    ] = None,
    agents: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "--agents",
            help="Names of agents, comma-separated; default: predimem, with --config all of the file.",
        ),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="How many episodes to play of each task with each agent; default: 100.")
    ] = None,
    seed_start: Annotated[
        int | None, typer.Option(help="Seed of the first episode; all agents play the same seeds.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Folder for everything that the command writes; default: the config's, else runs/eval/BENCHMARK."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="How many processes play side by side; each has its own simulator and models.")
    ] = None,
    weights: Weights = None,
    device: Annotated[
        str | None, typer.Option(help="Device that planner and actor run on, such as `cuda`; default: cpu.")
    ] = None,
    shared_planner: Annotated[
        bool | None,
        typer.Option(help="Let all workers share one process for each planner, in place of a copy in each."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="How time passes: `simulated` (default; runs can be repeated) or `real`.")
    ] = None,
    s1_latency: Annotated[
        int | None, typer.Option(help="How many control steps late S1 answers in simulated time; default: 1.")
    ] = None,
    s2_latency: Annotated[
        int | None, typer.Option(help="How many control steps late S2 answers in simulated time; default: 2.")
    ] = None,
    rendering: Annotated[str | None, typer.Option(help="Meshes of mikasa: `stock` (default) or `fast`.")] = None,
    image_px: Annotated[int | None, typer.Option(help="Width and height of the images of the arena.")] = None,
    videos: Annotated[
        int | None, typer.Option(help="How many episodes of each task and agent to film; default: 2, in the arena 0.")
    ] = None,
    clips: Annotated[
        int | None, typer.Option(help="How many failures of each agent and cause to film; default: 0.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Throw away what the folder holds, and begin anew.")
    ] = False,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Play those episodes again that ended in an error.")
    ] = False,
    verify: Annotated[
        Path | None, typer.Option(help="Play some episodes of this results file again, and compare how they come out.")
    ] = None,
    sample: Annotated[int, typer.Option(help="With --verify: how many episodes to draw at random.")] = 10,
    sample_seed: Annotated[int, typer.Option(help="With --verify: the seed of the drawing.")] = 0,
) -> None:
    """Play a benchmark, and write results.json, report.html and videos.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    if verify is not None:
        return _verify(verify, sample, sample_seed, workers or 1, weights)
    check_out(out, config)
    from predimem.evaluation.run.config import evaluation_settings

    given = {"tasks": None if tasks is None else split(tasks), "agents": None if agents is None else split(agents)}
    given |= {"benchmark": benchmark, "episodes": episodes, "seed_start": seed_start, "out": out, "workers": workers}
    play = {"weights": weights, "time.mode": time, "environment.rendering": rendering, "environment.image_px": image_px}
    play |= {"planner_on.device": device, "actor_on.device": device, "shared_planner": shared_planner}
    play |= {"time.s1_latency_steps": s1_latency, "time.s2_latency_steps": s2_latency}
    given |= {"videos": videos, "clips": clips} | {f"play.{name}": value for name, value in play.items()}
    given |= {"conditions": None if condition is None else split(condition), "difficulty": difficulty}
    settings = evaluation_settings(config, given)
    if config is None and not settings.agents:
        own = settings.agent_configs
        settings = replace(settings, agents=tuple(own) if own and "predimem" not in own else ("predimem",))
    play_settings(settings, overwrite, retry_errors)


def harness(
    tasks: Tasks,
    agents: Agents = "predimem",
    benchmark: BenchmarkOption = None,
    episodes: Annotated[
        int, typer.Option(help="How many episodes to play of each task; MIKASA's protocol has 50.")
    ] = 50,
    out: Out = Path("runs/harness"),
    weights: Weights = None,
) -> None:
    """Let the benchmark's own evaluation code grade an agent, with its own seeds and cameras."""
    from predimem.core.files import write_json
    from predimem.core.progress import Bar
    from predimem.envs.benchmark import load_benchmark
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.config import evaluation_settings
    from predimem.evaluation.run.machine import machine, revision

    commit, dirty = revision()
    settings = evaluation_settings(None, {"benchmark": benchmark, "tasks": split(tasks), "play.weights": weights})
    play = played_by(settings, split(agents))
    names = [load_benchmark(settings.benchmark).task_name(task) for task in settings.tasks]
    with closing(BenchmarkPlayer(play)) as player:
        player.load(split(agents))
        for task in names:
            for agent in split(agents):
                with Bar(episodes, "episodes", f"{task} {agent}") as bar:
                    result = player.run_harness(task, agent, episodes, lambda index, success: bar.add())
                path = out / f"{task}.{agent}.json"
                origin = {"revision": commit, "dirty": dirty, "machine": machine(), "provenance": player.provenance()}
                write_json(path, result | origin)
                print(f"{task} {agent}: success {result['sr']:.2f} over {episodes} episodes -> {path}")


def play_settings(
    settings: EvaluationFile, overwrite: bool = False, retry_errors: bool = False, film: Film | None = None
) -> dict[str, Any]:
    """Play what `settings` says, and return the results. film: how; None: as usual in this benchmark."""
    from predimem.envs.benchmark import load_benchmark
    from predimem.evaluation.report.video import LONG_EPISODES, Film
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.evaluation import EvaluationConfig, errors_alone, run_evaluation
    from predimem.evaluation.run.names import task_files
    from predimem.pipelines.shared_planners import shared_planners

    benchmark = load_benchmark(settings.benchmark)
    tasks = settings.tasks or benchmark.all_tasks()
    if settings.conditions:
        tasks = benchmark.in_conditions(settings.tasks, settings.conditions)
    elif settings.difficulty is not None:
        tasks = benchmark.at_difficulty(settings.tasks, settings.difficulty)
    agents = settings.agents or _agents_with_weights(settings)
    play = played_by(settings, agents)
    videos = (0 if benchmark.long_episodes else 2) if settings.videos is None else settings.videos
    configs = settings.agent_configs
    config = EvaluationConfig(
        benchmark=settings.benchmark,
        tasks=tasks,
        agents=agents,
        references={name: agent.against for name, agent in configs.items() if agent.against},
        studies=settings.studies,
        notes={name: agent.note for name, agent in configs.items() if agent.note},
        episodes=settings.episodes,
        seed_start=settings.seed_start,
        out=settings.out,
        workers=settings.workers,
        videos_per_task=videos,
        film=film or (LONG_EPISODES if benchmark.long_episodes else Film()),
        traces_per_task=max(videos, 1) if benchmark.long_episodes else None,
        clips_per_cause=settings.clips,
        overwrite=overwrite,
        retry_errors=retry_errors,
    )
    names = tuple(benchmark.task_name(task) for task in tasks)
    horizons = {name: steps for task, name in zip(tasks, names, strict=True) if (steps := benchmark.horizon(task))}
    config = replace(config, tasks=names, horizons=horizons)
    warn_of_unseen(settings, tasks, play)
    play = replace(play, task_files=task_files(settings.benchmark, tasks))
    benchmark.prepare(bool(videos or settings.clips or any(play.images_every(agent) for agent in agents)))
    with shared_planners(play, Path(settings.out)) as shared:
        results = run_evaluation(config, functools.partial(BenchmarkPlayer, shared), benchmark.categories(tasks))
    if told := errors_alone(results):
        raise SystemExit(f"predimem: {told}")
    return results


def _agents_with_weights(settings: EvaluationFile) -> tuple[str, ...]:
    """All agents of the file but those whose weights are missing; they are named. If all are missing, all agents."""
    from predimem.evaluation.run.names import missing_weights

    configs = settings.agent_configs
    missing = missing_weights(configs, settings.play.weights)
    if missing.keys() == {name for name, config in configs.items() if config.weights}:
        return tuple(configs)
    for name, why in missing.items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    return tuple(name for name in configs if name not in missing)


def _verify(path: Path, sample: int, seed: int, workers: int, weights: str | None) -> None:
    from predimem.envs.benchmark import load_benchmark
    from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
    from predimem.evaluation.run.config import played_with, read_results
    from predimem.evaluation.run.names import check_weights
    from predimem.evaluation.run.task_records import write_task_files
    from predimem.evaluation.run.verify import format_verification, verify_results

    results = read_results(path)
    with tempfile.TemporaryDirectory(prefix="predimem-tasks-") as folder:
        tasks = write_task_files(results["provenance"].get("task_files", {}), Path(folder), str(path))
        play = played_with(results, str(path), weights, tasks)
        check_weights(tuple(play.agent_configs), play)
        load_benchmark(play.benchmark).prepare(any(play.images_every(agent) for agent in play.agent_configs))
        make_player = functools.partial(BenchmarkPlayer, play)
        verification = verify_results(path, make_player, sample, seed, workers)
    print(format_verification(verification))
    if verification.different:
        raise SystemExit(1)
