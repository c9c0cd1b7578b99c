"""How long the samples of a training are. ms-swift replaces one that is too long by another, without a word, and long
memories would be the first to go: so they are counted and refused before it starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from planner.dataset import DatasetError
from planner.prompt import Prompt, PromptConfig, size_images
from planner.prompt_tokens import PromptCounter
from predimem.core.files import write_json
from predimem.core.progress import watched

FILE_NAME = "lengths.json"
END = "<|im_end|>\n"


@dataclass(frozen=True)
class Lengths:
    """In tokens, prompt and answer together.

    samples: how many there are; mean, longest: their lengths. images: how many they show on average.
    """

    samples: int
    mean: float
    longest: int
    images: float


def check_lengths(jsonl: Path, base: Path, prompt: PromptConfig, max_length: int) -> Lengths:
    """Measure the samples of a JSONL, and note their lengths beside it. base: the folder with the tokenizer.

    Raises DatasetError if one of them is longer than `max_length`.
    """
    count, sent = PromptCounter(base, prompt), cache(lambda width, height: _size_sent(width, height, prompt))
    lengths, images, keyframes = [], 0, 0
    with jsonl.open() as file:
        total = sum(1 for _ in file)
        file.seek(0)
        for line in watched(file, total, "samples", "lengths of the samples"):
            row = json.loads(line)
            messages, shown, sizes = row["messages"], len(row["images"]), row["metadata"]["image_sizes"]
            # The cameras of a timestep are adjacent.
            tokens = count(Prompt(messages[:-1], []), [sent(*sizes[i % len(sizes)]) for i in range(shown)])
            lengths.append(tokens + count.text(messages[-1]["content"] + END))
            images += shown
            if lengths[-1] > max_length:
                keyframes = max(keyframes, row["metadata"]["history_keyframe_count"])
    if long := sum(length > max_length for length in lengths):
        raise DatasetError(
            f"{jsonl}: {long} of {total} samples are longer than sft.max_length, {max_length} tokens; the longest has "
            f"{max(lengths)}, and they have up to {keyframes} keyframes. ms-swift would leave them out without a word. "
            f"Set sft.max_length to {max(lengths)} or more, or bound the memory with memory.keyframe_capacity"
        )
    found = Lengths(total, round(float(np.mean(lengths)), 1), max(lengths), round(images / total, 2))
    write_json(jsonl.with_name(FILE_NAME), asdict(found), indent=1)
    return found


def _size_sent(width: int, height: int, prompt: PromptConfig) -> tuple[int, int]:
    (image,) = size_images([np.zeros((height, width, 3), np.uint8)], prompt)
    return image.size
