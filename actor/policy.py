"""The actor as a `Policy`, which turns an observation and a subtask into an action chunk in physical units."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from actor.preprocess import Preprocessor
from actor.transforms import ResizeWithPad
from actor.weights import Actor, load_actor
from predimem.core.progress import stage
from predimem.core.types import ActionChunk, Observation, ObservationError


class ActorPolicy:
    """The policy has no state: the noise is a function of the seed and the observation's step alone."""

    def __init__(self, actor: Actor, seed: int = 0, num_steps: int | None = None, device: str = "cpu") -> None:
        self.config = actor.config
        self._model = actor.model
        self._preprocess = Preprocessor(actor.config, actor.stats, actor.tokenizer)
        self._resize = ResizeWithPad(actor.config.model.image_size, actor.config.openpi_exact)
        self._seed = seed
        self._num_steps = actor.config.num_steps if num_steps is None else num_steps
        self._device = device

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """float32 [H or fewer, A] from `observation.step` on. Raises ObservationError if the observation does
        not fit."""
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        """One chunk for each observation, in one forward pass. Raises ObservationError if an observation does not
        fit.

        A chunk does not depend on the other observations of the batch, except for rounding.
        """
        for observation in observations:
            self._check(observation)
        images = np.stack([np.stack([self._view(o, name) for name in self.config.cameras]) for o in observations])
        seen = np.array([[name in o.images for name in self.config.cameras] for o in observations])
        states = np.stack([observation.state for observation in observations])
        inputs = self._preprocess.inputs(images, states, subtasks, self._device, seen)
        noise = torch.cat([self._noise(observation.step) for observation in observations]).to(self._device)
        chunks = self._preprocess.actions(self._model.sample(inputs, noise, self._num_steps), states)
        asked = zip(observations, chunks, subtasks, strict=True)
        return [ActionChunk(o.step, self._gated(chunk), subtask) for o, chunk, subtask in asked]

    def _view(self, observation: Observation, camera: str) -> np.ndarray:
        """uint8 [size, size, 3]: black where the camera is missing."""
        image, size = observation.images.get(camera), self.config.model.image_size
        return np.zeros((size, size, 3), np.uint8) if image is None else self._resize(image)

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
        config, got = self.config, set(observation.images)
        needed = set(config.cameras) - set(config.optional_cameras)
        if not got or not needed <= got <= set(config.cameras):
            may = f" ({', '.join(config.optional_cameras)} may be missing)" if config.optional_cameras else ""
            raise ObservationError(
                f"the actor expects the cameras {list(config.cameras)}{may}, got {list(observation.images)}"
            )
        for name, image in observation.images.items():
            shape = (*config.camera_shape, 3)
            if image.shape != shape or image.dtype != np.uint8:
                raise ObservationError(
                    f"{name} should be uint8 of shape {shape}, got {image.dtype} of shape {image.shape}: send RGB "
                    "in the height and width of the training"
                )
        state = observation.state
        if state.shape != (config.state_dim,):
            raise ObservationError(f"the actor expects a state of {config.state_dim} numbers, got shape {state.shape}")
        if not np.isfinite(state).all():
            entry = int(np.flatnonzero(~np.isfinite(state))[0])
            raise ObservationError(f"state: expected finite numbers, got {state[entry]} at entry {entry}")


def load_policy(
    path: str | Path, seed: int = 0, num_steps: int | None = None, device: str = "cpu", dtype: str | None = None
) -> ActorPolicy:
    """Read a weights folder. Raises ValueError (`WeightsError`) if it is missing, damaged or does not fit.

    num_steps: Euler steps; the folder's config decides if None.
    device, dtype: where it runs, and in which number format (`predimem.core.placement.Placement`).
    """
    with stage("loading the actor"):
        return ActorPolicy(load_actor(path, device, getattr(torch, dtype or "float32")), seed, num_steps, device)
