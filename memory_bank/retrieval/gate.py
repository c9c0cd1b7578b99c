"""The gate: which earlier session, if any, shows what this episode needs.

A session's similarity is a weighted mean of two numbers from -1 to 1: the cosine of the present view and the session's
most similar frame, of embeddings without their mean, and the likeness of the instructions. Sessions of another robot or
person are not valid. Where several fit about as well, they say the same thing at different times, and the newest
counts. Where none is similar enough, the gate stays silent.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from memory_bank.retrieval.cutting import normalised
from predimem.core.config import ConfigError, from_dict, to_dict
from predimem.core.types import History, PastSession
from predimem.core.weight_files import weights_folder

FILE_NAME = "gate.json"
SMALL_WORDS = frozenset(
    "a an and as at by for from i in into is it me my of on one out put that the then to was with".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Gate:
    """The numbers of the gate; `predimem train interference` chooses them on seeds of their own.

    threshold: a session below this similarity does not fit.
    margin: a session that is less similar than the best one by no more than this says the same thing.
    text_weight: the share of the instructions in the similarity; that of the views is the rest.
    mean: the mean embedding of frames like these, which is taken away; empty for none.
    projection: float32 [D, E], a learned map of embeddings without their mean, such that views of what belongs together
        are alike in E numbers (`planner.recall.projection`); None: embeddings are compared as they are.
    """

    threshold: float = 0.5
    margin: float = 0.1
    text_weight: float = 0.5
    mean: tuple[float, ...] = ()
    projection: np.ndarray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.text_weight <= 1.0 or self.margin < 0.0:
            raise ValueError(
                f"gate: expected text_weight in [0, 1] and margin >= 0, got {self.text_weight} and {self.margin}"
            )

    @classmethod
    def read(cls, place: str) -> Gate:
        """place: a file (.json), or a folder of the shipped weights that has one. Raises ConfigError for a file that is
        no gate, and WeightsError where there is no such folder."""
        path = Path(place) if place.endswith(".json") else weights_folder(None, place) / FILE_NAME
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            projected = isinstance(said, dict) and said.pop("projection", None)
            gate = from_dict(cls, said, str(path))
            return replace(gate, projection=np.load(path.with_name(projected))) if projected else gate
        except ConfigError:
            raise
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: expected the JSON of a gate ({error})") from error

    def save(self, path: Path) -> None:
        """Write the numbers as JSON; a projection goes into a .npy file beside it."""
        said = to_dict(replace(self, projection=None))
        del said["projection"]
        if self.projection is not None:
            beside = path.with_suffix(".npy")
            np.save(beside, self.projection)
            said["projection"] = beside.name
        path.write_text(json.dumps(said) + "\n", encoding="utf-8")

    def compared(self, embeddings: np.ndarray) -> np.ndarray:
        """float32 [..., E]: embeddings [..., D] as they are compared, without the mean, projected, each of length 1."""
        vectors = np.asarray(embeddings, np.float32)
        vectors = vectors - np.asarray(self.mean, np.float32) if self.mean else vectors
        return normalised(vectors if self.projection is None else vectors @ self.projection)


@dataclass(frozen=True, eq=False)
class Match:
    """How well a session fits: `similarity`, made of `view` and `text`. place: in the history."""

    session: PastSession
    place: int
    similarity: float
    view: float
    text: float


@dataclass(frozen=True, eq=False)
class Admission:
    """What the gate decided, and why, in words for people. matches: of all valid sessions, the best one first."""

    admitted: Match | None
    why: str
    matches: tuple[Match, ...] = ()


def rank(history: History, view: np.ndarray, instruction: str, gate: Gate) -> list[Match]:
    """The valid sessions with frames, the most similar one first; of two alike the newer one.

    view: float [D], the embedding of what the robot sees now. Raises ValueError for a session without embeddings.
    """
    now, matches = gate.compared(view), []
    for place, session in enumerate(history.sessions):
        if not session.frames or not _is_valid(session, history):
            continue
        if session.embeddings is None:
            raise ValueError(f"session {session.name} has no embeddings: embed its frames first")
        seen = float((gate.compared(session.embeddings) @ now).max())
        told = text_similarity(session.instruction, instruction)
        matches.append(Match(session, place, gate.text_weight * told + (1 - gate.text_weight) * seen, seen, told))
    return sorted(matches, key=lambda match: (-match.similarity, -match.place))


def decide(matches: Sequence[Match], gate: Gate) -> Admission:
    """The newest of those that fit as well as the best one (`rank`); none where the best one does not fit."""
    if not matches:
        return Admission(None, "there is no earlier session of this robot and person")
    best = matches[0]
    if best.similarity < gate.threshold:
        why = f"no session fits: the best one has {best.similarity:.2f} of {gate.threshold:.2f}"
        return Admission(None, why, tuple(matches))
    floor = max(gate.threshold, best.similarity - gate.margin)
    rivals = [match for match in matches if match.similarity >= floor]
    chosen = max(rivals, key=lambda match: match.place)
    why = f"similarity {chosen.similarity:.2f} (view {chosen.view:.2f}, instruction {chosen.text:.2f})"
    if len(rivals) > 1:
        why += f"; the newest of {len(rivals)} that fit about as well"
    return Admission(chosen, why, tuple(matches))


def text_similarity(first: str, second: str) -> float:
    """The cosine of the words of two texts, from 0 to 1; small words do not count."""
    a, b = _words(first), _words(second)
    if not a or not b:
        return 0.0
    shared = sum(a[word] * b[word] for word in a)
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))


def _words(text: str) -> Counter[str]:
    return Counter(word for word in re.findall(r"\w+", text.lower()) if word not in SMALL_WORDS)


def _is_valid(session: PastSession, history: History) -> bool:
    """What is not known of either side does not exclude."""
    pairs = ((session.robot, history.robot), (session.person, history.person))
    return all(not then or not now or then == now for then, now in pairs)
