"""`predimem train`: the planner and the actor."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from predimem.cli.options import split

if TYPE_CHECKING:
    from actor.train import ActorTrainConfig

app = typer.Typer(no_args_is_help=True, help="Train the planner (S2), the actor (S1), or all.")


@app.command("planner")
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


@app.command("arena")
def train_arena(
    config: Annotated[Path, typer.Option(help="What to train from which data.")] = Path("configs/train_arena.yaml"),
    out: Annotated[str | None, typer.Option(help="Folder for everything; default: the config's.")] = None,
    only: Annotated[str, typer.Option(help="Stages or kinds of them, comma-separated, and what they need.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the stages and whether they are done.")] = False,
) -> None:
    """Generate all data and train all models that play the arena. Ctrl-C, then again: goes on."""
    from predimem.core.config import load_config
    from predimem.pipelines.retrain import RetrainConfig, choose_stages, plan_stages
    from predimem.pipelines.stages import is_done, run_stages, shown

    recipe = load_config(RetrainConfig, config)
    recipe = replace(recipe, out=out or recipe.out)
    stages = choose_stages(plan_stages(recipe), split(only))
    if dry_run:
        for number, stage in enumerate(stages, start=1):
            state = "is there" if is_done(stage, Path(recipe.out)) else shown(stage)
            print(f"[{number}/{len(stages)}] {stage.name}: {state}")
        return
    weights = run_stages(stages, Path(recipe.out))
    print(f"weights in {weights}: predimem eval --config configs/eval/arena.yaml --weights {weights}")


@app.command("actor")
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
    from predimem.core.config import load_config

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
    from datagen.actor_data.config import ActorDataConfig
    from datagen.actor_data.worker import ActorDataWorker
    from datagen.generation import run_generation
    from predimem.core.config import load_config
    from predimem.jobs.runner import BackendConfig

    dagger = recipe.dagger

    def collect(weights: Path | None, out: Path, number: int) -> None:
        seeds = dagger.seeds(number)
        data = replace(
            load_config(ActorDataConfig, dagger.data),
            kind="rollouts",
            out=str(out),
            episodes=len(seeds),
            first_seed=seeds.start,
            chain_share=dagger.chain_share,
        )
        make_policy = functools.partial(load_policy, weights) if weights else None
        run_generation(data, functools.partial(ActorDataWorker, make_policy=make_policy), BackendConfig(workers))

    return train_rounds(recipe, collect)
