"""The tiny actor's image encoder: a convolutional map for each camera, read by queries that know the prompt.

A patch transformer that is trained from scratch on a few hundred episodes does not learn to find objects. Attention
from prompt-conditioned queries to a 32 x 32 map with explicit positions does, because the pointing loss teaches one
attention head where to look (in training only).
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

STRIDE = 4


@dataclass(frozen=True)
class ConvStemConfig:
    """Sizes of the image encoder.

    image_size: the side of an image in pixels; the map's side is a quarter of it.
    channels: the widths of the three convolutions.
    queries: how many image tokens each camera gives.
    heads: how many attention heads there are.
    position_octaves: how many frequencies the features of a position have.
    context: whether there is a fourth convolution, at half the map's resolution, which sees 37 pixels instead of 17.
        It is for things that are near.
    attention_width: the width of queries, keys and values together. With 0 it is the prefix's width, and there is no
        projection back.
    """

    image_size: int = 128
    channels: tuple[int, ...] = (16, 32, 48)
    queries: int = 8
    heads: int = 4
    position_octaves: int = 5
    context: bool = False
    attention_width: int = 0

    def __post_init__(self) -> None:
        if self.image_size % STRIDE:
            raise ValueError(f"image_size must be a multiple of {STRIDE}, got {self.image_size}")
        if len(self.channels) != 3:
            raise ValueError(f"channels must name the three convolutions' widths, got {self.channels}")

    @property
    def map_size(self) -> int:
        return self.image_size // STRIDE


class ConvStem(nn.Module):
    """Turns the images of all cameras into image tokens, given the prompt's embeddings."""

    grid: Tensor

    def __init__(self, config: ConvStemConfig, num_cameras: int, width: int) -> None:
        super().__init__()
        inner = config.attention_width or width
        if inner % config.heads:
            raise ValueError(f"the width of attention {inner} must be a multiple of {config.heads} heads")
        self.config = config
        self.maps = nn.ModuleList(_FeatureMap(config.channels, config.context) for _ in range(num_cameras))
        self.camera = nn.Parameter(torch.randn(num_cameras, width) * 0.02)
        self.register_buffer("grid", _grid_features(config), persistent=False)
        self.query = nn.Parameter(torch.randn(config.queries, width) * 0.1)
        self.prompt_norm = nn.LayerNorm(width)
        self.prompt_attention = nn.MultiheadAttention(width, config.heads, batch_first=True)
        self.query_mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, inner))
        features = config.channels[-1] + 3
        self.map_norm = nn.LayerNorm(features)
        self.key = nn.Linear(features, inner, bias=False)
        self.value = nn.Linear(features + self.grid.shape[-1], inner)
        self.output = nn.Linear(inner, width) if config.attention_width else nn.Identity()
        self.token_mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(
        self,
        images: Float[Tensor, "b c 3 y x"],
        prompt: Float[Tensor, "n l d"],
        prompt_mask: Bool[Tensor, "n l"],
    ) -> tuple[Float[Tensor, "n c q d"], Float[Tensor, "n c cells"]]:
        """Image tokens and, per camera, the pointing scores (logits over the map's cells, row by row).

        Prompts come in groups: n is a multiple of b, and prompt i is asked about image i // (n / b).
        """
        groups = len(prompt) // len(images)
        queries = self._queries(prompt, prompt_mask)
        grid = self.grid.expand(len(images), -1, -1)
        tokens, scores = [], []
        for camera, feature_map in enumerate(self.maps):
            features = feature_map(images[:, camera])
            key = self._heads(self.key(self.map_norm(features)))
            value = self._heads(self.value(torch.cat([features, grid], dim=-1)))
            query = self.query_mlp(queries + self.camera[camera])
            asked = self._heads(query.unflatten(0, (-1, groups)).flatten(1, 2))  # b heads (groups q) d
            attended = F.scaled_dot_product_attention(asked, key, value).transpose(1, 2).flatten(2)
            attended = self.output(attended).unflatten(1, (groups, -1)).flatten(0, 1) + self.camera[camera]
            tokens.append(attended + self.token_mlp(attended))
            pointer = asked[:, 0].unflatten(1, (groups, -1))[:, :, 0]  # first head of the first query
            score = pointer @ key[:, 0].transpose(-1, -2) / math.sqrt(pointer.shape[-1])
            scores.append(score.flatten(0, 1))
        return torch.stack(tokens, dim=1), torch.stack(scores, dim=1)

    def _queries(self, prompt: Tensor, prompt_mask: Tensor) -> Float[Tensor, "n q d"]:
        """The learned queries after they have read the prompt."""
        query = self.query.expand(len(prompt), -1, -1)
        words = self.prompt_norm(prompt)
        read, _ = self.prompt_attention(query, words, words, key_padding_mask=~prompt_mask, need_weights=False)
        return query + read

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.config.heads, -1)).transpose(1, 2)


class _FeatureMap(nn.Module):
    """Three convolutions (and one for `context`) to a quarter of the resolution; each cell also keeps its colour."""

    def __init__(self, channels: tuple[int, ...], context: bool) -> None:
        super().__init__()
        first, second, third = channels
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, first, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv2d(first, second, 3, stride=2, padding=1),
            nn.GroupNorm(4, second),
            nn.GELU(),
            nn.Conv2d(second, third, 3, padding=1),
            nn.GroupNorm(4, third),
            nn.GELU(),
        )
        self.context: nn.Module | None = None
        if context:
            self.context = nn.Sequential(
                nn.AvgPool2d(2), nn.Conv2d(third, third, 3, padding=1), nn.GroupNorm(4, third), nn.GELU()
            )

    def forward(self, image: Float[Tensor, "b 3 y x"]) -> Float[Tensor, "b cells features"]:
        seen = self.convolutions(image)
        if self.context is not None:
            seen = seen + F.interpolate(self.context(seen), scale_factor=2.0)
        features = torch.cat([seen, F.avg_pool2d(image, STRIDE)], dim=1)
        return features.flatten(2).transpose(1, 2)


def _grid_features(config: ConvStemConfig) -> Float[Tensor, "cells features"]:
    """Each cell's centre in [-1, 1]² and its sines and cosines in octaves."""
    line = (torch.arange(config.map_size) + 0.5) / config.map_size * 2 - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    frequencies = math.pi / 2 * 2.0 ** torch.arange(config.position_octaves)
    waves = [wave(axis[..., None] * frequencies) for axis in (x, y) for wave in (torch.sin, torch.cos)]
    return torch.cat([torch.stack([x, y], dim=-1), *waves], dim=-1).flatten(0, 1)
