"""`instructions`: the robot is told the same in other words, by one of 100 paraphrases for the 26 tasks.

They stand in `paraphrases.yaml`. Nothing is trained on them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from predimem.core.paraphrases import Paraphrased, read_paraphrases
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.setting import Setting

PARAPHRASES = Path(__file__).with_name("paraphrases.yaml")


def all_paraphrases() -> dict[str, Paraphrased]:
    """Task -> the paraphrases of its instruction."""
    return read_paraphrases(PARAPHRASES)


def apply(setting: Setting, task: Task, rng: np.random.Generator) -> Setting:
    if task.name not in all_paraphrases():
        raise ValueError(f"{PARAPHRASES.name} has no paraphrases of {task.name}: play it in another condition")
    original = task.variants[setting.layout.variant].instruction
    told = str(rng.choice(all_paraphrases()[task.name].of(original)))
    return replace(setting, instruction=told, changed={**setting.changed, "instruction": told})
