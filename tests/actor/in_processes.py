"""Trains one config after another in the processes that `torchrun` starts: python -m torch.distributed.run ... FILE"""

import dataclasses
import json
import sys
from pathlib import Path

from actor.train import train
from actor.training.config import ActorTrainConfig
from predimem.core.config import from_dict, load_config


def main(recipe: str, runs: str) -> None:
    """runs: JSON, the folder of each run and what it changes in the recipe's `compute` and in `steps`."""
    config = load_config(ActorTrainConfig, recipe)
    for out, changes in json.loads(runs).items():
        changed = from_dict(ActorTrainConfig, {"compute": changes["compute"]}).compute
        this = dataclasses.replace(config, compute=changed, steps=changes.get("steps", config.steps))
        train(this, out=Path(out), resume=True, progress=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
