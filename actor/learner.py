"""The model with its training-only heads, as it is optimised, and the figures that validate it."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from actor import flow_matching, real_time
from actor.dataset import Batch, FrameSet, SamplingConfig
from actor.pi05 import LanguageModel, Pi05, Pi05Config, Prefix
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

    def losses(
        self, batch: Batch, preprocess: Preprocessor, generator: torch.Generator, flow_samples: int
    ) -> dict[str, Tensor]:
        """`flow`, `pointing`, `position`, `sketch` and their weighted sum `total`."""
        device = self.model.language_model.embed_tokens.weight.device
        inputs = preprocess.inputs(batch.images, batch.state, batch.prompts, str(device), batch.seen)
        prefix = self.model.encode(inputs)
        wanted = preprocess.targets(batch.chunks, batch.state).to(device)
        actions = wanted.repeat_interleave(flow_samples, 0)
        noise = torch.randn(actions.shape, generator=generator).to(device)
        time = flow_matching.sample_time(len(actions), generator).to(device)
        losses = {"flow": real_time.flow_loss(self.model, prefix, actions, noise, time, generator)}
        losses["total"] = losses["flow"]
        if self.auxiliary.pointing:
            losses["pointing"] = pointing_loss(prefix, torch.from_numpy(batch.pixels).to(device))
            losses["total"] = losses["total"] + self.auxiliary.pointing * losses["pointing"]
        if self.position is not None:
            target_m = torch.from_numpy(batch.targets_m).to(device)
            losses["position"] = self.position.loss(self.position(prefix.image_tokens), target_m)
            losses["total"] = losses["total"] + self.auxiliary.position * losses["position"]
        if prefix.aim is not None:
            target_m = torch.from_numpy(batch.targets_m).to(device)
            losses["position"] = position_loss(prefix.aim.position_m, target_m)
            losses["sketch"] = sketch_loss(prefix.aim.sketch, wanted)
            for name in ("position", "sketch"):
                losses["total"] = losses["total"] + getattr(self.auxiliary, name) * losses[name]
        return losses


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
    model, position = learner.model, learner.position
    device = str(model.language_model.embed_tokens.weight.device)
    collected: dict[str, list[np.ndarray]] = {}
    for _ in range(batches):
        batch = frames.batch(rng, sampling, augment=False)
        inputs = preprocess.inputs(batch.images, batch.state, batch.prompts, device, batch.seen)
        prefix = model.encode(inputs)
        shape = (len(batch.chunks), batch.chunks.shape[1], model.config.action_dim)
        noise = torch.randn(shape, generator=generator).to(device)
        sampled = flow_matching.integrate(lambda x, t, prefix=prefix: model.velocity(prefix, x, t), noise, num_steps)
        error = np.abs(preprocess.actions(sampled, batch.state) - batch.chunks).mean((1, 2))
        aimed = np.isfinite(batch.targets_m).all(-1)
        instructed = np.array([p in frames.instructions for p in batch.prompts])
        _collect(collected, "action_l1", error[aimed])
        _collect(collected, "hold_l1", error[~aimed & ~instructed])
        located_m = prefix.aim.position_m if prefix.aim else None
        if position is not None:
            located_m = position(prefix.image_tokens)
        if located_m is not None:
            predicted_m = located_m.cpu().numpy()
            distance_m = np.linalg.norm(predicted_m - batch.targets_m, axis=-1)
            _collect(collected, "position_error_m", distance_m[aimed])
        if prefix.pointing is not None:
            _collect(collected, "pointing_accuracy", _pointing_hits(prefix, batch))
    figures = {name: np.concatenate(values) for name, values in collected.items()}
    return {
        name: float(np.median(values) if name == "position_error_m" else values.mean())
        for name, values in figures.items()
        if len(values)
    }


def _collect(collected: dict[str, list[np.ndarray]], name: str, values: np.ndarray) -> None:
    collected.setdefault(name, []).append(values)


def _pointing_hits(prefix: Prefix, batch: Batch) -> np.ndarray:
    assert prefix.pointing is not None
    size = round(prefix.pointing.shape[-1] ** 0.5)
    cell, visible = target_cells(torch.from_numpy(batch.pixels), size)
    best = prefix.pointing.argmax(-1).cpu()
    near = ((best // size - cell // size).abs() <= 1) & ((best % size - cell % size).abs() <= 1)
    return near[visible].numpy()
