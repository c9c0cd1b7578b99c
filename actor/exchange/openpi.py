"""openpi's PyTorch checkpoints: `model.safetensors`, `assets/<name>/norm_stats.json`, and sometimes a `config.json`.

What openpi's training config says of the robot (its cameras, which actions are relative) is Python code in openpi and
in no checkpoint, so that the user has to say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from actor.exchange.checkpoint import Checkpoint, read_json
from actor.exchange.sizes import SIGLIP_HEADS
from actor.exchange.tensors import FILE, Stored, stored_tensors, write_tensors
from actor.gemma import GemmaConfig
from actor.names import EMBEDDING, EXPERT_HEAD, TIED_EMBEDDING
from actor.normalize import NormStats, Quantiles, load_stats, save_stats
from actor.weights import ActorConfig, WeightsError
from predimem.core.files import write_json

STATS = "norm_stats.json"
MAX_TOKEN_LEN = 200  # openpi's for π0.5
VARIANTS = {
    "gemma_2b": GemmaConfig(2048, 18, 16_384, 8, 1, 256),
    "gemma_300m": GemmaConfig(1024, 18, 4096, 8, 1, 256),
    "dummy": GemmaConfig(64, 4, 128, 8, 1, 16),
}


def read_openpi(folder: Path, asset: str | None = None) -> Checkpoint:
    """asset: the folder below `assets/` whose statistics are taken; None: the only one. Raises WeightsError."""
    tensors = stored_tensors(folder)
    stats = _stats_file(folder, asset)
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    if config.get("pi05") is False:
        raise WeightsError(f"{path} says pi05: false; expected a π0.5 checkpoint")
    try:
        found = load_stats(stats)
    except ValueError as error:
        raise WeightsError(f"{error}; expected openpi's statistics with q01 and q99 for state and actions") from error
    horizon, heads = config.get("action_horizon"), config.get("vision_heads")
    return Checkpoint(tensors, found, stats, horizon, MAX_TOKEN_LEN, {}, heads)


def _stats_file(folder: Path, asset: str | None) -> Path:
    if asset is not None:
        path = folder / "assets" / asset / STATS
        if not path.is_file():
            raise WeightsError(f"{path} is missing; in {folder / 'assets'} there are: {_names(_found(folder), folder)}")
        return path
    found = _found(folder)
    if not found:
        raise WeightsError(
            f"{folder / 'assets' / '<name>' / STATS} is missing: without the statistics that it was trained with the "
            "checkpoint's actions mean nothing. Copy `assets` from the checkpoint's own folder"
        )
    if len(found) > 1:
        raise WeightsError(f"{folder / 'assets'} has several statistics; choose with --asset: {_names(found, folder)}")
    return found[0]


def _found(folder: Path) -> list[Path]:
    return sorted((folder / "assets").rglob(STATS))


def _names(found: list[Path], folder: Path) -> str:
    return ", ".join(str(path.parent.relative_to(folder / "assets")) for path in found) or "none"


def write_openpi(
    folder: Path, config: ActorConfig, tensors: Mapping[str, Stored], stats: NormStats, asset: str
) -> None:
    """A folder that openpi's `create_trained_policy` reads. The statistics without mean and std get the middle and half
    the width of the quantiles in their place, because openpi's file has to have them; π0.5 does not use them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / FILE, with_heads(tensors, config))
    model = config.model
    described: dict[str, Any] = {
        "action_dim": model.action_dim,
        "action_horizon": model.action_horizon,
        "paligemma_variant": _variant(model.paligemma),
        "action_expert_variant": _variant(model.action_expert),
        "precision": "bfloat16" if any(tensor.dtype == "BF16" for tensor in tensors.values()) else "float32",
        "pi05": True,
    }
    if model.siglip.num_attention_heads != SIGLIP_HEADS:
        described["vision_heads"] = model.siglip.num_attention_heads
    write_json(folder / "config.json", described, indent=2)
    path = folder / "assets" / asset / STATS
    path.parent.mkdir(parents=True, exist_ok=True)
    save_stats(path, NormStats(_complete(stats.state), _complete(stats.actions)))


def with_heads(tensors: Mapping[str, Stored], config: ActorConfig) -> dict[str, Stored]:
    """With the expert's language head, which nothing uses and a strict reader expects; zeros where it was left out."""
    found = dict(tensors)
    if EXPERT_HEAD not in found:
        embedding = found.get(EMBEDDING) or found[TIED_EMBEDDING]
        shape = (config.model.vocab_size, config.model.action_expert.width)
        found[EXPERT_HEAD] = Stored(None, embedding.dtype, shape)
    return found


def _variant(config: GemmaConfig) -> str:
    return next((name for name, sizes in VARIANTS.items() if sizes == config), f"width_{config.width}")


def _complete(quantiles: Quantiles) -> Quantiles:
    if quantiles.mean is not None and quantiles.std is not None:
        return quantiles
    low, high = (np.asarray(value, np.float64) for value in (quantiles.q01, quantiles.q99))
    return replace(quantiles, mean=(low + high) / 2, std=(high - low) / 2)
