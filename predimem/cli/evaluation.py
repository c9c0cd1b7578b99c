"""Commands that play a suite and count: `eval`, `demo`, and `harness` for the suite's own code."""

from __future__ import annotations

import functools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from predimem.cli.options import Agents, Out, Tasks, Weights, Workers, split
from predimem.rendering.vulkan import use_driver

if TYPE_CHECKING:
    from predimem.evaluation.run.config import EvaluationFile


def evaluate(
    config: Annotated[Path | None, typer.Option(help="What to play, see configs/eval/; options override it.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks or task files, comma-separated; of the arena: all.")] = None,
    suite: Annotated[str | None, typer.Option(help="`mikasa` (default) or `arena`.")] = None,
    agents: Annotated[
        str | None, typer.Option("--agent", "--agents", help="Agents, comma-separated; default: predimem.")
    ] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes per task and agent; default: 100.")] = None,
    seed_start: Annotated[int | None, typer.Option(help="First seed, the same for all agents.")] = None,
    out: Annotated[str | None, typer.Option(help="Folder for everything; default: runs/eval.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; each has its own simulator and models.")] = None,
    weights: Weights = None,
    time: Annotated[str | None, typer.Option(help="`simulated` (repeatable, default) or `real`.")] = None,
    s1_latency: Annotated[int | None, typer.Option(help="Simulated S1 latency, control steps; default: 1.")] = None,
    s2_latency: Annotated[int | None, typer.Option(help="Simulated S2 latency, control steps; default: 2.")] = None,
    rendering: Annotated[str | None, typer.Option(help="mikasa: `stock` (default) or `fast` meshes.")] = None,
    image_px: Annotated[int | None, typer.Option(help="Width and height of the arena's pictures.")] = None,
    videos: Annotated[int | None, typer.Option(help="Videos per task and agent; default: 2, arena 0.")] = None,
    clips: Annotated[int | None, typer.Option(help="Clips of failures per agent and cause; default: 0.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again, do not resume.")] = False,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Replay those that crashed.")] = False,
    verify: Annotated[Path | None, typer.Option(help="A results.json: play some of its episodes again.")] = None,
    sample: Annotated[int, typer.Option(help="--verify: how many, drawn at random.")] = 10,
    sample_seed: Annotated[int, typer.Option(help="--verify: of the drawing.")] = 0,
) -> None:
    """Play a suite and write results.json, report.html and videos. Ctrl-C, then again: resumes."""
    if verify is not None:
        return _verify(verify, sample, sample_seed, workers or 1, weights)
    from predimem.evaluation.run.config import evaluation_settings

    given = {"tasks": None if tasks is None else split(tasks), "agents": None if agents is None else split(agents)}
    given |= {"suite": suite, "episodes": episodes, "seed_start": seed_start, "out": out, "workers": workers}
    play = {"weights": weights, "rendering": rendering, "image_px": image_px, "time.mode": time}
    play |= {"time.s1_latency_steps": s1_latency, "time.s2_latency_steps": s2_latency}
    given |= {"videos": videos, "clips": clips} | {f"play.{name}": value for name, value in play.items()}
    _evaluate(evaluation_settings(config, given), overwrite, retry_errors)


def demo(
    out: Out = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(help="Episodes per task and agent.")] = 5,
    workers: Workers = 2,
) -> None:
    """PrediMem at laptop size: the shipped planner and actor play RememberColor 3, 5 and 9 in SAPIEN."""
    from predimem.evaluation.run.config import EvaluationFile

    settings = EvaluationFile(
        suite="mikasa",
        tasks=tuple(f"RememberColor{n}-VLA-v0" for n in (3, 5, 9)),
        agents=("predimem", "no-keyframes"),
        episodes=episodes,
        out=str(out),
        workers=workers,
    )
    _evaluate(settings, overwrite=True)


