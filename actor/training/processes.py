"""One process or many: what Hugging Face Accelerate and FSDP2 make of a `Learner`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import AutocastKwargs, DistributedDataParallelKwargs
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from actor.dataset import FrameSet, SamplingConfig
from actor.learner import Learner, validate
from actor.pi05 import Pi05
from actor.preprocess import Preprocessor
from actor.training.config import ActorTrainConfig
from actor.training.parts import LAYERS


def make_accelerator(config: ActorTrainConfig, run: Path) -> Accelerator:
    """Joins the other processes, if `torchrun` or `accelerate launch` started some.

    Raises ValueError where the device is not there, or not one that a process can choose.
    """
    wanted = torch.device(config.device)
    if wanted.index is not None:
        raise ValueError(f"device: {config.device}: say `{wanted.type}`, and choose with CUDA_VISIBLE_DEVICES")
    AcceleratorState._reset_state()  # it keeps the precision of the process's last training
    GradientState._reset_state()
    accelerator = Accelerator(
        cpu=wanted.type == "cpu",
        mixed_precision="no" if config.precision == "float32" else "bf16",
        log_with=list(config.trackers) or None,
        project_dir=run,
        kwargs_handlers=[
            DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True),
            AutocastKwargs(cache_enabled=False),  # would keep a copy of all weights, of which each is used once
        ],
    )
    if accelerator.device.type != wanted.type:
        raise ValueError(f"device: {config.device}: this machine has none, only {accelerator.device.type}")
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    return accelerator


class Trained:
    """A learner as it is trained by all processes together.

    learner: the module itself, whose parameters are sharded with FSDP.
    """

    def __init__(self, learner: Learner, config: ActorTrainConfig, accelerator: Accelerator) -> None:
        self.learner, self._accelerator = learner, accelerator
        self._module: nn.Module
        if config.compute.parallel == "fsdp" and accelerator.num_processes > 1:
            self._module = shard(learner, accelerator.device.type, accelerator.num_processes)
        else:
            self._module = accelerator.prepare_model(learner)

    def backward(self, losses: dict[str, Tensor], parts: int) -> None:
        self._accelerator.backward(losses["total"] / parts)

    def __call__(self, *inputs: object) -> dict[str, Tensor]:
        """The losses, see `Learner.forward`."""
        with self._accelerator.autocast():
            return self._module(*inputs)

    def validate(
        self, frames: FrameSet, preprocess: Preprocessor, sampling: SamplingConfig, steps: int
    ) -> dict[str, float]:
        """See `actor.learner.validate`."""
        with self._accelerator.autocast():
            figures = validate(self.learner, frames, preprocess, sampling, steps)
        for module in self.learner.modules():
            if isinstance(
                module, FSDPModule
            ):  # what is gathered stays so until a backward pass, which there was none of
                module.reshard()
        return figures

    def adding_up(self, last: bool) -> AbstractContextManager[None]:
        """Within it, gradients are only exchanged between processes with the last part of a batch."""
        if isinstance(self._module, FSDPModule):
            self._module.set_requires_gradient_sync(last)
            return nullcontext()
        return nullcontext() if last else self._accelerator.no_sync(self._module)

    def parameters(self) -> list[nn.Parameter]:
        """Those that are trained."""
        return [parameter for parameter in self.learner.parameters() if parameter.requires_grad]

    def whole_model(self) -> dict[str, Tensor]:
        """All weights of the model on the CPU, in the main process; {} in the others, which have to call this, too.

        They may be the module's own tensors, which change with it.
        """
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        state = get_model_state_dict(self.learner, options=options)
        weights: dict[str, Any] = {
            name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")
        }
        return weights if self._accelerator.is_main_process else {}


def shard(learner: Learner, device_type: str, processes: int) -> Learner:
    """FSDP2, layer by layer. Accelerate would apply it on accelerators only, and this runs on CPUs (gloo) as well."""
    mesh = init_device_mesh(device_type, (processes,))
    for module in learner.modules():
        if isinstance(module, LAYERS):
            fully_shard(module, mesh=mesh)
    fully_shard(learner, mesh=mesh)
    assert isinstance(learner, FSDPModule)
    # What is called besides `forward` gathers the weights as well.
    register_fsdp_forward_method(learner, "predict")
    assert isinstance(learner.model, Pi05)
    register_fsdp_forward_method(learner.model.language_model.layers[-1], "keys_values")
    return learner


def agree(accelerator: Accelerator, wish: bool) -> bool:
    """Whether any process wishes it."""
    if accelerator.num_processes == 1:
        return wish
    wishes: Any = accelerator.reduce(torch.tensor(float(wish), device=accelerator.device), "sum")
    return bool(wishes.item())
