"""Weight names on disk. They are openpi's PyTorch names wherever openpi has the weight, and ours elsewhere."""

from __future__ import annotations

import re

from torch import Tensor

_PALIGEMMA = "paligemma_with_expert.paligemma."
_EXPERT = "paligemma_with_expert.gemma_expert."
EMBEDDING = f"{_PALIGEMMA}model.language_model.embed_tokens.weight"
TIED_EMBEDDING = f"{_PALIGEMMA}lm_head.weight"
EXPERT_HEAD = f"{_EXPERT}lm_head.weight"
UNUSED = (TIED_EMBEDDING, EXPERT_HEAD)
"""Language heads: the one is tied to the embedding, and nothing uses the other."""

_SIGLIP = f"{_PALIGEMMA}model.vision_tower.vision_model."
_PREFIXES = (  # ours, openpi's: the first that matches is taken
    ("vision.patch_embedding.", f"{_SIGLIP}embeddings.patch_embedding."),
    ("vision.position_embedding.", f"{_SIGLIP}embeddings.position_embedding."),
    ("vision.layers.", f"{_SIGLIP}encoder.layers."),
    ("vision.post_layernorm.", f"{_SIGLIP}post_layernorm."),
    ("vision.projector.", f"{_PALIGEMMA}model.multi_modal_projector.linear."),
    ("language_model.", f"{_PALIGEMMA}model.language_model."),
    ("action_expert.layers.", f"{_EXPERT}model.layers."),
    ("action_expert.norm.", f"{_EXPERT}model.norm."),
    ("action_expert.", ""),  # action_in_proj, action_out_proj, time_mlp_in, time_mlp_out
)
_ROOT_MODULES = ("action_in_proj.", "action_out_proj.", "time_mlp_in.", "time_mlp_out.")


def to_openpi(name: str) -> str:
    """Our parameter name to the name on disk. The conv stem, unknown to openpi, keeps its own."""
    for ours, theirs in _PREFIXES:
        if name.startswith(ours):
            name = theirs + name[len(ours) :]
            break
    if name.startswith(_SIGLIP):
        name = re.sub(r"\.(q_proj|k_proj|v_proj|out_proj)\.", r".self_attn.\1.", name)
        name = re.sub(r"\.(fc1|fc2)\.", r".mlp.\1.", name)
    return name


def from_openpi(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint's tensors under our names.

    openpi ties the language model's head to its embedding and safetensors keeps only one of them:
    either is accepted. The expert's language head is never used and left out.
    """
    weights = dict(weights)
    if EMBEDDING not in weights and TIED_EMBEDDING in weights:
        weights[EMBEDDING] = weights[TIED_EMBEDDING]
    return {to_ours(name): tensor for name, tensor in weights.items() if name not in UNUSED}


def to_ours(name: str) -> str:
    """The inverse of `to_openpi`."""
    if name.startswith(_SIGLIP):
        name = re.sub(r"\.(self_attn|mlp)\.", ".", name)
    if name.startswith(_ROOT_MODULES):
        return f"action_expert.{name}"
    for ours, theirs in _PREFIXES:
        if theirs and name.startswith(theirs):
            return ours + name[len(theirs) :]
    return name
