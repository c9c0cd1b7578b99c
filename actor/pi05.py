"""π0.5: images and a prompt make the prefix, and the action expert integrates a flow that reads it.

The config sizes the model. The full one is SigLIP So400m + gemma_2b + gemma_300m (the defaults); the tiny one has a
convolutional stem in place of SigLIP. Both are this one class. openpi's equations, in order:
  prefix   = Gemma([image tokens, √d · prompt embeddings])     bidirectional, state is in the prompt
  x_t      = t · noise + (1 - t) · actions,   u = noise - actions
  v(x_t,t) = expert(x_t | adaRMS(t), prefix keys and values)
  loss     = (v - u)²,   actions = Euler from t = 1 to 0
The prefix never sees the action tokens, so that it is computed once per observation.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from actor import flow_matching
from actor.action_expert import ActionExpert
from actor.gemma import GemmaConfig, GemmaLayer, KeyValue, RMSNorm, rotary_embedding
from actor.siglip import SiglipConfig, SiglipVision
from actor.tiny.conv_stem import ConvStem, ConvStemConfig
from actor.tiny.locator import Aim, Locator
from actor.tiny.pose import POSE_DIM


@dataclass(frozen=True)
class Pi05Config:
    """Sizes of the whole model. The defaults are those of pi05_base.

    vision: which image encoder there is, "siglip" or "conv".
    siglip, conv: the sizes of either encoder.
    paligemma: the sizes of the prefix's language model.
    action_expert: the sizes of the action expert.
    num_cameras: how many cameras there are.
    vocab_size: how many tokens the prompt's vocabulary has at most.
    max_token_len: how many tokens a prompt has at most.
    action_dim: how many numbers an action has.
    action_horizon: how many actions a chunk has.
    state_dim: 0 writes the state into the prompt, as π0.5 does. Otherwise so many numbers become one token, as in π0,
        which is shorter and exact; a model without pretraining needs that.
    locate: whether there is a `Locator`. It needs `vision: conv` and the TCP's pose.
    trained_delay: in training up to so many first actions of a chunk are given, so that the model learns to continue
        the chunk before (`actor.real_time`). 0: none, as in openpi.
    """

    vision: Literal["siglip", "conv"] = "siglip"
    siglip: SiglipConfig = field(default_factory=SiglipConfig)
    conv: ConvStemConfig = field(default_factory=ConvStemConfig)
    paligemma: GemmaConfig = field(default_factory=GemmaConfig)
    action_expert: GemmaConfig = field(default_factory=lambda: GemmaConfig(width=1024, mlp_dim=4096))
    num_cameras: int = 2
    vocab_size: int = 257_152
    max_token_len: int = 200
    action_dim: int = 32
    action_horizon: int = 50
    state_dim: int = 0
    locate: bool = False
    trained_delay: int = 0

    def __post_init__(self) -> None:
        for name in ("depth", "num_heads", "num_kv_heads", "head_dim"):
            prefix, expert = getattr(self.paligemma, name), getattr(self.action_expert, name)
            if prefix != expert:
                raise ValueError(
                    f"paligemma.{name} and action_expert.{name} must be equal because the expert reads the "
                    f"prefix's keys and values layer by layer; got {prefix} and {expert}"
                )
        if self.locate and (self.vision != "conv" or not self.state_dim):
            raise ValueError("locate needs vision: conv and state_dim > 0")
        if not 0 <= self.trained_delay < self.action_horizon:
            raise ValueError(
                f"trained_delay has to leave something of the {self.action_horizon} actions to predict, got "
                f"{self.trained_delay}"
            )

    @property
    def image_size(self) -> int:
        return self.siglip.image_size if self.vision == "siglip" else self.conv.image_size


@dataclass(frozen=True, eq=False)
class Prompted:
    """The model's input: b images, and n = b · g prompts about them, g for each image in turn.

    images: values in [-1, 1], with the cameras in the config's order.
    image_mask: False where a camera is missing.
    tokens: the prompts' tokens.
    token_mask: False where a prompt is padded.
    state: the normalised state, where the config has a `state_dim`.
    pose: where the config says `locate`, the TCP's position in the robot's base frame in m, and the first two columns
        of its rotation.
    """

    images: Float[Tensor, "b c 3 y x"]
    image_mask: Bool[Tensor, "b c"]
    tokens: Int[Tensor, "n l"]
    token_mask: Bool[Tensor, "n l"]
    state: Float[Tensor, "b s"] | None = None
    pose: Float[Tensor, "b 9"] | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> Prompted:
        """The same with every tensor changed."""
        state, pose = (None if part is None else change(part) for part in (self.state, self.pose))
        images, image_mask = change(self.images), change(self.image_mask)
        return Prompted(images, image_mask, change(self.tokens), change(self.token_mask), state, pose)


@dataclass(frozen=True, eq=False)
class Prefix:
    """What the action expert needs of an observation, and what the training-only losses look at.

    cache: the keys and values of every layer.
    mask: False where a token is padding.
    image_tokens: the tokens of the images.
    pointing: logits over the cells of each camera's map, with the conv stem; otherwise None.
    aim: what the locator gives, where the config says `locate`; otherwise None.
    """

    cache: list[KeyValue]
    mask: Bool[Tensor, "n p"]
    image_tokens: Float[Tensor, "n c q d"]
    pointing: Float[Tensor, "n c cells"] | None
    aim: Aim | None = None

    def repeat(self, times: int) -> tuple[list[KeyValue], Tensor]:
        """Cache and mask with each row `times` times in a row: several flow samples, one prefix."""
        if times == 1:
            return self.cache, self.mask
        cache = [(k.repeat_interleave(times, 0), v.repeat_interleave(times, 0)) for k, v in self.cache]
        return cache, self.mask.repeat_interleave(times, 0)


class LanguageModel(nn.Module):
    """The Gemma of the prefix."""

    def __init__(self, config: GemmaConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(vocab_size, config.width)
        nn.init.normal_(self.embed_tokens.weight, std=config.width**-0.5)
        self.layers = nn.ModuleList(GemmaLayer(config, conditioned=False) for _ in range(config.depth))
        self.norm = RMSNorm(config.width)

    def embed(self, tokens: Int[Tensor, "n l"]) -> Float[Tensor, "n l d"]:
        return self.embed_tokens(tokens) * math.sqrt(self.config.width)

    def keys_values(self, x: Float[Tensor, "n p d"], mask: Bool[Tensor, "n p"]) -> list[KeyValue]:
        """Every layer's keys and values. Of the last layer nothing else is computed: nothing reads it."""
        rotary = rotary_embedding(mask.cumsum(-1) - 1, self.config.head_dim)
        # A padded query must see something or its softmax is undefined: let it see itself.
        attend = mask[:, None, :] | torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        cache = []
        for layer in self.layers[:-1]:
            x, own = layer(x, rotary, attend)
            cache.append(own)
        last = self.layers[-1]
        assert isinstance(last, GemmaLayer)
        return [*cache, last.keys_values(x, rotary)]


