"""A Qwen3-VL folder as one downloads it, but with random weights and few of them.

What a training and a server depend on is Qwen's own: the architecture, the size of the vocabulary with its special
tokens at their numbers, untied embeddings, the form of the chat, and the image processor, which enlarges images below
256 x 256 px. The tokenizer's other tokens are not: it spells texts with a small byte-level BPE, and the rest of the
vocabulary are fillers that no text contains.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCABULARY, WORDS = 151_936, 151_643  # the tokens that are not special come first
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>",
    "</think>",
)  # fmt: skip
PATCH, MERGE = 16, 2


def make_qwen3vl_folder(
    folder: Path, seed: int = 0, hidden: int = 32, layers: int = 2, vision_hidden: int = 32, vision_layers: int = 2
) -> None:
    """Write config.json, weights, tokenizer, chat template and processor. hidden, vision_hidden: multiples of 32."""
    import torch
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    from planner.tiny.tokenizer import CHAT_TEMPLATE

    tokenizer = _tokenizer()
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": VOCABULARY,
            "hidden_size": hidden,
            "intermediate_size": 3 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "max_position_embeddings": 262_144,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5_000_000.0,
                "mrope_section": [4, 2, 2],
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": False,
            "eos_token_id": WORDS + SPECIAL.index("<|im_end|>"),
            "pad_token_id": WORDS,
        },
        vision_config={
            "depth": vision_layers,
            "hidden_size": vision_hidden,
            "intermediate_size": 2 * vision_hidden,
            "num_heads": 2,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "out_hidden_size": hidden,
            "num_position_embeddings": 2304,
            "deepstack_visual_indexes": [0],
        },
        image_token_id=_id("<|image_pad|>"),
        video_token_id=_id("<|video_pad|>"),
        vision_start_token_id=_id("<|vision_start|>"),
        vision_end_token_id=_id("<|vision_end|>"),
        tie_word_embeddings=False,
    )
    sizes: dict[str, Any] = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "temporal_patch_size": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216},
    }
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config)
    model.generation_config.eos_token_id = [_id("<|im_end|>"), _id("<|endoftext|>")]
    model.generation_config.pad_token_id = WORDS
    model.save_pretrained(folder)
    Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(**sizes),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(**sizes),
        chat_template=CHAT_TEMPLATE,  # says the same as Qwen's where there are no tools
    ).save_pretrained(folder)


def _id(special: str) -> int:
    return WORDS + SPECIAL.index(special)


def _tokenizer() -> Any:
    from tokenizers import AddedToken, Tokenizer
    from transformers import Qwen2Tokenizer

    from planner.prompt import PromptConfig
    from planner.tiny.tokenizer import train_tokenizer
    from planner.tiny.tokenizer_config import TokenizerConfig

    small = train_tokenizer(TokenizerConfig(vocab_size=600, subtasks=("open the drawer",)), PromptConfig())
    data = json.loads(small.backend_tokenizer.to_str())
    words = data["model"]["vocab"]
    data["added_tokens"] = []
    data["model"]["vocab"] = words | {f"\u0000filler{number}": number for number in range(len(words), WORDS)}
    backend = Tokenizer.from_str(json.dumps(data))
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return Qwen2Tokenizer(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
