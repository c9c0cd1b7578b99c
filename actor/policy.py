"""The actor as a `Policy`, which turns an observation and a subtask into an action chunk in physical units."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from actor.preprocess import Preprocessor
from actor.transforms import Relative, ResizeWithPad
from actor.weights import Actor, load_actor
from predimem.core.progress import stage
from predimem.core.types import ActionChunk, Observation


class ActorPolicy:
    """The policy has no state: the noise is a function of the seed and the observation's step alone."""

    def __init__(self, actor: Actor, seed: int = 0, num_steps: int | None = None, device: str = "cpu") -> None:
        self.config = actor.config
        self._model = actor.model
        self._preprocess = Preprocessor(actor.config, actor.stats, actor.tokenizer)
        self._resize = ResizeWithPad(actor.config.model.image_size)
        self._seed = seed
        self._num_steps = actor.config.num_steps if num_steps is None else num_steps
        self._device = device

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """float32 [H or fewer, A] from `observation.step` on. Raises ValueError if the observation does not fit."""
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        """One chunk for each observation, in one forward pass. Raises ValueError if an observation does not fit.

        A chunk does not depend on the other observations of the batch, except for rounding.
        """
        for observation in observations:
            self._check(observation)
        cameras = self.config.cameras
        images = np.stack([np.stack([self._resize(o.images[name]) for name in cameras]) for o in observations])
        states = np.stack([observation.state for observation in observations])
        inputs = self._preprocess.inputs(images, states, subtasks, self._device)
        noise = torch.cat([self._noise(observation.step) for observation in observations]).to(self._device)
        chunks = self._preprocess.actions(self._model.sample(inputs, noise, self._num_steps))
        if self.config.relative_to:
            chunks = Relative(self.config.relative_to).inverse(chunks, states)
        asked = zip(observations, chunks, subtasks, strict=True)
        return [ActionChunk(o.step, self._gated(chunk), subtask) for o, chunk, subtask in asked]

    def _gated(self, chunk: np.ndarray) -> np.ndarray:
        """The chunk with the gripper either open or closed, cut off some steps after the gripper changes."""
        gripper = self.config.gripper
        if gripper is None:
            return chunk
        chunk[:, gripper] = np.where(chunk[:, gripper] > 0, 1.0, -1.0)
        changes = np.flatnonzero(np.diff(chunk[:, gripper]))
        return chunk[: changes[0] + 1 + self.config.after_grip] if len(changes) else chunk

    def _noise(self, step: int) -> torch.Tensor:
        rng = np.random.default_rng([self._seed, step])
        shape = (1, self.config.model.action_horizon, self.config.model.action_dim)
        return torch.from_numpy(np.float32(self.config.noise) * rng.standard_normal(shape, dtype=np.float32))

    def _check(self, observation: Observation) -> None:
        config = self.config
        if set(observation.images) != set(config.cameras):
            raise ValueError(f"the actor expects the cameras {list(config.cameras)}, got {list(observation.images)}")
        for name in config.cameras:
            image, shape = observation.images[name], (*config.camera_shape, 3)
            if image.shape != shape or image.dtype != np.uint8:
                raise ValueError(f"{name} should be uint8 of shape {shape}, got {image.dtype} of shape {image.shape}")
        if observation.state.shape != (config.state_dim,):
            raise ValueError(
                f"the actor expects a state of {config.state_dim} numbers, got shape {observation.state.shape}"
            )


def load_policy(path: str | Path, seed: int = 0, num_steps: int | None = None, device: str = "cpu") -> ActorPolicy:
    """Read a weights folder. Raises ValueError (`WeightsError`) if it is missing, damaged or does not fit.

    num_steps: Euler steps; the folder's config decides if None.
    """
    with stage("loading the actor"):
        return ActorPolicy(load_actor(path, device), seed, num_steps, device)
