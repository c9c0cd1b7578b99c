"""How the actor's model is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["plain", "fused", "openvino"]
Precision = Literal["float32", "bfloat16"]
PRECISIONS = get_args(Precision)


@dataclass(frozen=True)
class EngineConfig:
    """How the actor's model is run. The defaults are the plain model in float32, which the golden tests check.

    kind: `plain` is the model as it is trained; `fused` computes the same with fewer operations (`actor.engine.fused`);
        `openvino` is the fused model as one program that OpenVINO compiles for the CPU. Compiling it takes some seconds
        when the policy is loaded, or with a `prompt_bucket` when a length first occurs.
    dtype: what the weights are kept and multiplied in. With `bfloat16` the weights that openpi keeps in float32 stay
        so; `openvino` keeps all in float32 and computes in bfloat16 where the processor can.
    fp8: whether the fused matrices of both transformers are kept in 8 bits (float8_e4m3, one scale a row). A GPU of
        compute capability 8.9 multiplies in 8 bits; elsewhere the rounding is the same and nothing becomes faster.
    tf32: whether a GPU multiplies what stays in float32 in TF32 (10 bits of mantissa).
    prompt_bucket: prompts are padded to a multiple of so many tokens, so that few shapes occur; 0: not at all.
    cuda_graphs: whether a GPU replays one recorded graph for each shape. A shape that cannot be recorded runs eagerly.
    compile: whether `torch.compile` generates the kernels between the matrix products. The first pass of each shape
        then takes minutes at full size.
    """

    kind: Kind = "plain"
    dtype: Precision = "float32"
    fp8: bool = False
    tf32: bool = False
    prompt_bucket: int = 0
    cuda_graphs: bool = True
    compile: bool = False

    def __post_init__(self) -> None:
        if self.prompt_bucket < 0:
            raise ValueError(f"prompt_bucket has to be 0 or more tokens, got {self.prompt_bucket}")
        if self.kind == "plain":
            if given := [name for name in ("fp8", "compile") if getattr(self, name)]:
                raise ValueError(f"{', '.join(given)}: only the engine `fused` has such; set kind: fused")
            if self.prompt_bucket:
                raise ValueError("prompt_bucket: the engine plain has none; set kind: fused or openvino")
        if self.kind == "openvino" and (self.fp8 or self.compile):
            raise ValueError("fp8, compile: the engine openvino has neither; take the engine fused")

    @property
    def weights_dtype(self) -> Precision:
        """What the weights are loaded in."""
        return "float32" if self.kind == "openvino" else self.dtype
