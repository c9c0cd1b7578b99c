"""π0.5 for inference: the same equations as `actor.pi05`, for one prompt an image, with everything that does not depend
on the observation computed beforehand.

It shares with the plain model what it uses as it is, and has matrices of its own for the layers: where the plain model
is let go of, no weight is kept twice.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from actor.engine.layers import FusedLayer, KeysValues, Modulation, normed, rotations
from actor.engine.linear import Fp8Product, Product
from actor.engine.schedule import Schedule
from actor.engine.vision import FusedConvStem, FusedSiglip
from actor.gemma import GemmaLayer
from actor.pi05 import Pi05, Prompted
from actor.siglip import SiglipVision
from actor.tiny.conv_stem import ConvStem


@dataclass(frozen=True, eq=False)
class FusedPrefix:
    """What the action expert needs of an observation.

    cache: keys and values of every layer, padding included.
    bias: 0 or minus infinity for each key of the cache and of the chunk; None where there is no padding.
    rotation: that of the chunk's positions.
    hint: what the locator adds to the condition; None without one.
    """

    cache: list[KeysValues]
    bias: Float[Tensor, "n 1 1 s"] | None
    rotation: Tensor
    hint: Float[Tensor, "n width"] | None


class FusedPi05(nn.Module):
    """Made from a plain model, whose weights and precision it takes over."""

    def __init__(self, model: Pi05, num_steps: int, fp8: bool = False) -> None:
        super().__init__()
        self.config = model.config
        self.plain = _without_layers(model)
        self._dtype = model.action_expert.precision().dtype
        make = Fp8Product if fp8 else Product
        with torch.no_grad():
            self.layers, self.expert = (
                nn.ModuleList(_fused(layer, make) for layer in part.layers)
                for part in (model.language_model, model.action_expert)
            )
            self.schedule = Schedule(model.action_expert, num_steps, hints=model.locator is not None)
            vision = model.vision
            self.vision = FusedSiglip(vision) if isinstance(vision, SiglipVision) else FusedConvStem(_stem(vision))

    def forward(
        self, inputs: Prompted, noise: Float[Tensor, "n h a"], always_mask: bool = False
    ) -> Float[Tensor, "n h a"]:
        """Action chunks, normalised as in training, from the given noise."""
        return self.integrate(self.encode(inputs, always_mask), noise)

    def encode(self, inputs: Prompted, always_mask: bool = False) -> FusedPrefix:
        """always_mask: whether there is a bias even where nothing is padded, so that shapes alone decide what runs.

        Raises ValueError unless there is one prompt for each image.
        """
        model, c = self.plain, self.config
        if len(inputs.tokens) != len(inputs.images):
            raise ValueError(f"the fused engine takes one prompt an image, got {len(inputs.tokens)} prompts")
        prompt, prompt_mask = model._prompt(inputs, 1)
        image_tokens, pointing = self._see(inputs, prompt, prompt_mask)
        x = torch.cat([image_tokens.flatten(1, 2).to(prompt.dtype), prompt], dim=1)
        mask = torch.cat([inputs.image_mask.repeat_interleave(image_tokens.shape[2], 1), prompt_mask], dim=1)
        hint = None
        if model.locator is not None:
            aim = model._aim(inputs, image_tokens, pointing, prompt, 1)
            x, mask = torch.cat([x, aim.token.to(x.dtype)], dim=1), torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            hint = aim.condition
        bias = None
        if always_mask or not bool(mask.all()):
            shown = torch.cat([mask, mask.new_ones(len(mask), c.action_horizon)], dim=1)
            bias = torch.zeros(shown.shape, dtype=x.dtype, device=x.device).masked_fill(~shown, -math.inf)
            bias = bias[:, None, None]
        steps = torch.arange(c.action_horizon, device=x.device)
        rotation = rotations(mask.sum(-1, keepdim=True) + steps, c.action_expert)
        return FusedPrefix(self._cache(x, mask, bias), bias, rotation, hint)

    def integrate(
        self,
        prefix: FusedPrefix,
        noise: Float[Tensor, "n h a"],
        given: Float[Tensor, "n h a"] | None = None,
        known: Bool[Tensor, "n h"] | None = None,
    ) -> Float[Tensor, "n h a"]:
        """Euler from noise to actions. given, known: the actions that are known stay as they are, at time 0."""
        x = noise
        for modulations in self.schedule.rows(prefix.hint, known):
            if known is not None and given is not None:
                x = torch.where(known[..., None], given, x)
            x = torch.sub(x, self.velocity(prefix, x, modulations), alpha=1.0 / self.schedule.num_steps)
        return x if known is None or given is None else torch.where(known[..., None], given, x)

    def velocity(
        self, prefix: FusedPrefix, noisy_actions: Float[Tensor, "n h a"], modulations: list[Modulation]
    ) -> Float[Tensor, "n h a"]:
        expert = self.plain.action_expert
        x = expert.action_in_proj(noisy_actions).to(self._dtype)
        for i, (layer, cached) in enumerate(zip(self.expert, prefix.cache, strict=True)):
            x, _ = layer(x, prefix.rotation, prefix.bias, cached, (modulations[2 * i], modulations[2 * i + 1]))
        return expert.action_out_proj(normed(x, modulations[-1]).float())

    def _cache(self, x: Tensor, mask: Tensor, bias: Tensor | None) -> list[KeysValues]:
        rotation = rotations(mask.cumsum(-1) - 1, self.config.paligemma)
        seen = None if bias is None else bias[..., : x.shape[1]]
        cache = []
        for layer in self.layers[:-1]:
            x, own = layer(x, rotation, seen)
            cache.append(own)
        last = self.layers[-1]
        assert isinstance(last, FusedLayer)
        return [*cache, last.query_keys_values(normed(x, None), rotation)[1]]

    def _see(self, inputs: Prompted, prompt: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        if isinstance(self.vision, FusedConvStem):
            return self.vision(inputs.images, prompt.to(self.vision.plain.query.dtype), mask)
        tokens = self.vision(inputs.images.flatten(0, 1))
        return tokens.unflatten(0, inputs.images.shape[:2]), None


def _without_layers(model: Pi05) -> Pi05:
    """The same modules, but for what is fused. The model itself stays as it is."""
    shell = _shallow(model)
    if isinstance(model.vision, SiglipVision):
        shell.vision = nn.Identity()  # FusedSiglip holds what is left of it
    for name in ("language_model", "action_expert"):
        part = _shallow(getattr(model, name))
        part.layers = nn.ModuleList()
        setattr(shell, name, part)
    assert isinstance(shell, Pi05)
    return shell


def _shallow(module: nn.Module) -> nn.Module:
    """Another module with the same children, of which it may be given others."""
    other = copy.copy(module)
    other._modules = dict(module._modules)
    return other


def _fused(layer: nn.Module, make: type[Product] | type[Fp8Product]) -> FusedLayer:
    assert isinstance(layer, GemmaLayer)
    return FusedLayer(layer, make)


def _stem(vision: nn.Module) -> ConvStem:
    assert isinstance(vision, ConvStem)
    return vision
