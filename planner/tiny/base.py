"""The checkpoint that training starts from: a tiny Qwen3-VL of our own, or a pretrained one.

Both are a folder of Hugging Face files whose config.json carries S2's objective; `swift sft` cannot
tell them apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers import (
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

from planner.model import CONFIG_KEY, ObjectiveConfig, PrediMemForConditionalGeneration
from planner.prompt import PromptConfig
from planner.tiny.tokenizer import CHAT_TEMPLATE, answer_token_ids, train_tokenizer
from planner.tiny.tokenizer_config import TokenizerConfig


@dataclass(frozen=True)
class TinyConfig:
    """Sizes of a Qwen3-VL trained from scratch; the architecture is the stock one."""

    hidden_size: int = 128
    intermediate_size: int = 256
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    mrope_section: tuple[int, ...] = (6, 5, 5)
    rope_theta: float = 10_000.0
    initializer_range: float = 0.08
    vision_hidden_size: int = 96
    vision_intermediate_size: int = 192
    vision_layers: int = 2
    vision_heads: int = 4
    deepstack_layers: tuple[int, ...] = (0,)
    patch_size: int = 16
    merge_size: int = 2
    image_size: int = 128


@dataclass(frozen=True)
class BaseConfig:
    """Where training starts from.

    pretrained: a Hugging Face model id or a local folder; if null, a tiny model is made.
    tiny: the sizes of a tiny model.
    tokenizer: what the tokenizer of a tiny model must spell well.
    """

    pretrained: str | None = None
    tiny: TinyConfig = field(default_factory=TinyConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)


def tiny_processor(
    config: BaseConfig, prompt: PromptConfig, tokenizer: Qwen2Tokenizer | None = None
) -> Qwen3VLProcessor:
    """A tokenizer, or else one that is trained for this prompt, with Qwen3-VL's image processor at the tiny patch
    size."""
    tokenizer = train_tokenizer(config.tokenizer, prompt) if tokenizer is None else tokenizer
    tiny = config.tiny
    cell = (tiny.patch_size * tiny.merge_size) ** 2
    sizes = {
        "patch_size": tiny.patch_size,
        "merge_size": tiny.merge_size,
        "temporal_patch_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "size": {"shortest_edge": 4 * cell, "longest_edge": 16384 * cell},
    }
    return Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**sizes),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**sizes),
        chat_template=CHAT_TEMPLATE,
    )


def tiny_hf_config(tiny: TinyConfig, tokenizer, objective: ObjectiveConfig) -> Qwen3VLConfig:
    """A Qwen3VLConfig of these sizes for this tokenizer."""
    token_id = tokenizer.convert_tokens_to_ids
    vocab_size = -(-len(tokenizer) // 64) * 64
    per_side = tiny.image_size // tiny.patch_size
    extra: dict[str, Any] = {"initializer_range": tiny.initializer_range, CONFIG_KEY: objective.to_hf()}
    return Qwen3VLConfig(
        text_config={
            "vocab_size": vocab_size,
            "hidden_size": tiny.hidden_size,
            "intermediate_size": tiny.intermediate_size,
            "num_hidden_layers": tiny.layers,
            "num_attention_heads": tiny.heads,
            "num_key_value_heads": tiny.kv_heads,
            "head_dim": tiny.head_dim,
            "max_position_embeddings": 8192,
            "initializer_range": tiny.initializer_range,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": tiny.rope_theta,
                "mrope_section": list(tiny.mrope_section),
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": True,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={
            "depth": tiny.vision_layers,
            "hidden_size": tiny.vision_hidden_size,
            "intermediate_size": tiny.vision_intermediate_size,
            "num_heads": tiny.vision_heads,
            "patch_size": tiny.patch_size,
            "spatial_merge_size": tiny.merge_size,
            "temporal_patch_size": 2,
            "out_hidden_size": tiny.hidden_size,
            "num_position_embeddings": per_side**2,
            "deepstack_visual_indexes": list(tiny.deepstack_layers),
            "initializer_range": tiny.initializer_range,
        },
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
        tie_word_embeddings=True,
        **extra,
    )


def make_tiny_base(
    folder: Path,
    config: BaseConfig,
    prompt: PromptConfig,
    objective: ObjectiveConfig,
    vision: dict[str, torch.Tensor] | None,
    seed: int,
    tokenizer: Qwen2Tokenizer | None = None,
) -> None:
    """Write a tiny base checkpoint, its text part initialised by `seed`.

    vision: the pretrained tower's state dict, or None for a random one.
    tokenizer: one that knows the prompt and the labels of `config`; None trains one.
    """
    processor = tiny_processor(config, prompt, tokenizer)
    ids = answer_token_ids(processor.tokenizer, config.tokenizer)
    objective = replace(objective, answer_token_ids=ids)
    torch.manual_seed(seed)
    model = PrediMemForConditionalGeneration(tiny_hf_config(config.tiny, processor.tokenizer, objective))
    if vision is not None:
        model.visual.load_state_dict(vision)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    processor.save_pretrained(folder)
    model.save_pretrained(folder)


def link_pretrained_base(folder: Path, pretrained: str, objective: ObjectiveConfig) -> None:
    """A folder of links to a pretrained checkpoint, with a config.json that carries the objective.

    pretrained: a local folder, or a model id, which is then downloaded from the Hugging Face hub.
    """
    source = Path(pretrained)
    if not source.is_dir():
        from huggingface_hub import snapshot_download

        source = Path(snapshot_download(pretrained))
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.iterdir()):
        link = folder / file.name
        if file.is_file() and file.name != "config.json" and not link.exists():
            link.symlink_to(file.resolve())
    data = json.loads((source / "config.json").read_text())
    data[CONFIG_KEY] = objective.to_hf()
    (folder / "config.json").write_text(json.dumps(data, indent=2) + "\n")
