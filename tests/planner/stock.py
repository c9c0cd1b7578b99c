"""What stock transformers makes of a snapshot: the measure of our own, faster path."""

from __future__ import annotations

from typing import Any

import torch

from planner.prompt import PromptConfig, chat_messages, render_prompt, size_images
from predimem.core.types import MemorySnapshot


def stock_inputs(processor: Any, config: PromptConfig, snapshot: MemorySnapshot) -> dict[str, torch.Tensor]:
    """The Qwen3-VL processor's batch of one."""
    prompt = render_prompt(snapshot, config)
    text = processor.apply_chat_template(chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True)
    images = size_images(prompt.images, config)
    return dict(processor(text=[text], images=images, do_resize=False, return_tensors="pt"))
