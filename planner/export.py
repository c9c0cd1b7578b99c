"""From a training checkpoint to the planner that is shipped: no head, no objective, stock Qwen3-VL."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

from planner.checkpoint import PlannerSpec, write_spec
from planner.model import CONFIG_KEY


def export_planner(source: str | Path, target: str | Path, spec: PlannerSpec, dtype: torch.dtype) -> None:
    """Write the checkpoint `source` without its head to `target`, with `predimem.json`, atomically.

    Raises RuntimeError if `source` lacks a weight of plain Qwen3-VL.
    """
    source, target = Path(source), Path(target)
    model, info = _load(source, dtype)
    if info["missing_keys"]:
        raise RuntimeError(f"{source} lacks weights of Qwen3-VL, first {sorted(info['missing_keys'])[0]}")
    if hasattr(model.config, CONFIG_KEY):
        delattr(model.config, CONFIG_KEY)
    model.config.architectures = ["Qwen3VLForConditionalGeneration"]
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    AutoProcessor.from_pretrained(source).save_pretrained(partial)
    write_spec(partial, spec)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _load(source: Path, dtype: torch.dtype) -> tuple[Qwen3VLForConditionalGeneration, dict[str, Any]]:
    loaded: Any = Qwen3VLForConditionalGeneration.from_pretrained(source, dtype=dtype, output_loading_info=True)
    return loaded
