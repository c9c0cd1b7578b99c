"""SigLIP's vision tower with PaliGemma's projector, the image encoder of the full-size π0.5."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from actor.gemma import in_precision_of


@dataclass(frozen=True)
class SiglipConfig:
    """Sizes of the tower. The defaults are those of So400m/14 at 224 px, which gives 256 tokens for an image."""

    hidden_size: int = 1152
    intermediate_size: int = 4304
    num_hidden_layers: int = 27
    num_attention_heads: int = 16
    image_size: int = 224
    patch_size: int = 14

    def __post_init__(self) -> None:
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size must be a multiple of patch_size, got {self.image_size} and {self.patch_size}"
            )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "hidden_size must be a multiple of num_attention_heads, got "
                f"{self.hidden_size} and {self.num_attention_heads}"
            )


class SiglipLayer(nn.Module):
    def __init__(self, config: SiglipConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.layer_norm1 = nn.LayerNorm(width, eps=1e-6)
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))
        self.layer_norm2 = nn.LayerNorm(width, eps=1e-6)
        self.fc1 = nn.Linear(width, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, width)

    def forward(self, x: Float[Tensor, "b p d"]) -> Float[Tensor, "b p d"]:
        y = self.layer_norm1(x)
        query, key, value = (
            proj(y).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = F.scaled_dot_product_attention(query, key, value)
        x = x + self.out_proj(attended.transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.layer_norm2(x)), approximate="tanh"))


class SiglipVision(nn.Module):
    """One image to (image_size / patch_size)² tokens of the prefix's width."""

    def __init__(self, config: SiglipConfig, out_width: int) -> None:
        super().__init__()
        patches = (config.image_size // config.patch_size) ** 2
        self.patch_embedding = nn.Conv2d(3, config.hidden_size, config.patch_size, stride=config.patch_size)
        self.position_embedding = nn.Embedding(patches, config.hidden_size)
        self.layers = nn.ModuleList(SiglipLayer(config) for _ in range(config.num_hidden_layers))
        self.post_layernorm = nn.LayerNorm(config.hidden_size, eps=1e-6)
        self.projector = nn.Linear(config.hidden_size, out_width)

    def forward(self, image: Float[Tensor, "b 3 y x"]) -> Float[Tensor, "b p d"]:
        x = self.patch_embedding(image).flatten(2).transpose(1, 2) + self.position_embedding.weight
        x = in_precision_of(x, self.projector.weight)
        for layer in self.layers:
            x = layer(x)
        return self.projector(self.post_layernorm(x))
