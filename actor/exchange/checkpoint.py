"""What a checkpoint of another tool says of itself, and what a user adds to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actor.exchange.tensors import Stored
from actor.normalize import NormStats
from actor.weights import WeightsError


@dataclass(frozen=True)
class Checkpoint:
    """tensors: under openpi's names, those that nothing uses included.
    stats: of the model's side; they may be wider than the robot.
    stats_source: where they were read.
    horizon: how many actions a chunk has; None where nothing says so.
    robot: what it says of the robot, as the fields of `ActorConfig`.
    siglip_heads: how many heads the image encoder has; None: as many as So400m.
    """

    tensors: Mapping[str, Stored]
    stats: NormStats
    stats_source: Path
    horizon: int | None
    max_token_len: int
    robot: Mapping[str, Any]
    siglip_heads: int | None = None


def read_json(path: Path) -> dict[str, Any]:
    """Raises WeightsError where it is no JSON object."""
    try:
        data = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(data, dict):
        raise WeightsError(f"{path} should hold a JSON object, it holds {type(data).__name__}")
    return data
