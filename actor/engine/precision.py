"""The precision of each weight, as openpi's PyTorch model chooses it (`to_bfloat16_for_selected_params`)."""

from __future__ import annotations

import torch
from torch import nn

from actor.gemma import AdaRMSNorm, RMSNorm
from actor.pi05 import Pi05
from actor.siglip import SiglipVision


def set_precision(model: Pi05, dtype: torch.dtype) -> Pi05:
    """Cast the model in place, and give it back.

    With bfloat16, float32 stay: SigLIP's patch and position embeddings, the norms of both transformers, with what makes
    adaRMS's scales, the flow time's MLP, and what leads into and out of the action expert. So does all that openpi has
    not: the convolutional stem, the state's token and the locator.
    """
    if dtype != torch.bfloat16:
        return model.to(dtype)
    expert, vision = model.action_expert, model.vision
    kept: list[nn.Module | None] = [m for m in model.modules() if isinstance(m, RMSNorm | AdaRMSNorm)]
    kept += [expert.time_mlp_in, expert.time_mlp_out, expert.action_in_proj, expert.action_out_proj]
    kept += [model.state_proj, model.locator]
    kept += [vision.patch_embedding, vision.position_embedding] if isinstance(vision, SiglipVision) else [vision]
    exact = {id(weight) for module in kept if module is not None for weight in module.parameters()}
    for weight in model.parameters():
        if id(weight) not in exact:
            weight.data = weight.data.to(dtype)
    return model