class Pi05(nn.Module):
    def __init__(self, config: Pi05Config) -> None:
        super().__init__()
        self.config = config
        width = config.paligemma.width
        if config.vision == "siglip":
            self.vision = SiglipVision(config.siglip, width)
        else:
            self.vision = ConvStem(config.conv, config.num_cameras, width)
        self.language_model = LanguageModel(config.paligemma, config.vocab_size)
        self.action_expert = ActionExpert(config.action_expert, config.action_dim)
        self.state_proj: nn.Module | None = None
        self.locator: Locator | None = None
        if config.state_dim:
            self.state_proj = nn.Sequential(nn.Linear(config.state_dim, width), nn.GELU(), nn.Linear(width, width))
        if config.locate:
            self.locator = Locator(
                config.num_cameras, config.conv.queries, width, config.action_expert.width, config.action_dim
            )

    def encode(self, inputs: Prompted) -> Prefix:
        """Images and prompts to the prefix. Raises ValueError if the prompts do not divide by the images, or
        where the state is missing that the config asks for.
        """
        if len(inputs.tokens) % len(inputs.images):
            raise ValueError(f"{len(inputs.tokens)} prompts cannot be shared by {len(inputs.images)} images")
        groups = len(inputs.tokens) // len(inputs.images)
        prompt, prompt_mask = self._prompt(inputs, groups)
        image_tokens, pointing = self._see(inputs, prompt, prompt_mask, groups)
        image_mask = inputs.image_mask.repeat_interleave(groups, 0)
        image_mask = image_mask.repeat_interleave(image_tokens.shape[2], 1)
        x = torch.cat([image_tokens.flatten(1, 2).to(prompt.dtype), prompt], dim=1)
        mask = torch.cat([image_mask, prompt_mask], dim=1)
        aim = None
        if self.locator is not None:
            aim = self._aim(inputs, image_tokens, pointing, prompt, groups)
            x, mask = (
                torch.cat([x, aim.token.to(x.dtype)], dim=1),
                torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1),
            )
        return Prefix(self.language_model.keys_values(x, mask), mask, image_tokens, pointing, aim)

    def velocity(
        self, prefix: Prefix, noisy_actions: Float[Tensor, "m h a"], time: Float[Tensor, "m ..."]
    ) -> Float[Tensor, "m h a"]:
        """Flow velocity; with m = r · n, each of the prefix's n rows serves r chunks in turn. time: one for a chunk, or
        one for each of its actions."""
        times = len(noisy_actions) // len(prefix.mask)
        cache, mask = prefix.repeat(times)
        hint = None if prefix.aim is None else prefix.aim.condition.repeat_interleave(times, 0)
        return self.action_expert(cache, mask, noisy_actions, time, hint)

    def loss(
        self, prefix: Prefix, actions: Float[Tensor, "m h a"], noise: Tensor, time: Float[Tensor, " m"]
    ) -> Float[Tensor, "m h a"]:
        """The flow-matching loss of each element."""
        noisy_actions, target = flow_matching.interpolate(actions, noise, time)
        return (self.velocity(prefix, noisy_actions, time) - target).square()

    @torch.inference_mode()
    def sample(self, inputs: Prompted, noise: Float[Tensor, "n h a"], num_steps: int = 10) -> Float[Tensor, "n h a"]:
        """Action chunks, normalised as in training, from the given noise."""
        prefix = self.encode(inputs)
        return flow_matching.integrate(lambda x, t: self.velocity(prefix, x, t), noise, num_steps)

    def _prompt(self, inputs: Prompted, groups: int) -> tuple[Tensor, Tensor]:
        """The prompt's embeddings [n, l, d] and mask, the state's token last, where there is one."""
        prompt, mask = self.language_model.embed(inputs.tokens), inputs.token_mask
        if self.state_proj is None:
            return prompt, mask
        if inputs.state is None or inputs.state.shape[-1] != self.config.state_dim:
            got = None if inputs.state is None else tuple(inputs.state.shape)
            raise ValueError(f"the config expects a state of {self.config.state_dim} numbers, got {got}")
        state = self.state_proj(inputs.state).repeat_interleave(groups, 0)[:, None].to(prompt.dtype)
        return torch.cat([prompt, state], dim=1), torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)

    def _aim(self, inputs: Prompted, image_tokens: Tensor, pointing: Tensor | None, prompt: Tensor, groups: int) -> Aim:
        assert self.locator is not None and pointing is not None and isinstance(self.vision, ConvStem)
        if inputs.pose is None:
            raise ValueError(f"locate needs the TCP's pose, {POSE_DIM} numbers for each image")
        prompt = prompt.to(image_tokens.dtype)
        shown = inputs.token_mask[..., None].to(prompt.dtype)
        words = (prompt[:, :-1] * shown).sum(1) / shown.sum(1)
        pose = inputs.pose.repeat_interleave(groups, 0)
        missing = ~inputs.image_mask.repeat_interleave(groups, 0)[..., None]
        image_tokens, pointing = image_tokens.masked_fill(missing[..., None], 0.0), pointing.masked_fill(missing, 0.0)
        return self.locator(image_tokens, pointing, self.vision.grid, words, prompt[:, -1], pose)

    def _see(self, inputs: Prompted, prompt: Tensor, prompt_mask: Tensor, groups: int) -> tuple[Tensor, Tensor | None]:
        if isinstance(self.vision, ConvStem):
            return self.vision(inputs.images, prompt.to(self.vision.query.dtype), prompt_mask)
        tokens = self.vision(inputs.images.flatten(0, 1)).unflatten(0, inputs.images.shape[:2])
        return tokens.repeat_interleave(groups, 0), None
