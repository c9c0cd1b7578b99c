"""π0.5's prompt: the subtask and the discretised state as text, and the text as tokens."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from predimem.core.types import ObservationError

PAD, BOS, UNKNOWN = "<pad>", "<bos>", "<unk>"
BINS = 256


def render_prompt(subtask: str, state_bins: Sequence[int] | np.ndarray) -> str:
    """The text that both training and inference see (openpi's π0.5 format; without bins, no state)."""
    cleaned = subtask.strip().replace("_", " ").replace("\n", " ")
    if not len(state_bins):
        return f"Task: {cleaned};\nAction: "
    return f"Task: {cleaned}, State: {' '.join(str(int(b)) for b in state_bins)};\nAction: "


class Tokenizer(Protocol):
    """Text to token numbers, a beginning-of-sequence token first; 0 pads."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...


class WordTokenizer:
    """The tiny tokenizer: one token per word, per punctuation mark and per state bin."""

    def __init__(self, text: str) -> None:
        """`text`: the contents of a tokenizer.json."""
        from tokenizers import Tokenizer as Backend

        self._backend = Backend.from_str(text)
        self._warned: set[str] = set()

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    @property
    def text(self) -> str:
        return self._backend.to_str(pretty=True)

    def encode(self, text: str) -> list[int]:
        """Warns, once, of each word that is none of the vocabulary: all of them are the same token."""
        encoding = self._backend.encode(text)
        words = zip(encoding.ids, encoding.offsets, strict=True)
        new = {text[start:end] for id, (start, end) in words if id == self.unknown_id} - self._warned
        if new:
            self._warned |= new
            warnings.warn(f"words that the actor was not trained with: {', '.join(sorted(new))}", stacklevel=2)
        return encoding.ids

    @cached_property
    def unknown_id(self) -> int:
        return self._backend.get_vocab()[UNKNOWN]

    def with_words(self, subtasks: Iterable[str]) -> WordTokenizer:
        """The same tokens, and after them one for each word of these subtasks that is unknown, sorted."""
        known = self._backend.get_vocab()
        new = sorted(_words(subtasks) - set(known))
        data = json.loads(self.text)
        data["model"]["vocab"] |= {word: len(known) + i for i, word in enumerate(new)}
        return WordTokenizer(json.dumps(data))

    def number_ids(self) -> list[int]:
        """The tokens of the state bins 0 ... 255, in order."""
        vocabulary = self._backend.get_vocab()
        return [vocabulary[str(i)] for i in range(BINS)]


class PaliGemmaTokenizer:
    """PaliGemma's sentencepiece model, which the user supplies as a file."""

    def __init__(self, path: str | Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._backend = SentencePieceProcessor(model_file=str(path))

    @property
    def data(self) -> bytes:
        """The contents of the file."""
        return self._backend.serialized_model_proto()

    @property
    def vocab_size(self) -> int:
        return self._backend.vocab_size()

    def encode(self, text: str) -> list[int]:
        return [self._backend.bos_id(), *self._backend.encode(text)]


def train_word_tokenizer(subtasks: Iterable[str]) -> WordTokenizer:
    """The vocabulary of the prompts with these subtasks: 256 numbers and their words, sorted."""
    from tokenizers import Tokenizer as Backend
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    numbers = [str(i) for i in range(BINS)]
    vocabulary = [PAD, BOS, UNKNOWN, *numbers, *sorted(_words(subtasks) - set(numbers))]
    backend = Backend(WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token=UNKNOWN))
    backend.normalizer = Lowercase()
    backend.pre_tokenizer = Whitespace()
    backend.post_processor = TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 1)])
    return WordTokenizer(backend.to_str())


def _words(subtasks: Iterable[str]) -> set[str]:
    """Of their prompts, as the tiny tokenizer splits them."""
    from tokenizers.pre_tokenizers import Whitespace

    prompts = (render_prompt(subtask, [0]) for subtask in subtasks)
    return {word for prompt in prompts for word, _ in Whitespace().pre_tokenize_str(prompt.lower())}


def load_tokenizer(path: str | Path) -> Tokenizer:
    """`*.json` is a tiny tokenizer, `*.model` PaliGemma's. Raises ValueError if it cannot be read."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"tokenizer not found: {path} (the full model needs PaliGemma's paligemma_tokenizer.model; give "
            "its path as `tokenizer` in the config)"
        )
    try:
        return WordTokenizer(path.read_text()) if path.suffix == ".json" else PaliGemmaTokenizer(path)
    except Exception as error:  # both libraries raise bare exceptions of their own
        raise ValueError(f"{path} is not a readable tokenizer: {error}") from error


def save_tokenizer(tokenizer: Tokenizer, path: str | Path) -> None:
    if isinstance(tokenizer, WordTokenizer):
        Path(path).write_text(tokenizer.text)
    elif isinstance(tokenizer, PaliGemmaTokenizer):
        Path(path).write_bytes(tokenizer.data)


def tokenize(
    tokenizer: Tokenizer, subtasks: Sequence[str], state_bins: np.ndarray, max_len: int, cut: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Prompts to int64 [n, l] and bool [n, l], padded to the longest (padding changes no result).

    state_bins: int [n, D]. A subtask too long for `max_len` loses its last words, never the state; with `cut` False it
    raises ObservationError.
    """
    rows = [_encode(tokenizer, s, bins, max_len, cut) for s, bins in zip(subtasks, state_bins, strict=True)]
    length = max(len(row) for row in rows)
    tokens = np.zeros((len(rows), length), np.int64)
    mask = np.zeros((len(rows), length), bool)
    for i, row in enumerate(rows):
        tokens[i, : len(row)], mask[i, : len(row)] = row, True
    return tokens, mask


def _encode(tokenizer: Tokenizer, subtask: str, bins: np.ndarray, max_len: int, cut: bool) -> list[int]:
    words = subtask.split()
    while True:
        ids = tokenizer.encode(render_prompt(" ".join(words), bins))
        if len(ids) <= max_len:
            if len(words) < len(subtask.split()):
                warnings.warn(f"subtask cut to {len(words)} words to fit {max_len} tokens", stacklevel=3)
            return ids
        if words and not cut:
            shown = subtask if len(subtask) <= 60 else subtask[:59] + "…"
            raise ObservationError(
                f"subtask: the prompt of {shown!r} and a state of {len(bins)} numbers has {len(ids)} tokens, the actor "
                f"reads {max_len}: say it in fewer words, or raise max_token_len in the actor's config"
            )
        if not words:
            raise ValueError(f"max_token_len {max_len} is too short for a state of {len(bins)} numbers")
        words = words[: len(words) // 2] if len(words) > 64 else words[:-1]
