"""Turns a training checkpoint into the planner that is shipped: stock Qwen3-VL without head and objective.

The arena's planners share one frozen vision tower, which is two thirds of their bytes. With `tower_shard` it is
written as a file of its own, in Hugging Face's layout of a checkpoint in several files, so that folders side by side
can share it (`predimem.core.weight_files.place_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from qwen_vl_utils.vision_process import IMAGE_MAX_TOKEN_NUM, IMAGE_MIN_TOKEN_NUM
from safetensors.torch import load_file, save_file
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from planner.checkpoint import PlannerSpec, draw_model, write_spec
from planner.instructions import write_instructions
from planner.model import CONFIG_KEY, PrediMemForConditionalGeneration
from predimem.core.files import AtomicWrite, write_json

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
TOWER_SHARD, TEXT_SHARD = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
TOWER, HEAD = "model.visual.", "predictive_head."
ADAPTERS = "adapter_config.json"


def export_planner(
    source: str | Path,
    target: str | Path,
    spec: PlannerSpec,
    dtype: torch.dtype,
    tower_shard: bool = False,
    instructions: Sequence[str] = (),
    base: str | Path | None = None,
) -> None:
    """Write the checkpoint `source` without its head to `target`, with `predimem.json`, atomically.

    tower_shard: the vision tower in a file of its own.
    instructions: those of its training, where they are known.
    base: the folder that training began with; the adapters of a `source` trained with LoRA are merged into it.

    The processor that is written sizes images as training did, so that any server of the folder does too.

    With `spec.drawn_seed` no weights are written at all. Raises RuntimeError if `source` lacks a weight of plain
    Qwen3-VL, or has others than those that the seed gives.
    """
    source, target = Path(source), Path(target)
    model = _load(source, dtype if spec.drawn_seed is None else torch.float32, base)
    if hasattr(model.config, CONFIG_KEY):
        delattr(model.config, CONFIG_KEY)
    model.config.architectures = ["Qwen3VLForConditionalGeneration"]
    with AtomicWrite(target) as partial:
        model.save_pretrained(partial)
        _processor(source if (source / "tokenizer_config.json").is_file() else base or source).save_pretrained(partial)
        write_spec(partial, spec)
        if instructions:
            write_instructions(partial, instructions)
        if spec.drawn_seed is not None:
            _check_drawn(model, spec.drawn_seed, source)
            (partial / WEIGHTS).unlink()
        elif tower_shard:
            split_tower(partial)
        for path in partial.glob("*.safetensors"):
            path.chmod(0o644)  # safetensors writes for the owner alone


def split_tower(folder: str | Path) -> None:
    """Split the one file of weights of an exported planner in two, tower and text; nothing to do if it is split.

    The tower's file depends on the tower's weights alone. Interrupted, the folder still loads as it was.
    """
    folder = Path(folder)
    if (folder / INDEX).is_file() and not (folder / WEIGHTS).is_file():
        return
    tensors = load_file(folder / WEIGHTS)
    shard_of = {name: TOWER_SHARD if name.startswith(TOWER) else TEXT_SHARD for name in sorted(tensors)}
    for shard in (TOWER_SHARD, TEXT_SHARD):
        part = {name: tensors[name] for name, its in shard_of.items() if its == shard}
        with AtomicWrite(folder / shard) as partial:
            save_file(part, partial, {"format": "pt"})
            partial.chmod(0o644)
    total = {
        "total_parameters": sum(tensor.numel() for tensor in tensors.values()),
        "total_size": sum(tensor.nbytes for tensor in tensors.values()),
    }
    write_json(folder / INDEX, {"metadata": total, "weight_map": shard_of}, indent=2)
    (folder / WEIGHTS).unlink()


def _check_drawn(model: Qwen3VLForConditionalGeneration, seed: int, source: Path) -> None:
    drawn = draw_model(model.config, seed).state_dict()
    other = [name for name, tensor in model.state_dict().items() if not torch.equal(tensor, drawn[name])]
    if other:
        raise RuntimeError(f"{source} holds other weights than those drawn from seed {seed}, first {other[0]}")


def _load(source: Path, dtype: torch.dtype, base: str | Path | None) -> Qwen3VLForConditionalGeneration:
    if (source / ADAPTERS).is_file():
        if base is None:
            raise RuntimeError(f"{source} holds adapters alone: say which base they belong to")
        return _merged(source, Path(base), dtype)
    loaded: Any = Qwen3VLForConditionalGeneration.from_pretrained(source, dtype=dtype, output_loading_info=True)
    model, info = loaded
    if info["missing_keys"]:
        raise RuntimeError(f"{source} lacks weights of Qwen3-VL, first {sorted(info['missing_keys'])[0]}")
    return model


def _merged(source: Path, base: Path, dtype: torch.dtype) -> Qwen3VLForConditionalGeneration:
    """The base with the adapters of `source`, added in float32, without the predictive head."""
    from peft import PeftModel

    whole: Any = PrediMemForConditionalGeneration.from_pretrained(base, dtype=torch.float32)
    adapted: Any = PeftModel.from_pretrained(whole, str(source))
    merged = adapted.merge_and_unload()
    weights = {name: tensor for name, tensor in merged.state_dict().items() if not name.startswith(HEAD)}
    plain: Any = Qwen3VLForConditionalGeneration(merged.config)
    missing, unexpected = plain.load_state_dict(weights, strict=False)
    if missing or unexpected:
        raise RuntimeError(f"{source}: after merging, {[*missing, *unexpected][0]} does not fit Qwen3-VL")
    plain.generation_config = merged.generation_config
    return plain.to(dtype)


def _processor(folder: str | Path) -> Any:
    """With the limits of qwen-vl-utils, which sizes images in training and here: Qwen's own processor would enlarge
    small ones, and a server of the folder would show the planner more tokens than it was trained on."""
    processor: Any = AutoProcessor.from_pretrained(folder)
    images = processor.image_processor
    cell = (images.patch_size * images.merge_size) ** 2
    images.size = {"shortest_edge": IMAGE_MIN_TOKEN_NUM * cell, "longest_edge": IMAGE_MAX_TOKEN_NUM * cell}
    return processor
