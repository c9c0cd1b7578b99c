"""What the recall planner reads of a snapshot: one token for each frame of an earlier session, and one for now."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WORD_CELLS = 64
SCALARS = 4


@dataclass(frozen=True, eq=False)
class Shown:
    """A session as it is shown: its instruction and the embeddings of its frames, float32 [F, D]."""

    instruction: str
    embeddings: np.ndarray


@dataclass(frozen=True, eq=False)
class Tokens:
    """T tokens, the last one of which is now.

    embeddings: float32 [T, D]. words: float32 [T, WORD_CELLS], the instruction of the token's session.
    scalars: float32 [T, SCALARS]: ln(1 + how many newer sessions are shown); how many frames of this session come
        before and after this one; whether it is now.
    """

    embeddings: np.ndarray
    words: np.ndarray
    scalars: np.ndarray


def tokens_of(sessions: Sequence[Shown], view: np.ndarray, instruction: str) -> Tokens:
    """sessions: oldest first. view: float32 [D], of the newest frame."""
    embeddings, words, scalars = [], [], []
    for rank, session in enumerate(reversed(sessions)):
        count = len(session.embeddings)
        embeddings.append(session.embeddings)
        words.append(np.broadcast_to(word_cells(session.instruction), (count, WORD_CELLS)))
        before = np.arange(count)
        scalars.append(np.stack([np.full(count, np.log1p(rank)), before, before[::-1], np.zeros(count)], axis=1))
    embeddings.append(view[None])
    words.append(word_cells(instruction)[None])
    scalars.append(np.array([[0.0, 0.0, 0.0, 1.0]]))
    parts = (np.concatenate(part).astype(np.float32) for part in (embeddings, words, scalars))
    return Tokens(*parts)


def word_cells(text: str) -> np.ndarray:
    """float32 [WORD_CELLS]: the words of a text, each counted in the cell that its hash names, with length 1."""
    cells = np.zeros(WORD_CELLS, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        cells[zlib.crc32(word.encode()) % WORD_CELLS] += 1.0
    return cells / max(1.0, float(np.linalg.norm(cells)))
