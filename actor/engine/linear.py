"""The matrix products of the fused engine: in the weights' precision, or in 8 bits."""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

E4M3 = torch.float8_e4m3fn
LARGEST = torch.finfo(E4M3).max
MakeProduct = Callable[[Tensor], nn.Module]
"""Turns a matrix, float [out, in], into a module that multiplies by it."""


class Product(nn.Module):
    """x @ weight.T"""

    weight: Tensor

    def __init__(self, weight: Float[Tensor, "o i"]) -> None:
        super().__init__()
        self.register_buffer("weight", weight.contiguous())

    def forward(self, x: Float[Tensor, "*n i"]) -> Float[Tensor, "*n o"]:
        return F.linear(x, self.weight)


class Fp8Product(nn.Module):
    """x @ weight.T with both rounded to float8_e4m3: the weight with one scale a row, x with one a token.

    A GPU that can multiplies the 8-bit numbers themselves (`torch._scaled_mm`, which cuBLASLt and CUTLASS carry out).
    Elsewhere the rounded numbers are multiplied in x's precision, which gives the same but for the order of summation.
    """

    weight: Tensor
    scale: Tensor

    def __init__(self, weight: Float[Tensor, "o i"]) -> None:
        super().__init__()
        rounded, scale = to_fp8(weight)
        self.register_buffer("weight", rounded)
        self.register_buffer("scale", scale)
        self._in_hardware = weight.is_cuda and torch.cuda.get_device_capability(weight.device) >= (8, 9)

    def forward(self, x: Float[Tensor, "*n i"]) -> Float[Tensor, "*n o"]:
        rounded, scale = to_fp8(x.flatten(0, -2))
        if self._in_hardware:
            multiply = torch._scaled_mm  # pyright: ignore[reportPrivateImportUsage]
            y = multiply(rounded, self.weight.t(), scale, self.scale.t(), out_dtype=torch.bfloat16)
        else:
            y = F.linear(rounded.to(x.dtype), self.weight.to(x.dtype)) * (scale * self.scale.t()).to(x.dtype)
        return y.to(x.dtype).unflatten(0, x.shape[:-1])


def to_fp8(x: Float[Tensor, "n i"]) -> tuple[Tensor, Float[Tensor, "n 1"]]:
    """float8_e4m3 [n, i] and the scale of each row, so that their product is x but for rounding."""
    scale = x.abs().amax(-1, keepdim=True).float().clamp_min(1e-12) / LARGEST
    return (x.float() / scale).clamp(-LARGEST, LARGEST).to(E4M3), scale
