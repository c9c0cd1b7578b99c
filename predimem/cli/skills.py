"""`predimem skills`: plays subtasks of the arena one by one."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from predimem.core.files import check_file
from predimem.core.seeds import EVALUATION_SEEDS_FROM

SKILLS_CONFIG = Path("configs/datagen_actor_data.yaml")


def play_skills(
    config: Annotated[Path, typer.Option(help="YAML file with the tasks and how roll-outs are made.")] = SKILLS_CONFIG,
    weights: Annotated[
        Path | None, typer.Option(help="Folder of an actor; default: replay the labels themselves.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="How many roll-outs to play of each task.")] = 8,
    chains: Annotated[
        float, typer.Option(help="Share of roll-outs that go on with the next subtask after a success.")
    ] = 1.0,
    seed_start: Annotated[int, typer.Option(help="Seed of the first roll-out.")] = EVALUATION_SEEDS_FROM,
    out: Annotated[Path, typer.Option(help="File for all attempts, one JSON line a roll-out.")] = Path(
        "runs/skills.jsonl"
    ),
    workers: Annotated[int, typer.Option(help="How many processes play side by side.")] = 1,
) -> None:
    """Measure how often single subtasks of the arena succeed, with an actor or with labels replayed in physics.

    After Ctrl-C the same command goes on where it was interrupted.
    """
    check_file(out)
    if min(episodes, workers) < 1:
        raise ValueError(f"--episodes and --workers must be at least 1, got {episodes} and {workers}")
    from datagen.actor_data.config import ActorDataConfig
    from datagen.actor_data.evaluate import counts
    from datagen.actor_data.evaluate import play_skills as play
    from predimem.core.config import load_config
    from predimem.core.weight_files import weights_hash
    from predimem.evaluation.analysis.metrics import wilson_interval

    data = replace(load_config(ActorDataConfig, config), episodes=episodes, chain_share=chains, noise=0.0)
    policy, actor = None, "labels"
    if weights is not None:
        from actor.policy import load_policy

        policy, actor = functools.partial(load_policy, weights), weights_hash(weights)
    attempts = play(data, seed_start, out, policy, actor, workers)
    print(f"{'subtask':16}  done/tried  95 % interval")
    for kind, (done, tried) in counts(attempts).items():
        interval = wilson_interval(done, tried)
        print(f"{kind:16}  {f'{done}/{tried}':10}  {interval.low:.2f} to {interval.high:.2f}")
