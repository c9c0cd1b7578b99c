"""What the images of a scene could show: facts beside an episode's frames, kept as JSON in its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

KEY = "facts"  # of `Episode.metadata`
IN_GRIPPER, ELSEWHERE = "hand", "elsewhere"  # where an object can be besides the places of the arena, as stored


@dataclass(frozen=True, eq=False)
class SceneFacts:
    """What T frames of C cameras could show of O objects. All of it is true; what no camera sees has NaN pixels.

    objects: their names.
    places: [T][O], the smallest place that an object is in, `IN_GRIPPER` or `ELSEWHERE`.
    pixels: float32 [T, O, C, 2], the middle (u, v) of what is seen of an object, as fractions of width and height.
    mats: [T], the place that is marked, "" where none is.
    mat_pixels: float32 [T, C, 2], the middle of what is seen of the mark.
    held: [T], the object that is held, or "".
    joints: their names.
    openings: float32 [T, J], from 0 (shut) to 1 (open).
    """

    objects: tuple[str, ...]
    places: tuple[tuple[str, ...], ...]
    pixels: np.ndarray
    mats: tuple[str, ...]
    mat_pixels: np.ndarray
    held: tuple[str, ...]
    joints: tuple[str, ...]
    openings: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def as_json(self) -> dict[str, Any]:
        return {
            "objects": list(self.objects),
            "places": [list(row) for row in self.places],
            "pixels": _to_json(self.pixels),
            "mats": list(self.mats),
            "mat_pixels": _to_json(self.mat_pixels),
            "held": list(self.held),
            "joints": list(self.joints),
            "openings": _to_json(self.openings),
        }

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any], where: str) -> SceneFacts:
        """Raises ValueError, which begins with `where`, if an episode has none."""
        data = metadata.get(KEY)
        if data is None:
            raise ValueError(
                f"{where} has no facts: expected an episode of `predimem datagen` with `kind: vision_data`"
            )
        return cls(
            objects=tuple(data["objects"]),
            places=tuple(tuple(row) for row in data["places"]),
            pixels=_from_json(data["pixels"]),
            mats=tuple(data["mats"]),
            mat_pixels=_from_json(data["mat_pixels"]),
            held=tuple(data["held"]),
            joints=tuple(data["joints"]),
            openings=_from_json(data["openings"]),
        )


def _to_json(array: np.ndarray) -> Any:
    """Nested lists, rounded to 4 digits; JSON has no NaN."""
    return [_to_json(row) for row in array] if array.ndim else None if np.isnan(array) else round(float(array), 4)


def _from_json(data: Any) -> np.ndarray:
    return np.array(data, np.float32)  # None becomes NaN
