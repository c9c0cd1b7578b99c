"""Training in rounds (DAgger): the actor of the last round plays, the expert labels what it met, and training goes on.

The caller says how roll-outs are made, because this package knows no simulator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from actor.train import is_finished, train
from actor.training.checkpoint import checkpoints
from actor.training.config import ActorTrainConfig, DaggerConfig

Collect = Callable[[Path | None, Path, int], None]
"""Makes the labelled episodes that are missing in a folder. Called with the weights of the actor that plays (None for
the expert), the folder, and the number of the round."""


def train_rounds(config: ActorTrainConfig, collect: Collect, progress: bool = True) -> Path:
    """All rounds, each in its folder below `config.out`; returns the last one's weights folder.

    After Ctrl-C (KeyboardInterrupt) the same call goes on: finished rounds are kept, and a begun one is resumed.
    `collect` is called for it again, unless its training has begun: that goes on with the episodes that it has.
    Raises what `train` and `collect` raise, and ValueError for a finished round of another config.
    """
    out, weights = Path(config.out), None
    rollouts: list[str] = []
    for number in range(config.dagger.rounds + 1):
        run = out / f"round{number}"
        steps, previous = config.steps, None
        seeds = config.dagger.seeds(number)
        if seeds:
            rollouts.append(str(out / f"rollouts{number}"))
        if weights:
            steps, previous = config.dagger.steps, str(weights)
        this = dataclasses.replace(
            config,
            out=str(run),
            steps=steps,
            more_episodes=(*config.more_episodes, *rollouts),
            continue_from=previous or config.continue_from,
            dagger=DaggerConfig(),
        )
        if not is_finished(run, this):
            begun = bool(checkpoints(run))
            if seeds and not begun:
                collect(weights, out / f"rollouts{number}", number)
            train(this, resume=begun, progress=progress)
        weights = run / "weights"
    assert weights is not None
    return weights
