"""How much memory and work a training needs, computed from its config without a GPU and without weights.

A step of the model at its full size runs on PyTorch's fake tensors, which have shapes and no values: counted is what is
alive at once, and how many operations there are. What FSDP spreads is divided by the number of GPUs.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.weak import WeakIdKeyDictionary

from actor.learner import Learner
from actor.pi05 import Pi05, Prompted
from actor.tiny.pose import POSE_DIM
from actor.training.average import Average
from actor.training.config import ActorTrainConfig, ComputeConfig, LoraConfig
from actor.training.parts import LAYERS, shape_model

GPUS = (1, 2, 4, 8)
OPENPI_LORA = LoraConfig(prefix_rank=16, expert_rank=32)
GIB = 2**30


@dataclass(frozen=True)
class Memory:
    """What a process needs, in bytes.

    weights, gradients, optimiser, average: what it holds all the time.
    activations: what the backward pass needs and what is computed in between, where most of it is alive.
    gathered: with FSDP, the weights and gradients that are whole for a while: two layers, and what is in no layer.
    """

    weights: int
    gradients: int
    optimiser: int
    average: int
    activations: int
    gathered: int

    @property
    def total(self) -> int:
        return sum(dataclasses.astuple(self))


def memory_needed(config: ActorTrainConfig, processes: int, activations: int) -> Memory:
    """Of each process. activations: those of its part of a batch (`activation_memory`)."""
    whole, outside, layer = _sizes(dataclasses.replace(config, compute=ComputeConfig()))
    spread = processes if config.compute.parallel == "fsdp" else 1
    gathered = outside.all + 2 * layer.all + outside.trained + layer.trained if spread > 1 else 0
    return Memory(
        weights=whole.all // spread,
        gradients=whole.trained // spread,
        optimiser=2 * whole.trained // spread,
        average=whole.trained // spread if config.optimiser.ema_decay else 0,
        activations=activations,
        gathered=gathered,
    )


def activation_memory(config: ActorTrainConfig, frames: int) -> int:
    """Bytes beside weights and gradients that are alive at the peak of a step with so many frames."""
    with FakeTensorMode():
        learner = _without_values(_learner(config))
        for parameter in learner.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        held = [*learner.parameters(), *(p.grad for p in learner.parameters() if p.grad is not None)]
        with _Alive(held) as alive:
            _step(learner.model, config, frames)
    return alive.peak


def flops_of_a_frame(config: ActorTrainConfig) -> int:
    """Floating-point operations of training on one frame, forward and backward, with what is computed again."""
    with FakeTensorMode():
        model = _without_values(_learner(config)).model
        with FlopCounterMode(display=False) as counter:
            _step(model, config, 1)
    return counter.get_total_flops()


def take_step(config: ActorTrainConfig, frames: int, steps: int) -> None:
    """Really train on zeros for a few steps, to measure what the plan computes."""
    learner = _learner(config, "cpu")
    average = Average(learner, config.optimiser.ema_decay)
    optimiser = torch.optim.AdamW([parameter for parameter in learner.parameters() if parameter.requires_grad])
    for step in range(steps):
        optimiser.zero_grad(set_to_none=False)
        _step(learner.model, config, frames)
        optimiser.step()
        average.update(step)


def memory_table(config: ActorTrainConfig) -> str:
    """GiB for each GPU, as a Markdown table: full training and LoRA, DDP and FSDP, on 1, 2, 4 and 8 GPUs."""
    lora = config.lora if config.lora.on else OPENPI_LORA
    variants = {"full": LoraConfig(), f"LoRA {lora.prefix_rank}/{lora.expert_rank}": lora}
    lines = [
        "| training | GPUs | frames a GPU | weights | gradients | AdamW | average | activations | DDP | FSDP |",
        "| --- " + "| ---: " * 9 + "|",
    ]
    for name, chosen in variants.items():
        variant = dataclasses.replace(config, lora=chosen)
        for gpus in GPUS:
            frames, rest = divmod(config.sampling.frames_per_batch, gpus * config.compute.accumulation)
            if rest:
                continue
            activations = activation_memory(variant, frames)
            ddp, fsdp = (memory_needed(_with(variant, kind), gpus, activations) for kind in ("ddp", "fsdp"))
            parts = (ddp.weights, ddp.gradients, ddp.optimiser, ddp.average, activations, ddp.total)
            figures = [f"{size / GIB:.1f}" for size in parts] + [f"{fsdp.total / GIB:.1f}" if gpus > 1 else ""]
            lines.append(f"| {name} | {gpus} | {frames} | {' | '.join(figures)} |")
    again = "with" if config.compute.gradient_checkpointing else "without"
    batch = f"a batch of {config.sampling.frames_per_batch} frames in {config.compute.accumulation} parts a GPU"
    lines.append(f"\nGiB for each GPU; {config.precision}, {again} gradient checkpointing, {batch}.")
    lines.append(
        "FSDP divides weights, gradients, AdamW and average by the number of GPUs, and gathers layer by layer."
    )
    return "\n".join(lines)


def _with(config: ActorTrainConfig, parallel: str) -> ActorTrainConfig:
    compute: ComputeConfig = dataclasses.replace(config.compute, parallel=parallel)  # type: ignore[arg-type]
    precision = "bfloat16" if config.precision == "bfloat16_weights" and parallel == "fsdp" else config.precision
    return dataclasses.replace(config, compute=compute, precision=precision)


def _learner(config: ActorTrainConfig, device: str = "meta") -> Learner:
    """On `meta`, it has shapes and no values, so that none has to be drawn."""
    with unset_fake_temporarily(), torch.device(device):
        learner = Learner(config.actor.model, config.auxiliary, np.zeros((0, 3), np.float32))
        shape_model(learner.model, config)
    return learner


def _without_values(learner: Learner) -> Learner:
    """The same, with fake tensors that take themselves to be on a CPU."""
    for module in learner.modules():
        for name, value in list(module.named_parameters(recurse=False)):
            fake = torch.empty(value.shape, dtype=value.dtype)
            setattr(module, name, nn.Parameter(fake, requires_grad=value.requires_grad))
        for name, value in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.empty(value.shape, dtype=value.dtype))
    return learner


def _step(model: Pi05, config: ActorTrainConfig, frames: int) -> None:
    forward(model, config, frames).backward()


def forward(model: Pi05, config: ActorTrainConfig, frames: int) -> torch.Tensor:
    """The loss of so many frames of zeros."""
    sizes, prompts = config.actor.model, frames * config.sampling.prompts_per_frame
    chunks, px = prompts * config.flow_samples, config.actor.model.image_size
    inputs = Prompted(
        images=torch.zeros(frames, sizes.num_cameras, 3, px, px),
        image_mask=torch.ones(frames, sizes.num_cameras, dtype=torch.bool),
        tokens=torch.zeros(prompts, sizes.max_token_len, dtype=torch.long),
        token_mask=torch.ones(prompts, sizes.max_token_len, dtype=torch.bool),
        state=torch.zeros(frames, sizes.state_dim) if sizes.state_dim else None,
        pose=torch.zeros(frames, POSE_DIM) if sizes.locate else None,
    )
    actions = torch.zeros(chunks, sizes.action_horizon, sizes.action_dim)
    with _autocast(config):
        return model.loss(model.encode(inputs), actions, actions, torch.zeros(chunks)).mean()


@contextmanager
def _autocast(config: ActorTrainConfig) -> Iterator[None]:
    """As `actor.training.processes` sets it up."""
    with torch.autocast("cpu", torch.bfloat16, enabled=config.precision != "float32", cache_enabled=False):
        yield


class _Alive(TorchDispatchMode):
    """Counts the bytes of what is made within it and still there, but for what is `held` anyway. PyTorch's own tracker
    refuses frozen weights."""

    def __init__(self, held: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.peak = self._now = 0
        self._known = WeakIdKeyDictionary()
        for tensor in held:
            self._known[tensor.untyped_storage()] = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._note(tensor.untyped_storage())
        return result

    def _note(self, storage: torch.UntypedStorage) -> None:
        if storage in self._known:
            return
        size = storage.nbytes()
        self._known[storage] = size
        self._now += size
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._gone, size)

    def _gone(self, size: int) -> None:
        self._now -= size


@dataclass(frozen=True)
class _Size:
    """Bytes of weights, and of those that are trained."""

    all: int
    trained: int


@functools.lru_cache(maxsize=8)
def _sizes(config: ActorTrainConfig) -> tuple[_Size, _Size, _Size]:
    """Of everything, of what is in no layer, and of the largest layer."""
    learner = _learner(config)
    whole = _size(learner)
    layers = [_size(module) for module in learner.modules() if isinstance(module, LAYERS)]
    inside = _Size(sum(layer.all for layer in layers), sum(layer.trained for layer in layers))
    largest = _Size(max(layer.all for layer in layers), max(layer.trained for layer in layers))
    return whole, _Size(whole.all - inside.all, whole.trained - inside.trained), largest


def _size(module: nn.Module) -> _Size:
    sizes = [(p.numel() * p.element_size(), p.requires_grad) for p in module.parameters()]
    return _Size(sum(size for size, _ in sizes), sum(size for size, trained in sizes if trained))
