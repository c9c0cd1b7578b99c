"""Planners of any size with weights drawn at random, whose answers are spelled like real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import Qwen3VLForConditionalGeneration

from memory_bank import MemoryConfig
from planner.caches import CacheConfig
from planner.checkpoint import PlannerSpec
from planner.decoding import QwenPlanner
from planner.model import ObjectiveConfig
from planner.prompt import PromptConfig, render_answer
from planner.tiny.base import BaseConfig, TinyConfig, tiny_hf_config, tiny_processor
from planner.tiny.tokenizer_config import TokenizerConfig

INSTRUCTION = "Pour wine into the red mug twice, then stand the bottle back on the table."
SUBTASKS = ("pour wine into mug 1st", "pour wine into mug 2nd")
LONGEST, SMALL = 24, 0.02
STRIDE, PIXELS = 10, 256
PROMPT = PromptConfig(cameras=("front", "wrist"), timestamps="gaps")
MEMORY = MemoryConfig(recent_stride_steps=STRIDE, cluster_gap_steps=1)
TEXT = {"mrope_section": (24, 20, 20), "rope_theta": 5e6, "head_dim": 128, "image_size": PIXELS, "patch_size": 16}
SIZES = {
    "90m": TinyConfig(
        hidden_size=1024, intermediate_size=3072, layers=6, heads=8, kv_heads=2, initializer_range=0.05,
        vision_hidden_size=320, vision_intermediate_size=1280, vision_layers=6, vision_heads=5,
        deepstack_layers=(1, 2, 4), **TEXT,
    ),
    "8b": TinyConfig(
        hidden_size=4096, intermediate_size=12288, layers=36, heads=32, kv_heads=8, initializer_range=0.02,
        vision_hidden_size=1152, vision_intermediate_size=4304, vision_layers=27, vision_heads=16,
        deepstack_layers=(8, 16, 24), **TEXT,
    ),
    "8b-deep": TinyConfig(layers=36, vision_layers=27, deepstack_layers=(8, 16, 24), image_size=PIXELS, patch_size=16),
    "tiny": TinyConfig(image_size=PIXELS, deepstack_layers=(0, 1)),
}  # fmt: skip
VOCABULARY = {"8b": 151_936}


def make_planner(size: str, device: str, caches: CacheConfig) -> tuple[QwenPlanner, list[torch.nn.Linear]]:
    """A planner with weights drawn at random, and heads that say one subtask each."""
    tokens = TokenizerConfig(vocab_size=512, instructions=(INSTRUCTION,), subtasks=SUBTASKS)
    base = BaseConfig(tiny=SIZES[size], tokenizer=tokens)
    processor = tiny_processor(base, PROMPT)
    config = tiny_hf_config(base.tiny, processor.tokenizer, ObjectiveConfig(window=5))
    text: Any = config.text_config
    text.vocab_size = VOCABULARY.get(size, text.vocab_size)
    text.max_position_embeddings = 1 << 17
    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if device == "cpu" else torch.bfloat16)
    try:
        with torch.device(device):
            model = Qwen3VLForConditionalGeneration(config).eval()
            for layer in model.model.language_model.layers:
                layer.self_attn.o_proj.weight.data.mul_(SMALL)
                layer.mlp.down_proj.weight.data.mul_(SMALL)
    finally:
        torch.set_default_dtype(default)
    planner = QwenPlanner(model, processor, PlannerSpec(PROMPT, MEMORY, max_new_tokens=LONGEST), caches)
    return planner, [head_that_says(planner, subtask) for subtask in SUBTASKS]


def head_that_says(planner: QwenPlanner, subtask: str) -> torch.nn.Linear:
    """A head by which each token of one answer follows from the one before, where layers add little."""
    text, tokenizer = planner._model.model.language_model, planner._tokenizer
    before = tokenizer("<|im_start|>assistant\n").input_ids[-1]
    script = [before, *tokenizer(render_answer(subtask, []) + "<|im_end|>").input_ids]
    device = planner._model.device
    hidden = text.norm(text.embed_tokens(torch.tensor(script[:-1], device=device))).float()
    logits = torch.full((len(script) - 1, text.embed_tokens.num_embeddings), -20.0, device=device)
    logits[range(len(script) - 1), script[1:]] = 0.0
    head = torch.nn.Linear(hidden.shape[1], logits.shape[1], bias=False, device=device)
    head.weight.data = (torch.linalg.pinv(hidden) @ logits).T.to(planner._model.dtype)
    return head


def speak(planners: Sequence[QwenPlanner], head: torch.nn.Linear) -> None:
    for planner in planners:
        planner._model.lm_head = planner._forward._head = head
