"""The sizes of a π0.5 model, read from the shapes of its tensors: checkpoints' config files leave most of them out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import torch

from actor.exchange.tensors import Stored
from actor.gemma import GemmaConfig
from actor.names import EMBEDDING, TIED_EMBEDDING, UNUSED, to_openpi, to_ours
from actor.pi05 import Pi05, Pi05Config
from actor.siglip import SiglipConfig
from actor.weights import WeightsError

SIGLIP_HEADS = 16
"""So400m's, the only image encoder that π0.5 checkpoints have; shapes do not show it."""
SHOWN = 5

Shapes = Mapping[str, tuple[int, ...]]


def model_config(
    tensors: Mapping[str, Stored],
    horizon: int,
    max_token_len: int,
    cameras: int,
    source: Path,
    siglip_heads: int = SIGLIP_HEADS,
) -> Pi05Config:
    """The model whose tensors (under openpi's names) these are. Raises WeightsError where they are another model's, and
    names what is missing and what is unexpected."""
    _refuse_others(tensors, source)
    shapes = {to_ours(name): tensor.shape for name, tensor in tensors.items() if name not in UNUSED}
    if EMBEDDING not in tensors and TIED_EMBEDDING in tensors:
        shapes[to_ours(EMBEDDING)] = tensors[TIED_EMBEDDING].shape
    try:
        config = Pi05Config(
            siglip=_siglip(shapes, siglip_heads),
            paligemma=_gemma(shapes, "language_model."),
            action_expert=_gemma(shapes, "action_expert."),
            num_cameras=cameras,
            vocab_size=shapes["language_model.embed_tokens.weight"][0],
            max_token_len=max_token_len,
            action_dim=shapes["action_expert.action_in_proj.weight"][1],
            action_horizon=horizon,
        )
    except KeyError as error:
        raise WeightsError(
            f"{source} is no π0.5 checkpoint: {to_openpi(str(error.args[0]))} is missing among {len(tensors)} tensors "
            f"(first: {', '.join(sorted(tensors)[:3])})"
        ) from error
    except (ValueError, IndexError, ZeroDivisionError) as error:
        raise WeightsError(f"{source}: its tensors make no π0.5 model: {error}") from error
    _compare(config, shapes, source)
    return config


def _refuse_others(tensors: Mapping[str, Stored], source: Path) -> None:
    if any(name.startswith(("state_proj.", "action_time_mlp_in.")) for name in tensors):
        raise WeightsError(f"{source} is a π0 checkpoint (it has state_proj or action_time_mlp_in); expected π0.5's")
    if lora := [name for name in tensors if "lora_" in name]:
        raise WeightsError(f"{source} holds LoRA adapters ({lora[0]}); merge them into the weights first")


def _gemma(shapes: Shapes, part: str) -> GemmaConfig:
    """The keys and values of π0.5's Gemma models have one head, whose width is therefore that of their projections."""
    layer = f"{part}layers.0."
    mlp_dim, width = shapes[f"{layer}mlp.gate_proj.weight"]
    head_dim = shapes[f"{layer}self_attn.k_proj.weight"][0]
    heads = shapes[f"{layer}self_attn.q_proj.weight"][0] // head_dim
    return GemmaConfig(width, _depth(shapes, part), mlp_dim, heads, 1, head_dim)


def _siglip(shapes: Shapes, heads: int) -> SiglipConfig:
    hidden, _, patch, _ = shapes["vision.patch_embedding.weight"]
    side = math.isqrt(shapes["vision.position_embedding.weight"][0])
    inner = shapes["vision.layers.0.fc1.weight"][0]
    return SiglipConfig(hidden, inner, _depth(shapes, "vision."), heads, side * patch, patch)


def _depth(shapes: Shapes, part: str) -> int:
    found = (re.match(rf"{re.escape(part)}layers\.(\d+)\.", name) for name in shapes)
    return 1 + max(int(match[1]) for match in found if match)


def _compare(config: Pi05Config, shapes: Shapes, source: Path) -> None:
    with torch.device("meta"):
        expected = {name: tuple(tensor.shape) for name, tensor in Pi05(config).state_dict().items()}
    missing, extra = sorted(set(expected) - set(shapes)), sorted(set(shapes) - set(expected))
    if missing or extra:
        raise WeightsError(f"{source}: {_listed('missing', missing)}; {_listed('unexpected', extra)}")
    for name, shape in expected.items():
        if shapes[name] != shape:
            raise WeightsError(
                f"{source}: {to_openpi(name)} should have shape {list(shape)} by the other tensors, it has "
                f"{list(shapes[name])}"
            )


def _listed(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    shown = ", ".join(to_openpi(name) for name in names[:SHOWN])
    return f"{len(names)} tensors {kind}" + (f": {shown}{more}" if names else "")
