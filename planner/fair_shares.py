"""Divides a memory among robots so that one with many keyframes does not push out what the others need."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

Robot = TypeVar("Robot", bound=Hashable)


def fair_shares(wanted: Mapping[Robot, int], limit: int) -> dict[Robot, int]:
    """How many bytes each robot may hold, not more than it wants and `limit` together.

    All have equal shares; what one does not need of its share is divided among the others.
    """
    shares, left = {}, limit
    for place, (robot, bytes_) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        shares[robot] = min(bytes_, left // (len(wanted) - place))
        left -= shares[robot]
    return shares
