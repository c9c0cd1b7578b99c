"""A trained head as an agent that `predimem eval` plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from actor.memory_head.head import HeadPlayer, load_head
from predimem.core.types import Observation, Tick
from predimem.core.weight_files import EMBEDDED, WeightsError


def weights_name(family: str, name: str) -> str:
    """The folder of a head below the root of weights."""
    return f"base/{family}/{name}"


def make_agent(name: str, environment: Any, root: str | None) -> HeadAgent:
    """The agent `name` for an environment of MIKASA-Base. root: of the weights, None for the shipped ones.

    Raises WeightsError where none was trained for the environment's family of tasks.
    """
    folder = (Path(root) if root else EMBEDDED) / weights_name(environment.family, name)
    if not folder.is_dir():
        out = root or "runs/base"
        raise WeightsError(
            f"no weights for {name!r}, {environment.family}, in {folder.parent}; train them with `predimem train base "
            f"--tasks {environment.task} --agents {name} --out {out}`, and evaluate with `--weights {out}`"
        )
    torch.set_num_threads(1)
    return HeadAgent(HeadPlayer(load_head(folder)))


class HeadAgent:
    """Implements `predimem.core.interfaces.Agent`; its ticks say which keyframes it holds."""

    def __init__(self, player: HeadPlayer):
        self._player = player
        self._last_tick: Tick | None = None

    def reset(self, instruction: str, episode_id: str) -> None:
        self._player.begin(0, instruction, episode_id)
        self._last_tick = None

    def act(self, observation: Observation) -> np.ndarray:
        scores = self._player.act({0: observation})[0]
        kept = self._player.keyframe_steps(0)
        step = observation.step
        self._last_tick = Tick(step, "", None, stale_action=False, held_action=False, keyframe_steps=kept)
        return scores

    @property
    def last_tick(self) -> Tick | None:
        return self._last_tick

    def close(self) -> None:
        """It has nothing to close."""
