"""The model with its training-only heads, as it is optimised, and the figures that validate it."""

# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from actor import flow_matching, real_time
from actor.dataset import Batch, FrameSet, SamplingConfig
from actor.pi05 import LanguageModel, Pi05, Pi05Config
from actor.preprocess import Preprocessor
from actor.tiny.auxiliary import AuxiliaryConfig, PositionHead, pointing_loss, target_cells
from actor.tiny.locator import position_loss, sketch_loss


class Learner(nn.Module):
    """Pi05 plus the position head, where the config gives its loss a weight and the model does not locate itself."""

    def __init__(self, config: Pi05Config, auxiliary: AuxiliaryConfig, targets_m: np.ndarray) -> None:
        """targets_m: float32 [m, 3], the training targets, for the position head's scale; may be empty."""
        super().__init__()
        if config.vision == "siglip" and (auxiliary.pointing or auxiliary.position):
            raise ValueError("auxiliary losses need vision: conv; set their weights to 0")
        self.model = Pi05(config)
        self.auxiliary = auxiliary
        self.position: PositionHead | None = None
        if auxiliary.position and self.model.locator is None:
            known = torch.from_numpy(targets_m) if len(targets_m) else torch.zeros(1, 3)
            std_m = known.std(0, correction=0).clamp_min(0.02)
            self.position = PositionHead(config, known.mean(0), std_m)

    def forward(
        self,
        batch: Batch,
        preprocess: Preprocessor,
        noise: Float[Tensor, "m h a"],
        time: Float[Tensor, " m"],
        delay: Int[Tensor, " m"] | None = None,
    ) -> dict[str, Tensor]:
        """`flow`, `pointing`, `position`, `sketch` and their weighted sum `total`.

        noise, time, delay: of the m = n · g flow samples, g for each prompt in turn; delay: see `real_time.flow_loss`.
        For a part of a batch, the losses are
        what it adds to the mean over the parts.
        """
        device = self.device
        inputs = preprocess.inputs(batch.images, batch.state, batch.prompts, str(device), batch.seen)
        prefix = self.model.encode(inputs)
        wanted = preprocess.targets(batch.chunks, batch.state).to(device)
        actions, noise, time = wanted.repeat_interleave(len(noise) // len(wanted), 0), noise.to(device), time.to(device)
        delay = None if delay is None else delay.to(device)
        losses = {"flow": real_time.flow_loss(self.model, prefix, actions, noise, time, delay)}
        losses["total"] = losses["flow"]
        if self.auxiliary.pointing:
            pointing = pointing_loss(prefix, torch.from_numpy(batch.pixels).to(device))
            losses["pointing"] = batch.in_view_weight * pointing
            losses["total"] = losses["total"] + self.auxiliary.pointing * losses["pointing"]
        if self.position is not None:
            target_m = torch.from_numpy(batch.targets_m).to(device)
            position = self.position.loss(self.position(prefix.image_tokens), target_m)
            losses["position"] = batch.aimed_weight * position
            losses["total"] = losses["total"] + self.auxiliary.position * losses["position"]
        if prefix.aim is not None:
            target_m = torch.from_numpy(batch.targets_m).to(device)
            losses["position"] = batch.aimed_weight * position_loss(prefix.aim.position_m, target_m)
            losses["sketch"] = sketch_loss(prefix.aim.sketch, wanted)
            for name in ("position", "sketch"):
                losses["total"] = losses["total"] + getattr(self.auxiliary, name) * losses[name]
        return losses

    def predict(
        self, batch: Batch, preprocess: Preprocessor, noise: Float[Tensor, "n h a"], num_steps: int
    ) -> Prediction:
        device = self.device
        inputs = preprocess.inputs(batch.images, batch.state, batch.prompts, str(device), batch.seen)
        prefix = self.model.encode(inputs)
        sampled = flow_matching.integrate(lambda x, t: self.model.velocity(prefix, x, t), noise.to(device), num_steps)
        located_m = prefix.aim.position_m if prefix.aim else None
        if self.position is not None:
            located_m = self.position(prefix.image_tokens)
        return Prediction(preprocess.actions(sampled, batch.state), located_m, prefix.pointing)

    @property
    def device(self) -> torch.device:
        return self.model.language_model.embed_tokens.weight.device


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the model says of n prompts.

    actions: float32 [n, H, A] in physical units. located_m: where it takes the targets to be. pointing: as in `Prefix`.
    """

    actions: np.ndarray
    located_m: Float[Tensor, "n 3"] | None
    pointing: Float[Tensor, "n c cells"] | None


def order_number_embeddings(language_model: LanguageModel, number_ids: list[int], generator: torch.Generator) -> None:
    """Start the embeddings of the state bins 0 ... 255 on a smooth curve, so that near bins are alike.

    A pretrained language model knows the order of numbers; one that starts from a few hundred
    episodes would have to see each bin of each dimension often enough to learn it.
    """
    weight = language_model.embed_tokens.weight
    where = torch.arange(len(number_ids))[:, None] / len(number_ids)
    frequencies = 0.5 * 2.0 ** torch.linspace(0, 5, 16)
    angles = 2 * math.pi * where * frequencies
    features = torch.cat([where * 2 - 1, angles.sin(), angles.cos()], dim=-1)
    projection = torch.randn(features.shape[1], weight.shape[1], generator=generator)
    curve = features @ projection
    with torch.no_grad():
        weight[number_ids] = (curve / curve.std() * weight.shape[1] ** -0.5).to(weight)


@torch.no_grad()
def embed_new_words(language_model: LanguageModel, ids: range, unknown_id: int) -> None:
    """Start the embeddings of words that a tokenizer has got after the others near that of the unknown word, as
    which they were read before."""
    weight = language_model.embed_tokens.weight
    weight[list(ids)] = weight[unknown_id] + 0.5 * weight[list(ids)]


@torch.no_grad()
def validate(
    learner: Learner,
    frames: FrameSet,
    preprocess: Preprocessor,
    sampling: SamplingConfig,
    num_steps: int,
    batches: int = 8,
) -> dict[str, float]:
    """Figures on unseen episodes, always on the same draws.

    action_l1: mean absolute error of sampled chunks, physical units, where the prompt has a target;
    hold_l1: where it has none; position_error_m: median error of the position head;
    pointing_accuracy: the best cell is the target's or beside it, over the cameras that see it.
    """
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    model = learner.model.config
    collected: dict[str, list[np.ndarray]] = {}
    for _ in range(batches):
        batch = frames.batch(rng, sampling, augment=False)
        noise = torch.randn(len(batch.chunks), model.action_horizon, model.action_dim, generator=generator)
        predicted = learner.predict(batch, preprocess, noise, num_steps)
        error = np.abs(predicted.actions - batch.chunks).mean((1, 2))
        aimed = np.isfinite(batch.targets_m).all(-1)
        instructed = np.array([p in frames.instructions for p in batch.prompts])
        _collect(collected, "action_l1", error[aimed])
        _collect(collected, "hold_l1", error[~aimed & ~instructed])
        if predicted.located_m is not None:
            distance_m = np.linalg.norm(predicted.located_m.float().cpu().numpy() - batch.targets_m, axis=-1)
            _collect(collected, "position_error_m", distance_m[aimed])
        if predicted.pointing is not None:
            _collect(collected, "pointing_accuracy", _pointing_hits(predicted.pointing, batch))
    figures = {name: np.concatenate(values) for name, values in collected.items()}
    return {
        name: float(np.median(values) if name == "position_error_m" else values.mean())
        for name, values in figures.items()
        if len(values)
    }


def _collect(collected: dict[str, list[np.ndarray]], name: str, values: np.ndarray) -> None:
    collected.setdefault(name, []).append(values)


def _pointing_hits(pointing: Tensor, batch: Batch) -> np.ndarray:
    size = round(pointing.shape[-1] ** 0.5)
    cell, visible = target_cells(torch.from_numpy(batch.pixels), size)
    best = pointing.argmax(-1).cpu()
    near = ((best // size - cell // size).abs() <= 1) & ((best % size - cell % size).abs() <= 1)
    return near[visible].numpy()
