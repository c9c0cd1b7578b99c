"""The actor as a `Policy`, which turns an observation and a subtask into an action chunk in physical units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from actor.engine.config import PRECISIONS, EngineConfig
from actor.engine.sampler import make_sampler
from actor.preprocess import Preprocessor
from actor.real_time import Continuation, Method
from actor.transforms import ResizeWithPad
from actor.weights import Actor, load_actor
from predimem.core.progress import stage
from predimem.core.types import ActionChunk, Observation, ObservationError


class ActorPolicy:
    """The policy has no state: the noise is a function of the seed and the observation's step alone."""

    def __init__(
        self,
        actor: Actor,
        seed: int = 0,
        num_steps: int | None = None,
        device: str = "cpu",
        engine: EngineConfig | None = None,
    ) -> None:
        self.config = actor.config
        self._preprocess = Preprocessor(actor.config, actor.stats, actor.tokenizer)
        self._resize = ResizeWithPad(actor.config.model.image_size, actor.config.openpi_exact)
        self._seed = seed
        self._device = device
        steps = actor.config.num_steps if num_steps is None else num_steps
        self._sampler = make_sampler(actor.model, steps, engine or EngineConfig(), device)

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        """float32 [H or fewer, A] from `observation.step` on. Raises ObservationError if the observation does
        not fit."""
        return self.infer_batch([observation], [subtask])[0]

    def infer_batch(self, observations: Sequence[Observation], subtasks: Sequence[str]) -> list[ActionChunk]:
        """One chunk for each observation, in one forward pass. Raises ObservationError if an observation does not
        fit, and FloatingPointError where the model's numbers overflow.

        A chunk does not depend on the other observations of the batch, except for rounding.
        """
        return self._infer(observations, subtasks, None)

    def continue_chunk(
        self, observation: Observation, subtask: str, queued: np.ndarray, delay_steps: int, method: Method
    ) -> ActionChunk:
        """A chunk that continues the one that is executed (`actor.real_time`), for one observation.

        queued: float32 [k, A], the actions that are queued, in physical units, the first one for `observation.step`.
        delay_steps: how many of them are executed until the chunk is there.

        Raises ObservationError if the observation does not fit, and ValueError where the method is `trained` and the
        model was not trained with so long a delay.
        """
        horizon, trained = self.config.model.action_horizon, self.config.model.trained_delay
        queued = queued[:horizon]
        delay_steps = min(delay_steps, len(queued))
        if not len(queued):
            return self.infer(observation, subtask)
        if method == "trained" and delay_steps > trained:
            raise ValueError(
                f"the actor was trained to continue after at most {trained} actions, and {delay_steps} are given: "
                "train it with a larger actor.model.trained_delay, or continue chunks with `guided`"
            )
        self._check(observation)
        rows = np.concatenate([queued, np.repeat(queued[-1:], horizon - len(queued), axis=0)])[None]
        continuation = Continuation(
            method,
            self._preprocess.targets(rows.astype(np.float32), observation.state[None]).to(self._device),
            torch.tensor([delay_steps], device=self._device),
            torch.tensor([len(queued)], device=self._device),
        )
        return self._infer([observation], [subtask], continuation)[0]

    def _infer(
        self, observations: Sequence[Observation], subtasks: Sequence[str], continuation: Continuation | None
    ) -> list[ActionChunk]:
        for observation in observations:
            self._check(observation)
        images = np.stack([np.stack([self._view(o, name) for name in self.config.cameras]) for o in observations])
        seen = np.array([[name in o.images for name in self.config.cameras] for o in observations])
        states = np.stack([observation.state for observation in observations])
        inputs = self._preprocess.inputs(images, states, subtasks, self._device, seen)
        noise = torch.cat([self._noise(observation.step) for observation in observations]).to(self._device)
        sampled = self._sampler.sample(inputs, noise, continuation)
        chunks = self._preprocess.actions(sampled, states)
        if not np.isfinite(chunks).all():
            raise FloatingPointError(
                "the actor's actions are not finite: the weights are damaged, or its numbers overflow in this precision"
            )
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
    path: str | Path,
    seed: int = 0,
    num_steps: int | None = None,
    device: str = "cpu",
    dtype: str | None = None,
    engine: EngineConfig | None = None,
) -> ActorPolicy:
    """Read a weights folder. Raises ValueError (`WeightsError`) if it is missing, damaged or does not fit, and where
    the engine cannot be had.

    num_steps: Euler steps; the folder's config decides if None. engine: how the model is run; None: plainly.
    device, dtype: where it runs, and in which number format (`predimem.core.placement.Placement`); without a dtype the
        engine says it.
    """
    engine = engine or EngineConfig()
    if dtype is not None:
        if dtype not in PRECISIONS:
            raise ValueError(f"an actor runs in {' or '.join(PRECISIONS)}, got dtype: {dtype}")
        engine = replace(engine, dtype=dtype)
    with stage("loading the actor"):
        actor = load_actor(path, device, getattr(torch, engine.weights_dtype))
        return ActorPolicy(actor, seed, num_steps, device, engine)
