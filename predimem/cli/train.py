"""`predimem train`: trains the planner, the actor, or everything for the arena."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from predimem.cli.early import check_actor_recipe, check_planner_recipe
from predimem.cli.options import check_out, numbers, split

if TYPE_CHECKING:
    from predimem.pipelines.stage import Stage

app = typer.Typer(no_args_is_help=True, help="Train the planner (S2), the actor (S1), or all that a benchmark needs.")

StagesOut = Annotated[
    str | None, typer.Option(help="Folder for everything that the command writes; default: as in the config.")
]
OnlyStages = Annotated[
    str, typer.Option(help="Only run these stages, or kinds of stages, and what they need; comma-separated.")
]
ListStages = Annotated[bool, typer.Option("--dry-run", help="Only print the stages, and whether they are done.")]


@app.command("planner")
def train_planner(
    config: Annotated[Path, typer.Option(help="YAML file that says how to train, see configs/planner/.")],
    episodes: Annotated[str | None, typer.Option(help="Folder with the episodes; default: as in the config.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for checkpoints and weights; default: as in the config.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the training; default: as in the config.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the `swift sft` command line.")] = False,
    node: Annotated[
        int | None, typer.Option(help="With `sft.nodes`: which node this is; 0 makes the data and the export.")
    ] = None,
    master: Annotated[str, typer.Option(help="With --node: HOST:PORT of node 0.")] = "localhost:29500",
) -> None:
    """Train S2 with ms-swift, and export a plain Qwen3-VL checkpoint.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    from predimem.core.progress import stage

    if not dry_run:
        check_out(out, config)
        check_planner_recipe(config, episodes, out)
    with stage("loading PyTorch"):
        from planner.swift_command import Node
        from planner.train import train

    which = None if node is None else Node.read(node, master)
    exported = train(config, episodes=episodes, out=out, seed=seed, dry_run=dry_run, node=which)
    if not dry_run and not node:
        print(f"exported to {exported}")


@app.command("arena")
def train_arena(
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file that says what to train from which data; default: configs/train_arena.yaml, with "
            "--continue configs/continue_arena.yaml."
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Tasks of the arena, or task files of your own, comma-separated; default: as in the config."),
    ] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Go on from the weights that are there: for tasks of your own.")
    ] = False,
    weights: Annotated[
        str | None, typer.Option(help="With --continue: the folder of the weights; default: the shipped ones.")
    ] = None,
    out: StagesOut = None,
    only: OnlyStages = "",
    dry_run: ListStages = False,
) -> None:
    """Generate all data, and train all models that play the arena.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    check_out(out, config)
    from predimem.core.config import load_config
    from predimem.pipelines.own_tasks import start_of
    from predimem.pipelines.retrain import RetrainConfig, plan_stages

    recipe = load_config(RetrainConfig, config or f"configs/{'continue' if go_on else 'train'}_arena.yaml")
    recipe = replace(recipe, out=out or recipe.out, tasks=split(tasks) if tasks is not None else recipe.tasks)
    recipe = replace(recipe, continue_from=start_of(recipe.continue_from, recipe.tasks, go_on, weights))
    _run(plan_stages(recipe), recipe.out, only, dry_run, "configs/eval/arena.yaml")


@app.command("rounds")
def train_own_rounds(
    config: Annotated[
        Path, typer.Option(help="YAML file that says which planners to train on, with which data.")
    ] = Path("configs/train_own_rounds.yaml"),
    weights: Annotated[
        str | None, typer.Option(help="Folder of the weights that they go on from; default: as in the config.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(help="Folder of the actor's weights that moves; default: as in the data's configs.")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Tasks of the arena, comma-separated; default: as in the configs.")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Training seeds, comma-separated; default: as in the config."),
    ] = None,
    out: StagesOut = None,
    only: OnlyStages = "",
    dry_run: ListStages = False,
) -> None:
    """Train planners on, each with DAgger episodes that it drove itself.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    check_out(out, config)
    from predimem.core.config import load_config
    from predimem.pipelines.own_rounds import OwnRoundsConfig, plan_own_rounds, played_with_skills, with_training_seeds
    from predimem.pipelines.stage import choose_stages

    recipe = load_config(OwnRoundsConfig, config)
    given = {"weights": weights, "actor": actor, "out": out}
    given |= {
        "tasks": None if tasks is None else split(tasks),
        "training_seeds": None if seeds is None else tuple(numbers("--seeds", seeds)),
    }
    recipe = replace(recipe, **{name: value for name, value in given.items() if value is not None})
    wanted = with_training_seeds(recipe, split(only))
    stages = choose_stages(plan_own_rounds(recipe, wanted), wanted)
    agents = ",".join(played_with_skills(stages, recipe.evaluation))
    _run(stages, recipe.out, "", dry_run, recipe.evaluation + (f" --agent {agents}" if agents else ""))


