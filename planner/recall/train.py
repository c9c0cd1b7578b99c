"""Trains the recall planner on snapshots that are drawn anew in each step, from features that were computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from planner.recall.examples import Tokens
from planner.recall.model import RecallConfig, RecallModel, batch_of

Drawn = tuple[Tokens, int]  # what is shown, and the index of the right answer


@dataclass(frozen=True)
class RecallTraining:
    """steps, batch, rate: AdamW with a linear warm-up of a tenth and a cosine decay.

    noise: standard deviation of what is added to the standardised embeddings: a session is seen many times.
    """

    steps: int = 1000
    batch: int = 48
    rate: float = 1e-3
    weight_decay: float = 0.05
    noise: float = 0.5
    seed: int = 0


def train_recall(
    config: RecallConfig,
    training: RecallTraining,
    mean: np.ndarray,
    scale: np.ndarray,
    draw: Callable[[np.random.Generator], Drawn],
    told: Callable[[int, float], object] = lambda step, loss: None,
) -> RecallModel:
    """mean, scale: float [D] of the embeddings. draw: one example. told: (step, mean loss since the last time)."""
    torch.manual_seed(training.seed)
    rng, noise = np.random.default_rng(training.seed), torch.Generator().manual_seed(training.seed)
    model = RecallModel(config)
    model.get_buffer("mean").copy_(torch.from_numpy(np.asarray(mean, np.float32)))
    model.get_buffer("scale").copy_(torch.from_numpy(np.maximum(np.asarray(scale, np.float32), 1e-3)))
    optimiser = torch.optim.AdamW(model.parameters(), training.rate, weight_decay=training.weight_decay)
    warm = max(1, training.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda s: min((s + 1) / warm, 0.5 + 0.5 * np.cos(np.pi * max(0, s - warm) / max(1, training.steps - warm))),
    )
    losses: list[float] = []
    for step in range(1, training.steps + 1):
        drawn = [draw(rng) for _ in range(training.batch)]
        embeddings, *rest = batch_of([tokens for tokens, _ in drawn])
        jitter = torch.randn(embeddings.shape, generator=noise) * training.noise * model.get_buffer("scale")
        logits = model(embeddings + jitter, *rest)
        loss = F.cross_entropy(logits, torch.tensor([answer for _, answer in drawn]))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == training.steps:
            told(step, float(np.mean(losses[-50:])))
    return model.eval()
