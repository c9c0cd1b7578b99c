"""`predimem`: thin commands that parse, assemble and run. Heavy imports wait until a command needs them."""

from __future__ import annotations

import functools
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from predimem.seeds import EVALUATION_SEEDS_FROM
from predimem.vulkan import VulkanError, use_driver

if TYPE_CHECKING:
    from actor.train import ActorTrainConfig
    from predimem.evaluation.play import EvaluationFile

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Memory for robot policies.")
train_app = typer.Typer(no_args_is_help=True, help="Train the planner (S2) or the actor (S1).")
verify_app = typer.Typer(no_args_is_help=True, help="Check a model against an independent reference.")
app.add_typer(train_app, name="train")
app.add_typer(verify_app, name="verify")
export_app = typer.Typer(no_args_is_help=True, help="Write episodes in the formats of other tools.")
import_app = typer.Typer(no_args_is_help=True, help="Read data sets of others as episodes.")
app.add_typer(export_app, name="export")
app.add_typer(import_app, name="import")
data_app = typer.Typer(no_args_is_help=True, help="Look at episodes.")
app.add_typer(data_app, name="data")

Out = Annotated[Path, typer.Option(help="Folder for everything that the command writes.")]
Workers = Annotated[int, typer.Option(help="Processes; each builds its own simulator and models.")]
Weights = Annotated[str | None, typer.Option(help="Folder with planner/, actor/, ...; default: shipped.")]
Agents = Annotated[str, typer.Option("--agent", "--agents", help="Agents, comma-separated.")]
Tasks = Annotated[str, typer.Option(help="Task ids, comma-separated.")]
Episodes = Annotated[Path, typer.Option(help="Folder of episodes.")]
EpisodeFile = Annotated[Path, typer.Argument(help="Episode, such as .../seed0000001000.h5.")]
SKILLS_CONFIG = Path("configs/datagen_skills.yaml")
ImagePx = Annotated[int, typer.Option(help="Width and height of the arena's pictures.")]


@app.command()
def doctor() -> None:
    """Say what was found on this machine and how to mend what is missing."""
    from predimem import doctor as checks

    raise typer.Exit(checks.run())


@app.command("eval")
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
    from predimem.evaluation.play import evaluation_settings

    given = {"tasks": None if tasks is None else _split(tasks), "agents": None if agents is None else _split(agents)}
    given |= {"suite": suite, "episodes": episodes, "seed_start": seed_start, "out": out, "workers": workers}
    play = {"weights": weights, "rendering": rendering, "image_px": image_px, "time.mode": time}
    play |= {"time.s1_latency_steps": s1_latency, "time.s2_latency_steps": s2_latency}
    given |= {"videos": videos, "clips": clips} | {f"play.{name}": value for name, value in play.items()}
    _evaluate(evaluation_settings(config, given), overwrite, retry_errors)