@app.command("robomme")
def train_for_robomme(
    config: Annotated[Path, typer.Option(help="YAML file that says what to train from which data.")] = Path(
        "configs/train_robomme.yaml"
    ),
    out: StagesOut = None,
    only: OnlyStages = "",
    dry_run: ListStages = False,
) -> None:
    """Generate all data, and train what plays RoboMME: the system, and what it is compared with.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    check_out(out, config)
    from predimem.core.config import load_config
    from predimem.pipelines.robomme import RobommeConfig, plan_robomme

    recipe = load_config(RobommeConfig, config)
    recipe = replace(recipe, out=out or recipe.out)
    _run(plan_robomme(recipe), recipe.out, only, dry_run, "configs/eval/robomme.yaml", recipe.at_once)


def _run(stages: Sequence[Stage], out: str, only: str, dry_run: bool, played_by: str, at_once: int = 1) -> None:
    """Those of the stages that `only` names, or a list of them; then how the config `played_by` plays the weights."""
    from predimem.pipelines.stage import choose_stages
    from predimem.pipelines.stage_runs import check_configs, check_episodes, is_done, run_stages, shown

    stages = choose_stages(stages, split(only))
    if dry_run:
        for number, stage in enumerate(stages, start=1):
            state = "is there" if is_done(stage, Path(out)) else shown(stage)
            print(f"[{number}/{len(stages)}] {stage.name}: {state}")
        return
    check_configs(stages)
    check_episodes(stages, Path(out))
    made = run_stages(stages, Path(out), at_once)
    if any(stage.weights for stage in stages):
        print(f"weights in {made}: predimem eval --config {played_by} --weights {made}")


@app.command("base")
def train_base_heads(
    tasks: Annotated[
        str, typer.Option(help="Tasks of MIKASA-Base, comma-separated; those of a family share an agent.")
    ] = "TMaze10,TMaze30,TMaze100,TMaze300,TMaze1000",
    agents: Annotated[
        str, typer.Option("--agent", "--agents", help="Which agents to train, comma-separated.")
    ] = "bank,gru,frame-stack",
    out: Annotated[Path, typer.Option(help="The root of weights that the command writes into.")] = Path("runs/base"),
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Steps of the optimiser; default: as the tasks need.")] = None,
    memory: Annotated[
        str | None, typer.Option(help="A memory of your own in place of the memory bank: `my_memory.py:MyMemory`.")
    ] = None,
) -> None:
    """Train small policies that read the memory bank, and those to compare with, for MIKASA-Base: minutes on a CPU."""
    from predimem.core.progress import stage

    with stage("loading PyTorch"):
        import torch  # noqa: F401

        from predimem.pipelines.base_heads import own_memory, train_base
    train_base(split(tasks), split(agents), out, seed, steps, None if memory is None else own_memory(memory))
    print(f"weights in {out}: predimem eval --benchmark base --tasks {tasks} --agents {agents} --weights {out}")


@app.command("interference")
def train_for_interference(
    sessions: Annotated[
        str | None, typer.Option(help="Folder of recorded sessions; what is missing there is recorded.")
    ] = None,
    out: Annotated[str | None, typer.Option(help="Folder for the weights; default: runs/interference/reader.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file that says how to train.")] = None,
    pool: Annotated[int | None, typer.Option(help="How many sessions of each value to train on; default: 10.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of the optimiser; default: 1000.")] = None,
) -> None:
    """Train the planner of the interference benchmark, and choose the numbers of its gate: minutes on a CPU."""
    check_out(out, config)
    from predimem.core.config import from_dict, merged, read_yaml
    from predimem.core.progress import stage
    from predimem.rendering.vulkan import use_driver

    use_driver()
    with stage("loading PyTorch"):
        from predimem.pipelines.interference import InterferenceTraining, train_interference
    given = {"sessions": sessions, "out": out, "pool": pool}
    data = merged({} if config is None else read_yaml(config), {k: v for k, v in given.items() if v is not None})
    data = merged(data, {} if steps is None else {"recall": {"steps": steps}})
    settings = from_dict(InterferenceTraining, data, "options" if config is None else str(config))
    print(f"weights in {train_interference(settings)}")


@app.command("actor")
def train_actor(
    config: Annotated[Path, typer.Option(help="YAML file that says how to train, see configs/actor/.")],
    episodes: Annotated[str | None, typer.Option(help="Folder with the episodes; default: as in the config.")] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder for checkpoints and weights; default: as in the config.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="How many steps to train, before rounds of DAgger; default: as in the config.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    workers: Annotated[int, typer.Option(help="How many processes play the roll-outs between rounds of training.")] = 1,
    processes: Annotated[
        int | None,
        typer.Option(
            help="How many processes of this machine train together; default: one for each GPU, on a CPU one."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, say what would be done, and train nothing.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only print how much memory each GPU needs, on 1, 2, 4 and 8 of them.")
    ] = False,
) -> None:
    """Train S1 by flow matching.

    Ctrl-C writes a checkpoint, and the same command with --resume goes on from it, bit for bit.

    A training with rounds of DAgger goes on by itself when it is started again, without --resume.

    On several machines, start `-m predimem.cli train actor ...` with `torchrun` or `accelerate launch`.
    """
    check_out(out, config)
    from predimem.core.config import load_config
    from predimem.core.progress import stage

    if plan:
        return _print_plan(config)
    check_actor_recipe(config, episodes)
    with stage("loading PyTorch"):
        from actor.dry_run import describe_training
        from actor.train import train
        from actor.training.config import ActorTrainConfig
        from actor.training.launch import is_launched, is_main, launch, processes_wanted

    recipe = load_config(ActorTrainConfig, config)
    given = {"episodes": episodes, "out": out, "steps": steps}
    recipe = replace(recipe, **{name: value for name, value in given.items() if value is not None})
    if dry_run:
        print(describe_training(recipe, resume))
        return
    together = processes_wanted(recipe.device, processes)
    if recipe.dagger.rounds and together > 1:
        raise ValueError(
            "rounds of DAgger are trained by one process: say --processes 1, or dagger: {rounds: 0, expert_episodes: 0}"
        )
    if together > 1 and not is_launched():
        raise typer.Exit(launch(together, sys.argv[1:]))
    try:
        if recipe.dagger.rounds:
            from predimem.pipelines.actor_rounds import train_actor_rounds

            exported = train_actor_rounds(recipe, workers)
        else:
            exported = train(recipe, resume=resume)
    except KeyboardInterrupt as interruption:
        words = [word for word in sys.argv[1:] if word != "--resume"]
        again = shlex.join(["predimem", *words, *([] if recipe.dagger.rounds else ["--resume"])])
        if is_main():
            print(f"\n{interruption or 'interrupted'}; to go on: {again}", file=sys.stderr)
        raise
    if is_main():
        print(f"exported to {exported}")


def _print_plan(config: Path) -> None:
    from predimem.core.config import load_config
    from predimem.core.progress import stage

    with stage("loading PyTorch"):
        from actor.training.config import ActorTrainConfig
        from actor.training.plan import memory_table
    print(memory_table(load_config(ActorTrainConfig, config)))
