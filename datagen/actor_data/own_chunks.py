"""An actor's own chunks as labels, so that it keeps what it does while it learns something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from actor.policy import ActorPolicy
from actor.weights import load_actor
from predimem.core.types import Observation


def load_actors(folder: str) -> tuple[ActorPolicy, ActorPolicy]:
    """The actor as it acts, and as it is trained: there the gripper is a number like the others and no chunk is cut.

    Both share their weights. Raises WeightsError if the folder is missing, damaged or does not fit.
    """
    actor = load_actor(folder)
    return ActorPolicy(actor), ActorPolicy(replace(actor, config=replace(actor.config, gripper=None)))


class OwnChunks:
    """Gives the actor's chunks for all labels but those for which the expert does what it may label."""

    def __init__(self, actor: ActorPolicy, expert_labels: Sequence[str], chunk_steps: int):
        """actor: of which no chunk is cut. expert_labels: patterns as in `fnmatch`, of what the expert does.
        chunk_steps: of a label; where the actor's chunks are shorter, their last action is repeated."""
        self._actor, self._expert_labels, self._steps = actor, expert_labels, chunk_steps

    def __call__(self, observation: Observation, motions: Mapping[str, str]) -> dict[str, np.ndarray]:
        """label -> float32 [chunk_steps, A]. motions: label -> what the expert does for it (`Labelled.motions`)."""
        own = [name for name, motion in motions.items() if not any(fnmatchcase(motion, p) for p in self._expert_labels)]
        if not own:
            return {}
        chunks = self._actor.infer_batch([observation] * len(own), own)
        return {chunk.subtask: self._padded(chunk.actions) for chunk in chunks}

    def _padded(self, actions: np.ndarray) -> np.ndarray:
        actions = actions[: self._steps]
        return np.concatenate([actions, np.repeat(actions[-1:], self._steps - len(actions), axis=0)])