@app.command("play")
def play_one(
    task: Annotated[str, typer.Option(help="Task of the arena: number, name, Gymnasium id, or file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    agent: Annotated[str, typer.Option(help="`oracle`, `script`, `random`, or a row of --config.")] = "oracle",
    image_px: Annotated[int | None, typer.Option(help="Width and height of the pictures; default: 256.")] = None,
    out: Annotated[Path, typer.Option(help="The video (.mp4), or the folder for it.")] = Path("runs/play"),
    config: Annotated[Path | None, typer.Option(help="Rows of learned systems, see configs/eval/.")] = None,
    weights: Weights = None,
) -> None:
    """Play one episode of the arena and film it: both cameras, the subtask, the stages, the outcome."""
    from predimem.assemble import Player, check_agents, check_weights, task_files, task_names
    from predimem.evaluation.film import film_episode
    from predimem.evaluation.play import evaluation_settings

    pixels = image_px or (256 if config is None else None)
    given = {"suite": "arena", "play.image_px": pixels, "play.weights": weights}
    settings = evaluation_settings(config, given)
    check_agents([agent], "arena", settings.rows)
    (name,) = task_names("arena", [task])
    play = replace(settings.play, suite="arena", rows=settings.rows, task_files=task_files("arena", [task]))
    check_weights([agent], play)
    use_driver()
    path = out if out.suffix == ".mp4" else out / f"{name}-{agent}-seed{seed}.mp4"
    with closing(Player(play)) as player:
        result = film_episode(player, name, agent, seed, path)
    stages = f"{result.stages_passed} of {result.stages_total} stages"
    reason = f" ({result.message.splitlines()[0]})" if result.message else ""
    print(f"{name}, {agent}, seed {seed}: {result.status} after {result.steps} steps, {stages}{reason}")
    if not path.is_file():
        raise SystemExit(1)
    print(path)


@app.command()
def demo(
    out: Out = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(help="Episodes per task and agent.")] = 5,
    workers: Workers = 2,
) -> None:
    """PrediMem at laptop size: the shipped planner and actor play RememberColor 3, 5 and 9 in SAPIEN."""
    from predimem.evaluation.play import EvaluationFile

    settings = EvaluationFile(
        suite="mikasa",
        tasks=tuple(f"RememberColor{n}-VLA-v0" for n in (3, 5, 9)),
        agents=("predimem", "no-keyframes"),
        episodes=episodes,
        out=str(out),
        workers=workers,
    )
    _evaluate(settings, overwrite=True)


@app.command()
def harness(
    tasks: Tasks,
    agents: Agents = "predimem",
    episodes: Annotated[int, typer.Option(help="Episodes per task; the suite's protocol has 50.")] = 50,
    out: Out = Path("runs/harness"),
    weights: Weights = None,
) -> None:
    """Let MIKASA-Robo's own evaluation code grade an agent, on its own seeds and all of its cameras."""
    from tqdm import tqdm

    from predimem.assemble import PlayConfig, Player, check_agents, check_tasks

    check_agents(_split(agents))
    check_tasks(_split(tasks))
    player = Player(PlayConfig(weights=weights))
    out.mkdir(parents=True, exist_ok=True)
    for task in _split(tasks):
        for agent in _split(agents):
            with tqdm(total=episodes, unit="episode", desc=f"{task} {agent}") as bar:
                result = player.run_harness(task, agent, episodes, lambda index, success: bar.update())
            path = out / f"{task}.{agent}.json"
            path.write_text(json.dumps(result | {"provenance": player.provenance()}, indent=1))
            print(f"{task} {agent}: success {result['sr']:.2f} over {episodes} episodes -> {path}")
    player.close()


@app.command()
def datagen(
    config: Annotated[Path, typer.Option(help="What to make.")] = Path("configs/datagen.yaml"),
    out: Annotated[str | None, typer.Option(help="Folder for the episodes; default: the config's.")] = None,
    workers: Workers = 1,
    ray: Annotated[str | None, typer.Option(help="Run on Ray: a cluster's address, or `local`.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Of the arena: tasks or task files, comma-separated.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Of the arena: seeds of each task.")] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Play again what ended in an error.")] = False,
) -> None:
    """Make demonstrations: of the arena from perception, of mikasa by its expert. Ctrl-C, then again: resumes."""
    from datagen.command import make_data
    from predimem.assemble import make_training_environment

    changes = {"out": out, "tasks": None if tasks is None else tuple(_split(tasks)), "episodes": episodes}
    given = {name: value for name, value in changes.items() if value is not None}
    make_data(config, make_training_environment, workers, ray, given, retry_errors)


@app.command()
def decompose(
    task: Annotated[str, typer.Option(help="Task of the arena: number, name, Gymnasium id, or file (.py).")],
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    instruction: Annotated[str | None, typer.Option(help="Other words for the task; default: its own.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Ask a model at this OpenAI-compatible address.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name at the endpoint.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the JSON; default: standard output.")] = None,
) -> None:
    """Break an instruction of the arena down into steps: by rules, or by a model that sees the scene."""
    from datagen.decompose.command import decompose_episode

    decompose_episode(task, seed, instruction, endpoint, model, out)


@train_app.command("planner")
def train_planner(
    config: Annotated[Path, typer.Option(help="Recipe, see configs/planner/.")],
    episodes: Annotated[str | None, typer.Option(help="Folder of episodes; default: the config's.")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of the run; default: the config's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Training seed; default: the config's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the `swift sft` command line.")] = False,
) -> None:
    """Train S2 with ms-swift and export a plain Qwen3-VL checkpoint. Ctrl-C, then again: resumes."""
    from planner.train import train

    exported = train(config, episodes=episodes, out=out, seed=seed, dry_run=dry_run)
    if not dry_run:
        print(f"exported to {exported}")


@train_app.command("actor")
def train_actor(
    config: Annotated[Path, typer.Option(help="Recipe, see configs/actor/.")],
    episodes: Annotated[str | None, typer.Option(help="Folder of episodes; default: the config's.")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of the run; default: the config's.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    workers: Annotated[int, typer.Option(help="Processes for the roll-outs between rounds of training.")] = 1,
) -> None:
    """Train S1 by flow matching. Ctrl-C writes a checkpoint; --resume goes on from it, bit for bit.

    A recipe with rounds of DAgger goes on by itself when it is started again: --resume is for those without.
    """
    from actor.train import ActorTrainConfig, train
    from predimem.config import load_config

    recipe = load_config(ActorTrainConfig, config)
    if recipe.dagger.rounds:
        recipe = replace(recipe, episodes=episodes or recipe.episodes, out=out or recipe.out)
        exported = _train_rounds(recipe, workers)
    else:
        exported = train(recipe, episodes=episodes, out=out, resume=resume)
    print(f"exported to {exported}")


def _train_rounds(recipe: ActorTrainConfig, workers: int) -> Path:
    """DAgger: what the actor of the last round meets is labelled by the expert of the arena's skills."""
    from actor.policy import load_policy
    from actor.rounds import train_rounds
    from datagen.scale.run import BackendConfig
    from datagen.skill_data.collect import collect_skills
    from datagen.skill_data.config import SkillDataConfig
    from predimem.config import load_config

    dagger = recipe.dagger

    def collect(weights: Path, out: Path, number: int) -> None:
        data = replace(
            load_config(SkillDataConfig, dagger.data),
            kind="rollouts",
            out=str(out),
            episodes=dagger.episodes,
            first_seed=dagger.first_seed + (number - 1) * dagger.episodes,
            chain_share=dagger.chain_share,
        )
        collect_skills(data, BackendConfig(workers), functools.partial(load_policy, weights))

    return train_rounds(recipe, collect)


@app.command("skills")
def play_skills(
    config: Annotated[Path, typer.Option(help="Tasks, and how roll-outs are made.")] = SKILLS_CONFIG,
    weights: Annotated[Path | None, typer.Option(help="An actor's folder; default: replay labels.")] = None,
    episodes: Annotated[int, typer.Option(help="Roll-outs of each task.")] = 8,
    chains: Annotated[float, typer.Option(help="Share that goes on with the next subtask after a success.")] = 1.0,
    seed_start: Annotated[int, typer.Option(help="First seed.")] = EVALUATION_SEEDS_FROM,
    out: Annotated[Path, typer.Option(help="File for the attempts, as JSON.")] = Path("runs/skills.json"),
) -> None:
    """How often subtasks of the arena succeed, one by one: an actor's, or label chunks replayed in physics."""
    from datagen.skill_data.config import SkillDataConfig
    from datagen.skill_data.evaluate import counts
    from datagen.skill_data.evaluate import play_skills as play
    from predimem.config import load_config
    from predimem.evaluation.metrics import wilson_interval

    data = replace(load_config(SkillDataConfig, config), episodes=episodes, chain_share=chains, noise=0.0)
    policy = None
    if weights is not None:
        from actor.policy import load_policy

        policy = functools.partial(load_policy, weights)
    attempts = play(data, seed_start, policy, lambda attempt: print(json.dumps(attempt), flush=True))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"weights": str(weights), "seed_start": seed_start, "attempts": attempts}, indent=1))
    for kind, (done, tried) in counts(attempts).items():
        interval = wilson_interval(done, tried)
        print(f"{kind:16} {done}/{tried}  {interval.low:.2f} to {interval.high:.2f}")


