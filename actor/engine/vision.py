"""The image encoders in fewer operations."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from actor.gemma import in_precision_of
from actor.siglip import SiglipLayer, SiglipVision
from actor.tiny.conv_stem import ConvStem


class FusedSiglip(nn.Module):
    """SigLIP with one product for query, key and value."""

    def __init__(self, vision: SiglipVision) -> None:
        super().__init__()
        self.patches, self.positions = vision.patch_embedding, vision.position_embedding
        self.layers = nn.ModuleList(_FusedSiglipLayer(layer) for layer in vision.layers)
        self.norm, self.projector = vision.post_layernorm, vision.projector

    def forward(self, image: Float[Tensor, "b 3 y x"]) -> Float[Tensor, "b p d"]:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.positions.weight
        x = in_precision_of(x, self.projector.weight)
        for layer in self.layers:
            x = layer(x)
        return self.projector(self.norm(x))


class _FusedSiglipLayer(nn.Module):
    weight: Tensor
    bias: Tensor

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        assert isinstance(layer, SiglipLayer)
        self.num_heads = layer.num_heads
        self.before, self.output = layer.layer_norm1, layer.out_proj
        self.after, self.up, self.down = layer.layer_norm2, layer.fc1, layer.fc2
        projections = (layer.q_proj, layer.k_proj, layer.v_proj)
        self.register_buffer("weight", torch.cat([proj.weight.detach() for proj in projections]))
        self.register_buffer("bias", torch.cat([proj.bias.detach() for proj in projections]))

    def forward(self, x: Float[Tensor, "b p d"]) -> Float[Tensor, "b p d"]:
        qkv = F.linear(self.before(x), self.weight, self.bias).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))  # OpenVINO misreads one permute of all
        attended = F.scaled_dot_product_attention(query, key, value)
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))


class FusedConvStem(nn.Module):
    """The convolutional stem, whose few queries are brought to the many cells, not the cells to the queries.

    Keys are linear in a cell's features, so that a score is the product of the query, brought back through the key's
    matrix, and the features. Values are linear, too: the features' weighted means are projected, not the features. The
    norm before the keys is part of both.
    """

    def __init__(self, stem: ConvStem) -> None:
        super().__init__()
        self.plain = stem
        heads = stem.config.heads
        norm = stem.map_norm
        key = stem.key.weight.detach()
        # A query's head becomes a vector over the features, and a constant that the pointing sees and no softmax does.
        self.register_buffer("key", (key * norm.weight.detach()).unflatten(0, (heads, -1)))
        self.register_buffer("key_bias", (key @ norm.bias.detach()).unflatten(0, (heads, -1)))
        value = stem.value.weight.detach().unflatten(0, (heads, -1))
        self.register_buffer("value", value.transpose(1, 2).contiguous())
        self.register_buffer("value_bias", stem.value.bias.detach().unflatten(0, (heads, 1, -1)))

    key: Tensor
    key_bias: Tensor
    value: Tensor
    value_bias: Tensor

    def forward(
        self, images: Float[Tensor, "n c 3 y x"], prompt: Float[Tensor, "n l d"], prompt_mask: Bool[Tensor, "n l"]
    ) -> tuple[Float[Tensor, "n c q d"], Float[Tensor, "n c cells"]]:
        """As `ConvStem`, with one prompt for each image."""
        stem = self.plain
        queries = stem._queries(prompt, prompt_mask)
        tokens, scores = [], []
        for camera, feature_map in enumerate(stem.maps):
            cells = feature_map(images[:, camera])  # n cells features
            asked = stem._heads(stem.query_mlp(queries + stem.camera[camera]))  # n heads q inner/heads
            asked = asked * (1.0 / math.sqrt(asked.shape[-1]))
            wanted = asked @ self.key  # n heads q features
            constant = (asked * self.key_bias[:, None]).sum(-1, keepdim=True)
            unit = F.layer_norm(cells, cells.shape[-1:], eps=stem.map_norm.eps)
            score = wanted.flatten(1, 2) @ unit.transpose(1, 2)  # n heads·q cells
            weights = score.softmax(-1)
            seen = torch.cat([weights @ cells, weights @ stem.grid], dim=-1).unflatten(1, wanted.shape[1:3])
            attended = (seen @ self.value + self.value_bias).transpose(1, 2).flatten(2)
            attended = stem.output(attended) + stem.camera[camera]
            tokens.append(attended + stem.token_mlp(attended))
            scores.append(score[:, 0] + constant[:, 0, 0])
        return torch.stack(tokens, dim=1), torch.stack(scores, dim=1)
