"""Turns observations and labels into tensors and back. Training and inference share it."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from actor.normalize import NormStats
from actor.pi05 import Prompted
from actor.robot_space import RobotSpace
from actor.tiny.pose import poses
from actor.tokenizer import Tokenizer, tokenize
from actor.transforms import Discretise, Normalise, PadActions, Unnormalise, UnpadActions
from actor.weights import ActorConfig


class Preprocessor:
    def __init__(self, config: ActorConfig, stats: NormStats, tokenizer: Tokenizer) -> None:
        if tokenizer.vocab_size > config.model.vocab_size:
            raise ValueError(
                f"the tokenizer has {tokenizer.vocab_size} tokens, model.vocab_size is only "
                f"{config.model.vocab_size}: raise it in the config"
            )
        exact = config.openpi_exact
        self._config = config
        self._tokenizer = tokenizer
        self._space = RobotSpace(config)
        self._normalise_state, self._discretise = Normalise(stats.state, exact), Discretise(openpi_exact=exact)
        self._normalise, self._unnormalise = Normalise(stats.actions, exact), Unnormalise(stats.actions, exact)
        self._pad = PadActions(config.model.action_dim)
        self._unpad = UnpadActions(config.action_dim)

    def inputs(
        self,
        images: np.ndarray,
        state: np.ndarray,
        prompts: Sequence[str],
        device: str = "cpu",
        seen: np.ndarray | None = None,
    ) -> Prompted:
        """images: uint8 [b, C, H, W, 3] of the model's size; state: float32 [b, D]; n = b · g prompts.

        seen: bool [b, C], False where a camera is missing; None: all are there. Raises ObservationError for a prompt
        that is too long, where the config refuses such.
        """
        normalised = self._normalise_state(self._space.state(state))
        as_token = self._config.model.state_dim > 0
        bins = self._discretise(normalised[:, :0] if as_token else normalised)
        bins = np.repeat(bins, len(prompts) // len(images), axis=0)
        cut = self._config.long_prompts == "cut"
        tokens, mask = tokenize(self._tokenizer, prompts, bins, self._config.model.max_token_len, cut)
        pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 1, 4, 2, 3))).to(device)
        seen = np.ones(images.shape[:2], bool) if seen is None else seen
        image_mask = torch.from_numpy(seen).to(device)
        return Prompted(
            images=(pixels.float() / 127.5 - 1).masked_fill(~image_mask[..., None, None, None], -1.0),
            image_mask=image_mask,
            tokens=torch.from_numpy(tokens).to(device),
            token_mask=torch.from_numpy(mask).to(device),
            state=torch.from_numpy(np.float32(normalised)).to(device) if as_token else None,
            pose=torch.from_numpy(self._pose(state)).to(device) if self._config.model.locate else None,
        )

    def _pose(self, state: np.ndarray) -> np.ndarray:
        """float32 [b, 9]: see `Prompted`."""
        pose = poses(state, self._config.rotation, self._config.tcp)
        pose[:, :3] -= np.array(self._config.base_m, np.float32)
        return pose

    def targets(self, chunks: np.ndarray, state: np.ndarray) -> Float[Tensor, "n h a"]:
        """Physical action chunks [n, H, A] to the model's normalised, padded ones. state: float32 [b, D], where
        n = b · g."""
        relative = self._space.to_model(chunks, np.repeat(state, len(chunks) // len(state), axis=0))
        return torch.from_numpy(np.float32(self._pad(self._normalise(relative))))

    def actions(self, chunks: Float[Tensor, "n h a"], state: np.ndarray) -> np.ndarray:
        """The inverse of `targets`: float32 [n, H, A] in physical units."""
        relative = self._unnormalise(self._unpad(chunks.float().cpu().numpy()))
        state = np.repeat(state, len(chunks) // len(state), axis=0)
        return self._space.to_robot(relative, state).astype(np.float32)