@verify_app.command("actor")
def verify_actor(
    golden: Annotated[Path, typer.Option(help="Folder with config, weights, inputs and expected outputs.")],
) -> None:
    """Compare the actor with openpi's PyTorch implementation on golden tensors."""
    from actor.verify import TOLERANCE, verify

    errors = verify(golden)
    for name, error in errors.items():
        print(f"{name}: max abs error {error:.2e}")
    if max(errors.values()) > TOLERANCE:
        raise SystemExit(f"predimem: the actor differs from the reference by more than {TOLERANCE:g}")


@verify_app.command("planner")
def verify_planner(
    planner: Annotated[Path | None, typer.Option(help="Exported planner; default: the shipped one.")] = None,
    episodes: Annotated[Path, typer.Option(help="Folder of recorded episodes.")] = Path("runs/data/mikasa"),
) -> None:
    """Replay a planner on held-out recorded episodes, with its own memory, and print its accuracy."""
    from planner.dataset import split_episodes
    from planner.decoding import load_planner
    from planner.evaluate import replay_planner
    from planner.tracking import score_by_group, track_planner
    from planner.train import TrainConfig
    from predimem.episodes import load_episodes
    from predimem.weight_files import weights_folder

    model = load_planner(planner or weights_folder(None, "planner"))
    fraction = TrainConfig().dataset.validation_fraction
    _, held_out = split_episodes(load_episodes(episodes), fraction)
    if held_out[0].suite == "arena":
        for name, tracking in score_by_group(track_planner(model, held_out, model.spec.memory)).items():
            print(name, json.dumps(tracking.to_dict()))
        return
    for task in sorted({episode.task for episode in held_out}):
        scores = replay_planner(model, [e for e in held_out if e.task == task], model.spec.memory)
        print(task, json.dumps(scores.to_dict()))


