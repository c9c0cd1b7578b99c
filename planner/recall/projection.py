"""Learns which views belong together: a linear map of a frozen tower's embeddings for `memory_bank.retrieval.Gate`.

Each step draws one question of every group (a family of tasks): the present view, and a session of the same group. The
view has to be more like its own session, by that session's most similar frame, than like those of the other groups:
softmax cross-entropy over cosines (InfoNCE, arXiv:1807.03748).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch.nn import functional as F

Question = tuple[np.ndarray, np.ndarray]  # the view [D], and the frames [F, D] of a session that belongs to it


def train_projection(
    groups: Sequence[Callable[[np.random.Generator], Question]],
    frames: np.ndarray,
    dimensions: int = 32,
    steps: int = 600,
    temperature: float = 0.1,
    seed: int = 0,
) -> np.ndarray:
    """float32 [D, dimensions], for embeddings without the mean of `frames`.

    groups: each draws one of its questions. frames: float [N, D], whose spread scales each number. Raises ValueError
    for fewer than two groups, which give nothing to tell apart.
    """
    if len(groups) < 2:
        raise ValueError(f"a projection learns to tell groups apart: expected two or more, got {len(groups)}")
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    mean = np.asarray(frames.mean(0), np.float32)
    scale = np.maximum(np.asarray(frames.std(0), np.float32), 1e-3)
    layer = torch.nn.Linear(len(mean), dimensions, bias=False)
    optimiser = torch.optim.AdamW(layer.parameters(), 1e-3)

    def mapped(embeddings: np.ndarray) -> torch.Tensor:
        return F.normalize(layer(torch.from_numpy((embeddings - mean) / scale).float()), dim=-1)

    for _ in range(steps):
        views, sessions = zip(*(draw(rng) for draw in groups), strict=True)
        cosines = mapped(np.stack(views)) @ mapped(np.concatenate(sessions)).T
        parts = cosines.split([len(session) for session in sessions], 1)
        likeness = torch.stack([part.amax(1) for part in parts], 1)
        loss = F.cross_entropy(likeness / temperature, torch.arange(len(groups)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return (layer.weight.detach().numpy() / scale).T.astype(np.float32)
