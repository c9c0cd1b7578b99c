"""Turns a snapshot into what the language model sees: tokens, their places (M-RoPE) and the images between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from planner.image_features import ImageReader, Picture
from planner.prompt import PromptConfig, chat_messages, render_prompt
from predimem.core.types import MemorySnapshot


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the language model reads of one snapshot, L tokens.

    tokens: int64 [L], with image tokens in the places of images.
    positions: int64 [3, L], each token's time, row and column.
    pictures: the images, in the order of their places.
    next_position: the position of the answer's first token.
    is_image: bool [L], True for the tokens of images.
    content: what stands in the prompt, one entry for a text token or a whole image. Where two prompts begin with the
        same entries, they begin with the same tokens at the same positions.
    ends: for each entry, how many tokens there are up to its end.
    stops: numbers of entries after which the prompt may be read in a pass of its own: the ends of all timesteps, where
        the next prompt can begin alike. The rest, of which the newest timestep is a part, is read with the answer.
    """

    tokens: np.ndarray
    positions: np.ndarray
    pictures: list[Picture]
    next_position: int
    is_image: np.ndarray
    content: list[int]
    ends: list[int]
    stops: list[int]

    def pictures_between(self, first: int, last: int) -> list[Picture]:
        """Those among the entries `first` to `last`."""
        before = sum(entry < 0 for entry in self.content[:first])
        return self.pictures[before : before + sum(entry < 0 for entry in self.content[first:last])]


class InputReader:
    """Gives what the Qwen3-VL processor and `get_rope_index` give, without looking at the images."""

    def __init__(self, processor: Any, prompt: PromptConfig, reader: ImageReader, image_token: int):
        self._processor, self._prompt, self._reader, self._image_token = processor, prompt, reader, image_token

    def __call__(self, snapshot: MemorySnapshot, newest_is_missing: bool = False) -> Inputs:
        """newest_is_missing: the newest timestep of the snapshot is still to come; its last one is a stop, too."""
        prompt = render_prompt(snapshot, self._prompt)
        return self.read(chat_messages(prompt.messages), prompt.images, newest_is_missing)

    def read(
        self, messages: Sequence[dict[str, Any]], images: Sequence[np.ndarray], newest_is_missing: bool = False
    ) -> Inputs:
        """messages: in the form of transformers' chat templates. Raises ValueError unless each image has its place."""
        text = self._processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        tokens, pictures = self._processor.tokenizer(text).input_ids, self._reader.pictures(images)
        timestep = len(self._prompt.cameras) if self._prompt.grows_at_the_end else 0
        return lay_out(tokens, pictures, self._image_token, timestep, newest_is_missing)


def lay_out(
    tokens: Sequence[int],
    pictures: list[Picture],
    image_token: int,
    timestep: int = 0,
    newest_is_missing: bool = False,
) -> Inputs:
    """Put images into a prompt with one image token for each.

    A text token is one place further in all three directions. An image's tokens share their time, their rows and
    columns count from there, and the text goes on after the longer side.

    timestep: so many images are a timestep, after which there is a stop; 0: no stops.
    """
    spelled = np.asarray(tokens, np.int64)
    places = np.flatnonzero(spelled == image_token)
    if len(places) != len(pictures):
        raise ValueError(f"the prompt has {len(places)} image tokens for {len(pictures)} images")
    ids, positions, start, done = [], [], 0, 0
    content, sizes = spelled.tolist(), np.ones(len(spelled), np.int64)
    for place, picture in zip([*places.tolist(), len(spelled)], [*pictures, None], strict=True):
        ids.append(spelled[done:place])
        positions.append(np.broadcast_to(np.arange(start, start + place - done), (3, place - done)))
        start, done = start + place - done, place + 1
        if picture is not None:
            rows, columns = picture.rows, picture.columns
            content[place], sizes[place] = picture.number, rows * columns
            ids.append(np.full(rows * columns, image_token, np.int64))
            grid = np.indices((1, rows, columns)).reshape(3, -1)
            positions.append(start + grid)
            start += max(rows, columns)
    laid = np.concatenate(ids)
    stops = [place + 1 for place in places[timestep - 1 :: timestep].tolist()] if timestep else []
    return Inputs(
        tokens=laid,
        positions=np.concatenate(positions, 1),
        pictures=pictures,
        next_position=int(start),
        is_image=laid == image_token,
        content=content,
        ends=list(accumulate(sizes.tolist())),
        stops=stops if newest_is_missing else stops[:-1],
    )