@export_app.command("sft")
def export_sft(
    episodes: Episodes,
    out: Out,
    config: Annotated[Path | None, typer.Option(help="Recipe, see configs/planner/; default: the paper's.")] = None,
    images: Annotated[str | None, typer.Option(help="`png` (files) or `base64`; default: the config's.")] = None,
    samples: Annotated[int | None, typer.Option(help="Lines; default: the config's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the drawing; default: the config's.")] = None,
) -> None:
    """The JSONL that ms-swift trains S2 with, as `predimem train planner` makes it (002 §8)."""
    from planner.dataset import write_training_data
    from planner.prompt import PromptConfig
    from planner.train import TrainConfig
    from predimem.config import load_config
    from predimem.episodes import load_episodes

    if (out / "train.jsonl").exists():
        raise ValueError(f"{out} holds a train.jsonl already: choose another --out")
    loaded = load_episodes(episodes)
    if config is not None:
        recipe = load_config(TrainConfig, config)
    else:
        recipe = TrainConfig(prompt=PromptConfig(cameras=tuple(loaded[0].images)))
    changes = {"image_format": images, "samples": samples}
    dataset = replace(recipe.dataset, **{name: value for name, value in changes.items() if value is not None})
    seed = recipe.seed if seed is None else seed
    print(write_training_data(out, loaded, recipe.prompt, recipe.memory, dataset, seed))


@export_app.command("robomemarena")
def export_hdf5(episodes: Episodes, out: Out) -> None:
    """RoboMemArena's HDF5 files, one for each subtask. Ctrl-C, then again: goes on."""
    from datagen.export.robomemarena import export_robomemarena

    print(f"{export_robomemarena(episodes, out)} files in {out}")


@export_app.command("lerobot")
def export_to_lerobot(
    episodes: Episodes,
    out: Out,
    robot: Annotated[str, typer.Option(help="LeRobot's `robot_type`.")] = "panda",
) -> None:
    """A LeRobotDataset, v3.0: parquet, MP4 and tables. Ctrl-C, then again: goes on."""
    from datagen.export.lerobot import export_lerobot

    print(f"{export_lerobot(episodes, out, robot)} episodes in {out}")


