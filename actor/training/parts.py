"""Which weights are trained, in which type, and which activations are kept."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from actor.gemma import GemmaLayer
from actor.pi05 import Pi05
from actor.siglip import SiglipLayer
from actor.training.config import ActorTrainConfig, LoraConfig, Precision

LAYERS = (GemmaLayer, SiglipLayer)
"""What gradient checkpointing computes again as one, and what FSDP gathers as one."""

_PROJECTION = r"\.layers\.\d+\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)"
_FLOAT32 = re.compile(
    r"(patch_embedding|position_embedding|input_layernorm|post_attention_layernorm|layer_norm\d|post_layernorm)\."
    r"|(language_model|action_expert)\.norm\.|action_expert\.(action_in_proj|action_out_proj|time_mlp_in|time_mlp_out)\.|lora_"
)
"""What openpi's PyTorch code keeps in float32 where its weights are in bfloat16. So are the norms of the image encoder
here, which a CPU cannot compute otherwise, and adapters."""


def shape_model(model: Pi05, config: ActorTrainConfig) -> None:
    """Freezes, adds adapters, changes types and turns on gradient checkpointing, as the config says."""
    freeze(model, config.frozen)
    add_lora(model, config.lora)
    freeze_unread(model)
    set_precision(model, config.precision)
    if config.compute.gradient_checkpointing:
        checkpoint_layers(model)


def mixed(trained: Mapping[str, Tensor], begun: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """The weights `trained`, drawn towards those that the training began with by `share`: 0 leaves them as they are."""
    if not share:
        return dict(trained)
    return {name: value.lerp(begun[name].to(value), share) for name, value in trained.items()}


def freeze(model: Pi05, parts: tuple[str, ...]) -> None:
    """parts: as in `actor.training.config.PARTS`."""
    for name, parameter in model.named_parameters():
        if _part(name) in parts:
            parameter.requires_grad_(False)


def freeze_unread(model: Pi05) -> None:
    """The weights behind the last keys and values of the prefix, which nothing reads (`LanguageModel.keys_values`).

    They get no gradient in any case. Said beforehand, no process waits for it, and no optimiser state is made for it.
    """
    last = model.language_model.layers[-1]
    assert isinstance(last, GemmaLayer)
    unread = (last.self_attn.q_proj, last.self_attn.o_proj, last.post_attention_layernorm, last.mlp)
    for module in (*unread, model.language_model.norm):
        module.requires_grad_(False)


def add_lora(model: Pi05, config: LoraConfig) -> None:
    """Puts adapters in place, and freezes the transformers that have them: embeddings and norms as well."""
    if not config.on:
        return
    from peft import LoraConfig as PeftConfig
    from peft import inject_adapter_in_model

    ranks, alphas = {}, {}
    for part, rank, alpha in (
        ("language_model", config.prefix_rank, config.prefix_alpha),
        ("action_expert", config.expert_rank, config.expert_alpha),
    ):
        if rank:
            ranks[part + _PROJECTION], alphas[part + _PROJECTION] = rank, alpha
            for name, parameter in model.named_parameters():
                if _part(name) == part:
                    parameter.requires_grad_(False)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    target = f"({'|'.join(re.escape(name.split(_PROJECTION)[0]) for name in ranks)}){_PROJECTION}"
    adapters = PeftConfig(target_modules=target, rank_pattern=ranks, alpha_pattern=alphas, init_lora_weights=True)
    inject_adapter_in_model(adapters, model)
    for name, parameter in model.named_parameters():  # PEFT freezes everything else, too
        parameter.requires_grad_(name in trained or "lora_" in name)


def merge_lora(model: Pi05) -> None:
    """Adds the adapters to the weights that they stand beside, and takes them out again."""
    from peft.tuners.lora import LoraLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            base = module.get_base_layer()
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, base)


def set_precision(model: Pi05, precision: Precision) -> None:
    if precision != "bfloat16_weights":
        return
    for name, parameter in model.named_parameters():
        if not _FLOAT32.search(name):
            parameter.data = parameter.data.to(torch.bfloat16)


def checkpoint_layers(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, LAYERS):
            module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)


def _part(name: str) -> str:
    head = ("action_in_proj", "action_out_proj", "time_mlp_in", "time_mlp_out")
    first, _, rest = name.partition(".")
    return "action_head" if rest.startswith(head) else first
