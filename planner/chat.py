"""A prompt that somebody else has rendered, such as a client of an OpenAI-compatible server, and its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Chat:
    """robot: whose chat it is: its next one probably begins alike.
    messages: in the form of transformers' chat templates, an item `{"type": "image"}` for each image.
    images: RGB uint8 [H, W, 3] each, in the order of their items.
    max_new_tokens: the longest answer.
    schema: the JSON schema that the answer is kept to; None leaves it free.
    """

    robot: str
    messages: Sequence[dict[str, Any]]
    images: Sequence[np.ndarray]
    max_new_tokens: int
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class ChatAnswer:
    """text: what is said. pieces: the text of each token. probabilities: what the model gave each of them.

    prompt_tokens: how many tokens the prompt has, those of images included.
    finished: False where the answer was cut off at `max_new_tokens`.
    """

    text: str
    pieces: tuple[str, ...]
    probabilities: tuple[float, ...]
    prompt_tokens: int
    finished: bool
