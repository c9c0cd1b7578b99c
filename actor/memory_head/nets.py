"""The networks: small enough to be trained in minutes on a CPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from actor.memory_head.config import HeadConfig
from actor.memory_head.rows import RowLayout

FLAT_PIXELS = 1_024  # images of more numbers are read by convolutions
AGE_WAVES = 8


class Encoder(nn.Module):
    """Rows [..., D] to tokens [..., width]."""

    def __init__(self, layout: RowLayout, width: int):
        super().__init__()
        self._layout = layout
        self.convolutions: nn.Module | None = None
        if layout.pixels > FLAT_PIXELS:
            self.convolutions = nn.Sequential(
                nn.Conv2d(layout.image_shape[-1], 16, 4, 3),
                nn.ReLU(),
                nn.Conv2d(16, 24, 4, 2),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(4),
                nn.Flatten(),
            )
        inputs = 24 * 16 + layout.width - layout.pixels if self.convolutions is not None else layout.width
        self.linear = nn.Linear(inputs, width)

    def forward(self, rows: Tensor) -> Tensor:
        if self.convolutions is not None:
            flat = rows.reshape(-1, rows.shape[-1])
            height, width, channels = self._layout.image_shape
            images = flat[:, : self._layout.pixels].reshape(-1, height, width, channels).movedim(-1, 1)
            seen = torch.cat([self.convolutions(images), flat[:, self._layout.pixels :]], -1)
            rows = seen.reshape(*rows.shape[:-1], -1)
        return torch.relu(self.linear(rows))


@dataclass
class Decision:
    """logits: [..., A]. blind: the logits without what the memory gave, None where there is none.
    attention: [..., K] over the keyframes, which sums up to at most 1."""

    logits: Tensor
    blind: Tensor | None = None
    attention: Tensor | None = None


class MemoryHead(nn.Module):
    """Chooses an action from the recent window and from the keyframes that it attends to."""

    def __init__(self, layout: RowLayout, actions: int, config: HeadConfig):
        super().__init__()
        width, half = config.width, config.width // 2
        self.encoder = Encoder(layout, width)
        self.window = nn.Linear(width * config.memory.recent_window, width)
        self.query, self.key = nn.Linear(width, half), nn.Linear(width, half)
        self.by_age = nn.Linear(width, 2 * AGE_WAVES + 1)
        self.value, self.compare = nn.Linear(width, half), nn.Linear(width, half)
        self.choose = nn.Sequential(nn.Linear(width + 2 * half, width), nn.ReLU(), nn.Linear(width, actions))

    def forward(self, window: Tensor, tokens: Tensor, ages: Tensor, there: Tensor) -> Decision:
        """window: tokens [B, S, W, width]. tokens: [B, K, width], shared by an episode's decisions. ages [B, S, K]: how
        many steps ago they were. there [B, S, K]: whether a decision may look at them."""
        now = torch.relu(self.window(window.flatten(-2)))
        query = self.query(now)
        scores = query @ self.key(tokens).transpose(-1, -2) / math.sqrt(query.shape[-1])
        waves = age_features(torch.arange(int(ages.max()) + 1))
        scores = scores + (self.by_age(now) @ waves.T).gather(-1, ages.clamp(min=0))
        scores = scores.masked_fill(~there, -torch.inf)
        nothing = scores.new_zeros(*scores.shape[:-1], 1)  # what is attended to where no keyframe matters
        attention = torch.cat([nothing, scores], -1).softmax(-1)[..., 1:]
        read = attention @ self.value(tokens)
        chosen, blind = (self._choose(now, from_memory) for from_memory in (read, torch.zeros_like(read)))
        return Decision(chosen, blind, attention)

    def _choose(self, now: Tensor, read: Tensor) -> Tensor:
        """The product compares what is seen with what was seen."""
        return self.choose(torch.cat([now, read, self.compare(now) * read], -1))


class Nominator(nn.Module):
    """Whether the newest frame is worth keeping, from it and the one before: logits [...] of rows [..., 2, D]."""

    def __init__(self, layout: RowLayout, width: int):
        super().__init__()
        self.encoder = Encoder(layout, width // 2)
        self.judge = nn.Sequential(nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 1))

    def forward(self, rows: Tensor) -> Tensor:
        return self.judge(self.encoder(rows).flatten(-2)).squeeze(-1)


class StackHead(nn.Module):
    """Chooses an action from the last frames alone."""

    def __init__(self, layout: RowLayout, actions: int, config: HeadConfig):
        super().__init__()
        self.encoder = Encoder(layout, config.width)
        stacked = config.width * config.memory.recent_window
        self.choose = nn.Sequential(
            nn.Linear(stacked, 48), nn.ReLU(), nn.Linear(48, config.width), nn.ReLU(), nn.Linear(config.width, actions)
        )

    def forward(self, window: Tensor) -> Decision:
        return Decision(self.choose(self.encoder(window).flatten(-2)))


class GruHead(nn.Module):
    """Chooses an action from the newest frame and the recurrent state of a `torch.nn.GRU`."""

    def __init__(self, layout: RowLayout, actions: int, config: HeadConfig):
        super().__init__()
        self.encoder = Encoder(layout, config.width)
        self.gru = nn.GRU(config.width, config.width, batch_first=True)
        self.choose = nn.Sequential(nn.Linear(config.width, config.width), nn.ReLU(), nn.Linear(config.width, actions))

    def forward(self, rows: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(logits [B, T, A], the state after the last row, [1, B, width]), of rows [B, T, D]."""
        hidden, after = self.gru(self.encoder(rows), state)
        return self.choose(hidden), after


def age_features(ages: Tensor) -> Tensor:
    """Ages in steps to [..., 2 * AGE_WAVES + 1]: waves of 2 to 4,096 steps, and the logarithm."""
    frequencies = 2 * math.pi / torch.logspace(1, 12, AGE_WAVES, base=2.0)
    angles = ages.unsqueeze(-1) * frequencies
    logarithm = torch.log1p(ages.clamp(min=0).float()).unsqueeze(-1) / 7
    return torch.cat([angles.sin(), angles.cos(), logarithm], -1)


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())
