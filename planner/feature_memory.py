"""Remembers features of images, in a bounded number of bytes, of which each robot has a fair share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from planner.fair_shares import fair_shares

Key = tuple[int, ...]  # the numbers of a timestep's images


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """The features of one image.

    merged: [slots, D], the embeddings of its tokens.
    deepstack: for each of the first layers, what is added to these tokens there, [slots, D].
    """

    merged: Tensor
    deepstack: tuple[Tensor, ...]

    @property
    def bytes(self) -> int:
        return sum(part.element_size() * part.numel() for part in (self.merged, *self.deepstack))

    def to(self, place: torch.device | torch.dtype) -> ImageFeatures:
        return replace(self, merged=self.merged.to(place), deepstack=tuple(part.to(place) for part in self.deepstack))


@dataclass
class _Known:
    images: list[ImageFeatures]
    bytes: int
    spilled: bool = False


class FeatureMemory:
    """The features of the timesteps that were used last.

    limit_bytes: so many are held on the model's device. spill_bytes: so many more in the host's memory, from where they
        come back when they are wanted.
    half: they are held in half precision (bfloat16), and used in it from the first time on, so that an answer does not
        depend on what is remembered.

    A timestep that several robots show is held once, and counts for each of them.
    """

    def __init__(self, limit_bytes: int, spill_bytes: int = 0, half: bool = False):
        if min(limit_bytes, spill_bytes) < 0:
            raise ValueError(
                f"bytes for the features of images must not be negative, got {limit_bytes} and {spill_bytes}"
            )
        self._limit, self._spill_limit, self._half = limit_bytes, spill_bytes, half
        self._known: dict[Key, _Known] = {}
        self._used: dict[str, OrderedDict[Key, None]] = {}  # of each robot, the last used one last

    def __len__(self) -> int:
        return len(self._known)

    @property
    def bytes(self) -> int:
        """On the model's device."""
        return sum(known.bytes for known in self._known.values() if not known.spilled)

    @property
    def spilled_bytes(self) -> int:
        return sum(known.bytes for known in self._known.values() if known.spilled)

    def get(self, key: Key, robot: str) -> Sequence[ImageFeatures] | None:
        """The features of a timestep's images, if they are known."""
        known = self._known.get(key)
        if known is None:
            return None
        self._note(key, robot)
        return self._usable(known.images)

    def put(self, key: Key, images: list[ImageFeatures], robot: str) -> Sequence[ImageFeatures]:
        """Remember the features of a timestep's images; they themselves, as they are to be used."""
        self._device, self._dtype = images[0].merged.device, images[0].merged.dtype
        held = [image.to(torch.bfloat16) for image in images] if self._half else images
        self._known[key] = _Known(held, sum(image.bytes for image in held))
        self._note(key, robot)
        return self._usable(held)

    def forget(self, robot: str) -> None:
        """Let go of what this robot alone has shown."""
        for key in self._used.pop(robot, {}):
            if not self._users(key):
                del self._known[key]

    def trim(self) -> None:
        """Keep to the limits: spill, or forget, what was not used for longest by the robots that hold most."""
        self._drop(self._limit, spilled=False)
        self._drop(self._spill_limit, spilled=True)

    def _note(self, key: Key, robot: str) -> None:
        used = self._used.setdefault(robot, OrderedDict())
        used[key] = None
        used.move_to_end(key)
        known = self._known[key]
        if known.spilled:
            known.images, known.spilled = [image.to(self._device) for image in known.images], False

    def _drop(self, limit: int, spilled: bool) -> None:
        if (self.spilled_bytes if spilled else self.bytes) <= limit:
            return
        for key in self._surplus(limit, spilled):
            known = self._known[key]
            if spilled or known.bytes > self._spill_limit:
                for used in self._used.values():
                    used.pop(key, None)
                del self._known[key]
            else:
                known.images, known.spilled = [image.to(torch.device("cpu")) for image in known.images], True

    def _surplus(self, limit: int, spilled: bool) -> list[Key]:
        """The timesteps that are in nobody's share."""
        mine = {
            robot: [key for key in reversed(used) if self._known[key].spilled == spilled]
            for robot, used in self._used.items()
        }
        shares = fair_shares({r: sum(self._known[key].bytes for key in keys) for r, keys in mine.items()}, limit)
        kept: set[Key] = set()
        for robot, keys in mine.items():
            left = shares[robot]
            for key in keys:
                left -= self._known[key].bytes
                if left < 0:
                    break
                kept.add(key)
        return list(dict.fromkeys(key for keys in mine.values() for key in reversed(keys) if key not in kept))

    def _users(self, key: Key) -> int:
        return sum(key in used for used in self._used.values())

    def _usable(self, images: list[ImageFeatures]) -> list[ImageFeatures]:
        return [image.to(self._dtype) for image in images] if self._half else images