def harness(
    tasks: Tasks,
    agents: Agents = "predimem",
    episodes: Annotated[int, typer.Option(help="Episodes per task; the suite's protocol has 50.")] = 50,
    out: Out = Path("runs/harness"),
    weights: Weights = None,
) -> None:
    """Let MIKASA-Robo's own evaluation code grade an agent, on its own seeds and all of its cameras."""
    from tqdm import tqdm

    from predimem.evaluation.run.agents import Player
    from predimem.evaluation.run.config import PlayConfig
    from predimem.evaluation.run.names import check_agents
    from predimem.evaluation.run.tasks import check_tasks

    check_agents(split(agents))
    check_tasks(split(tasks))
    player = Player(PlayConfig(weights=weights))
    out.mkdir(parents=True, exist_ok=True)
    for task in split(tasks):
        for agent in split(agents):
            with tqdm(total=episodes, unit="episode", desc=f"{task} {agent}") as bar:
                result = player.run_harness(task, agent, episodes, lambda index, success: bar.update())
            path = out / f"{task}.{agent}.json"
            path.write_text(json.dumps(result | {"provenance": player.provenance()}, indent=1))
            print(f"{task} {agent}: success {result['sr']:.2f} over {episodes} episodes -> {path}")
    player.close()


def _evaluate(settings: EvaluationFile, overwrite: bool = False, retry_errors: bool = False) -> None:
    from predimem.evaluation.report.video import LONG_EPISODES, Film
    from predimem.evaluation.run.agents import make_player
    from predimem.evaluation.run.evaluation import EvaluationConfig, run_evaluation
    from predimem.evaluation.run.names import check_agents, check_weights
    from predimem.evaluation.run.tasks import all_tasks, task_categories, task_files, task_horizons, task_names

    suite, long = settings.suite, settings.suite == "arena"
    tasks = settings.tasks or all_tasks(suite)
    videos = (0 if long else 2) if settings.videos is None else settings.videos
    config = EvaluationConfig(
        suite=suite,
        tasks=tasks,
        agents=settings.agents or _rows(settings) or ("predimem",),
        references={name: row.against for name, row in settings.rows.items() if row.against},
        studies=settings.studies,
        notes={name: row.note for name, row in settings.rows.items() if row.note},
        episodes=settings.episodes,
        seed_start=settings.seed_start,
        out=settings.out,
        workers=settings.workers,
        videos_per_task=videos,
        film=LONG_EPISODES if long else Film(),
        traces_per_task=max(videos, 1) if long else None,
        clips_per_cause=settings.clips,
        overwrite=overwrite,
        retry_errors=retry_errors,
    )
    check_agents(config.agents, suite, settings.rows)
    rows = {name: row for name, row in settings.rows.items() if name in config.agents}
    play = replace(settings.play, suite=suite, rows=rows, task_files=task_files(suite, tasks))
    check_weights(config.agents, play)
    config = replace(config, tasks=task_names(suite, tasks), horizons=task_horizons(suite, tasks))
    if long and (videos or settings.clips or any(play.camera_every(row) for row in rows.values())):
        use_driver()
    run_evaluation(config, functools.partial(make_player, play), task_categories(suite, play.task_files))


def _rows(settings: EvaluationFile) -> tuple[str, ...]:
    """All rows of the file, but those whose weights are not there, which are said, unless no weights are there."""
    from predimem.evaluation.run.names import missing_weights

    missing = missing_weights(settings.rows, settings.play.weights)
    if missing.keys() == {name for name, row in settings.rows.items() if row.weights}:
        return tuple(settings.rows)
    for name, why in missing.items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    return tuple(name for name in settings.rows if name not in missing)


def _verify(results: Path, sample: int, seed: int, workers: int, weights: str | None) -> None:
    from predimem.evaluation.run.agents import make_player
    from predimem.evaluation.run.config import played_with
    from predimem.evaluation.run.names import check_weights
    from predimem.evaluation.run.verify import format_verification, verify_results

    play = played_with(results, weights)
    check_weights(tuple(play.rows), play)
    if any(play.camera_every(row) for row in play.rows.values()):
        use_driver()
    verification = verify_results(results, functools.partial(make_player, play), sample, seed, workers)
    print(format_verification(verification))
    if verification.different:
        raise SystemExit(1)