@import_app.command("robomemarena")
def import_hdf5(
    data: Annotated[Path, typer.Option(help="Folder with <category>/<task>_dataset/subtask_data/*.hdf5.")],
    out: Out,
) -> None:
    """RoboMemArena's HDF5 files, released or exported, as episodes. Ctrl-C, then again: goes on."""
    from datagen.export.robomemarena_import import import_robomemarena

    print(f"{import_robomemarena(data, out)} episodes in {out}")


@data_app.command("stats")
def data_stats(
    episodes: Episodes,
    out: Annotated[Path | None, typer.Option(help="File (.md or .json); default: Markdown to the terminal.")] = None,
    verify: Annotated[bool, typer.Option(help="Hold every file to its checksum, which reads all of it.")] = True,
) -> None:
    """Yield, lengths, keyframes, retries and sizes of a folder of episodes, beside the paper's."""
    from datagen.statistics import data_statistics
    from datagen.statistics_page import page

    if out is not None and out.suffix not in (".md", ".json"):
        raise ValueError(f"--out is a file that ends in .md or .json, got {out}")
    statistics = data_statistics(episodes, verify)
    text = json.dumps(statistics, indent=1) + "\n" if out and out.suffix == ".json" else page(statistics)
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
        print(out)


@data_app.command("plot")
def data_plot(
    episode: EpisodeFile,
    out: Annotated[Path, typer.Option(help="The picture (.png, .svg, .pdf).")],
) -> None:
    """Speed, gripper, keyframes and subtasks of an episode of the arena over time, with pictures."""
    from datagen.plots import keyframe_config, plot_episode
    from predimem.episodes import load_episode

    plot_episode(load_episode(episode), out, keyframe_config(episode))
    print(out)


@data_app.command("show")
def data_show(
    episode: EpisodeFile,
    out: Annotated[Path, typer.Option(help="The video (.mp4).")],
    speed: Annotated[float, typer.Option(help="How many times as fast as the robot.")] = 2.0,
) -> None:
    """A video of an episode: all cameras, the subtask, a flash at each keyframe."""
    from datagen.show import show_episode
    from predimem.episodes import load_episode

    show_episode(load_episode(episode), out, speed)
    print(out)


def _evaluate(settings: EvaluationFile, overwrite: bool = False, retry_errors: bool = False) -> None:
    from predimem.assemble import (
        all_tasks,
        check_agents,
        check_weights,
        make_player,
        task_categories,
        task_files,
        task_names,
    )
    from predimem.evaluation.run import EvaluationConfig, run_evaluation
    from predimem.evaluation.video import LONG_EPISODES, Film

    suite, long = settings.suite, settings.suite == "arena"
    tasks = settings.tasks or all_tasks(suite)
    videos = (0 if long else 2) if settings.videos is None else settings.videos
    config = EvaluationConfig(
        suite=suite,
        tasks=tasks,
        agents=settings.agents or tuple(settings.rows) or ("predimem",),
        references={name: row.against for name, row in settings.rows.items() if row.against},
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
    config = replace(config, tasks=task_names(suite, tasks))
    if long and (videos or settings.clips or any(play.camera_every(row) for row in rows.values())):
        use_driver()
    run_evaluation(config, functools.partial(make_player, play), task_categories(suite, play.task_files))


def _verify(results: Path, sample: int, seed: int, workers: int, weights: str | None) -> None:
    from predimem.assemble import make_player
    from predimem.evaluation.play import played_with
    from predimem.evaluation.verify import format_verification, verify_results

    play = played_with(results, weights)
    if any(play.camera_every(row) for row in play.rows.values()):
        use_driver()
    verification = verify_results(results, functools.partial(make_player, play), sample, seed, workers)
    print(format_verification(verification))
    if verification.different:
        raise SystemExit(1)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main() -> None:
    """Entry point: errors of the user's input are one clear line, not a traceback."""
    try:
        app()
    except (ValueError, FileNotFoundError, ConnectionError, VulkanError) as error:
        raise SystemExit(f"predimem: {error}") from None


if __name__ == "__main__":
    main()
