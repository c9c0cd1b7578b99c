"""How many tokens a prompt has, from the files beside a planner's weights; the weights themselves are not needed.

A server that sizes images otherwise than training did, or that renders the chat in another way, counts another number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.checkpoint import PlannerCheckpointError
from planner.prompt import Prompt, PromptConfig, chat_messages


class PromptCounter:
    """Counts the tokens of prompts. Raises PlannerCheckpointError where the tokenizer or config.json is missing."""

    def __init__(self, folder: str | Path, config: PromptConfig):
        from transformers import AutoTokenizer

        folder = Path(folder)
        try:
            vision = json.loads((folder / "config.json").read_text())["vision_config"]
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise PlannerCheckpointError(
                f"the tokenizer of the planner in {folder} cannot be read ({error}): copy tokenizer.json, "
                "tokenizer_config.json, chat_template.jinja and config.json of its export there"
            ) from error
        self._cell = config.image_patch_size * vision["spatial_merge_size"]

    def __call__(self, prompt: Prompt, sizes: Sequence[tuple[int, int]]) -> int:
        """sizes: (width, height) of each image in pixels, as it is sent."""
        text = self._tokenizer.apply_chat_template(
            chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        images = sum((width // self._cell) * (height // self._cell) for width, height in sizes)
        return len(self._tokenizer(text).input_ids) - len(sizes) + images

    def text(self, text: str) -> int:
        """The tokens of a text, such as an answer."""
        return len(self._tokenizer(text).input_ids)
