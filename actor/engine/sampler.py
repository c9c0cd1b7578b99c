"""Who computes the action chunks of a policy: the plain model or one of the faster forms."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from actor import real_time
from actor.engine.config import EngineConfig, Precision
from actor.engine.fused import FusedPi05
from actor.engine.graphs import GraphCache
from actor.engine.openvino_model import OpenVinoModel
from actor.pi05 import Pi05, Prompted
from actor.real_time import Continuation


class Sampler(Protocol):
    def sample(
        self, inputs: Prompted, noise: Float[Tensor, "n h a"], continuation: Continuation | None = None
    ) -> Float[Tensor, "n h a"]:
        """Normalised action chunks; with a continuation, chunks that continue others."""
        ...


class PlainSampler:
    """The model as it is trained."""

    def __init__(self, model: Pi05, num_steps: int) -> None:
        self._model, self._num_steps = model, num_steps

    def sample(
        self, inputs: Prompted, noise: Float[Tensor, "n h a"], continuation: Continuation | None = None
    ) -> Float[Tensor, "n h a"]:
        if continuation is None:
            return self._model.sample(inputs, noise, self._num_steps)
        with torch.no_grad():
            prefix = self._model.encode(inputs)
            return real_time.sample(self._model, prefix, noise, self._num_steps, continuation)


class FusedSampler:
    """The fused model: eagerly on a CPU, as CUDA graphs on a GPU."""

    def __init__(self, model: FusedPi05, config: EngineConfig, device: str) -> None:
        self._model, self._bucket = model, config.prompt_bucket
        self._static = torch.device(device).type == "cuda" and config.cuda_graphs
        run = torch.compile(model, dynamic=False) if config.compile else model
        self._run = GraphCache(run) if self._static else run
        self._mask = self._static or config.compile

    def sample(
        self, inputs: Prompted, noise: Float[Tensor, "n h a"], continuation: Continuation | None = None
    ) -> Float[Tensor, "n h a"]:
        if self._bucket:
            inputs = padded(inputs, self._bucket, self._model.config.max_token_len)
        with torch.no_grad():
            if continuation is None:
                return self._run(inputs, noise, self._mask)
            return self._continued(inputs, noise, continuation)

    def _continued(self, inputs: Prompted, noise: Tensor, continuation: Continuation) -> Tensor:
        """Eagerly: delays differ from call to call, and a gradient is not recorded."""
        model, prefix = self._model, self._model.encode(inputs)
        if continuation.method == "trained":
            return model.integrate(prefix, noise, continuation.queued, continuation.known)
        rows = model.schedule.rows(prefix.hint)
        steps = model.schedule.num_steps
        return real_time.integrate_guided(
            lambda x, step: model.velocity(prefix, x, rows[step]), noise, steps, continuation
        )


class OpenVinoSampler:
    """One compiled program for one observation and each length of padded prompts; continuations go the fused way."""

    def __init__(self, model: FusedPi05, config: EngineConfig) -> None:
        self._model, self._bucket = model, config.prompt_bucket
        self._dtype: Precision = config.dtype
        self._fused = FusedSampler(model, config, "cpu")
        self._programs: dict[int, OpenVinoModel] = {}
        if not self._bucket:
            self._program(model.config.max_token_len)

    def sample(
        self, inputs: Prompted, noise: Float[Tensor, "n h a"], continuation: Continuation | None = None
    ) -> Float[Tensor, "n h a"]:
        if continuation is not None:
            return self._fused.sample(inputs, noise, continuation)
        longest = self._model.config.max_token_len
        inputs = padded(inputs, self._bucket or longest, longest)
        run = self._program(inputs.tokens.shape[1])
        rows = [slice(i, i + 1) for i in range(len(noise))]
        return torch.cat([run(inputs.map(lambda part, row=row: part[row]), noise[row]) for row in rows])

    def _program(self, length: int) -> OpenVinoModel:
        if length not in self._programs:
            self._programs[length] = OpenVinoModel(self._model, length, self._dtype)
        return self._programs[length]


def make_sampler(model: Pi05, num_steps: int, config: EngineConfig, device: str) -> Sampler:
    """Raises ValueError where the config cannot be had on this device, or needs a package that is not installed."""
    if config.tf32:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    if config.kind == "plain":
        return PlainSampler(model, num_steps)
    fused = FusedPi05(model, num_steps, config.fp8).eval()
    if config.kind == "fused":
        return FusedSampler(fused, config, device)
    if torch.device(device).type != "cpu":
        raise ValueError(f"the engine openvino runs on the CPU, and the device is {device}: take the engine fused")
    return OpenVinoSampler(fused, config)


def padded(inputs: Prompted, bucket: int, longest: int) -> Prompted:
    """Prompts padded to a multiple of `bucket` tokens, `longest` at most."""
    length = inputs.tokens.shape[1]
    more = max(0, min(-(-length // bucket) * bucket, longest) - length)
    if not more:
        return inputs
    pad = torch.nn.functional.pad
    return replace(inputs, tokens=pad(inputs.tokens, (0, more)), token_mask=pad(inputs.token_mask, (0, more)))
