"""The fused model as a program that OpenVINO compiles for this CPU: no Python or PyTorch between the operations."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from actor.engine.config import Precision
from actor.engine.fused import FusedPi05
from actor.pi05 import Prompted

TOLERANCE: dict[Precision, float] = {"float32": 1e-4, "bfloat16": 0.05}  # of a normalised action
HINT: dict[Precision, str] = {"float32": "f32", "bfloat16": "bf16"}


class OpenVinoModel:
    """Takes one observation, whose prompt is padded to a given length. Not thread-safe.

    Compiling takes some seconds, for 60 million parameters half a minute. It uses as many threads as torch does at that
    time, and keeps a copy of the weights.
    """

    def __init__(self, model: FusedPi05, length: int, dtype: Precision = "float32") -> None:
        """length: of the prompts, in tokens. dtype: what OpenVINO multiplies in; the model itself is in float32.

        Raises ValueError where OpenVINO is not installed, or does not compute what the model computes.
        """
        try:
            import openvino
        except ImportError:
            raise ValueError(
                "the engine openvino needs OpenVINO: pip install 'predimem[fast]', or take the engine fused"
            ) from None
        example = _example(model, length)
        program, names = _Program(model), list(example)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sizes become constants, which they are
            converted = openvino.convert_model(program, example_input=tuple(example.values()))
        converted.reshape({i: list(part.shape) for i, part in enumerate(example.values())})
        settings = {
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": HINT[dtype],
        }
        self._names = names
        self._request = openvino.Core().compile_model(converted, "CPU", settings).create_infer_request()
        self._check(program, example, TOLERANCE[dtype])

    def __call__(self, inputs: Prompted, noise: Tensor) -> Tensor:
        """Normalised actions [1, h, a]."""
        parts = {name: getattr(inputs, name, noise) for name in self._names}
        return torch.from_numpy(self._request.infer([parts[name].numpy() for name in self._names])[0].copy())

    def _check(self, program: nn.Module, example: dict[str, Tensor], tolerance: float) -> None:
        generator = torch.Generator().manual_seed(0)
        for name in ("images", "noise", "state"):
            if name in example:
                example[name] = torch.rand(example[name].shape, generator=generator) * 2 - 1
        with torch.no_grad():
            expected = program(*example.values())
        got = torch.from_numpy(self._request.infer([part.numpy() for part in example.values()])[0])
        difference = float((got - expected).abs().max())
        if not difference <= tolerance * max(1.0, float(expected.abs().max())):
            raise ValueError(
                f"OpenVINO's actions differ by {difference:.2g} from the model's: take the engine fused, and report it"
            )


class _Program(nn.Module):
    """The model with plain tensors as arguments, in the order of `_example`."""

    def __init__(self, model: FusedPi05) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        images: Tensor,
        image_mask: Tensor,
        tokens: Tensor,
        token_mask: Tensor,
        noise: Tensor,
        state: Tensor | None = None,
        pose: Tensor | None = None,
    ) -> Tensor:
        return self.model(Prompted(images, image_mask, tokens, token_mask, state, pose), noise, True)


def _example(model: FusedPi05, length: int) -> dict[str, Tensor]:
    c = model.config
    mask = torch.arange(length)[None] < 3
    example = {
        "images": torch.zeros(1, c.num_cameras, 3, c.image_size, c.image_size),
        "image_mask": torch.ones(1, c.num_cameras, dtype=torch.bool),
        "tokens": mask.long(),
        "token_mask": mask,
        "noise": torch.zeros(1, c.action_horizon, c.action_dim),
    }
    if c.state_dim:
        example["state"] = torch.zeros(1, c.state_dim)
    if c.locate:
        example["pose"] = torch.eye(3).flatten()[None]  # any rotation
    return example
