"""Turns a snapshot into what the language model sees: tokens, their places (M-RoPE) and the images between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.image_features import ImageFeatures, ImageReader
from planner.prompt import PromptConfig, chat_messages, render_prompt
from predimem.core.types import MemorySnapshot


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the language model reads of one snapshot, L tokens.

    tokens: int64 [L], with image tokens in the places of images.
    positions: int64 [3, L], each token's time, row and column.
    images: the features of the images, in the order of their places.
    next_position: the position of the answer's first token.
    is_image: bool [L], True for the tokens of images.
    """

    tokens: np.ndarray
    positions: np.ndarray
    images: list[ImageFeatures]
    next_position: int
    is_image: np.ndarray


class InputReader:
    """Gives what the Qwen3-VL processor and `get_rope_index` give, but on images whose features are known."""

    def __init__(self, processor: Any, prompt: PromptConfig, reader: ImageReader, image_token: int):
        self._processor, self._prompt, self._reader, self._image_token = processor, prompt, reader, image_token

    def __call__(self, snapshot: MemorySnapshot) -> Inputs:
        prompt = render_prompt(snapshot, self._prompt)
        text = self._processor.apply_chat_template(
            chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        return lay_out(self._processor.tokenizer(text).input_ids, self._reader(prompt.images), self._image_token)


def lay_out(tokens: Sequence[int], images: list[ImageFeatures], image_token: int) -> Inputs:
    """Put images into a prompt with one image token for each.

    A text token is one place further in all three directions. An image's tokens share their time, their rows and
    columns count from there, and the text goes on after the longer side.
    """
    spelled = np.asarray(tokens, np.int64)
    places = np.flatnonzero(spelled == image_token)
    if len(places) != len(images):
        raise ValueError(f"the prompt has {len(places)} image tokens for {len(images)} images")
    ids, positions, start, done = [], [], 0, 0
    for place, image in zip([*places, len(spelled)], [*images, None], strict=True):
        ids.append(spelled[done:place])
        positions.append(np.broadcast_to(np.arange(start, start + place - done), (3, place - done)))
        start, done = start + place - done, place + 1
        if image is not None:
            rows, columns = image.rows, image.columns
            ids.append(np.full(rows * columns, image_token, np.int64))
            grid = np.indices((1, rows, columns)).reshape(3, -1)
            positions.append(start + grid)
            start += max(rows, columns)
    laid = np.concatenate(ids)
    return Inputs(laid, np.concatenate(positions, 1), images, int(start), laid == image_token)
