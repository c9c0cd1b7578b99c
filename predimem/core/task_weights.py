"""How often each task is drawn in a training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

OTHERS = "*"


def check_task_weights(weights: Mapping[str, float]) -> None:
    """Raises ValueError unless all weights are positive, and each task has one, if only that of `*`."""
    if any(not weight > 0 for weight in weights.values()):
        raise ValueError(f"task_weights must be positive, got {dict(weights)}")
    if weights and OTHERS not in weights:
        raise ValueError(f"task_weights needs the key '*', for tasks that match no other pattern; got {list(weights)}")


def weights_of(tasks: Iterable[str], weights: Mapping[str, float]) -> list[float]:
    """The weight of each task: that of the first pattern that its name matches (`*` and `?` as in a shell)."""
    patterns = [*(pattern for pattern in weights if pattern != OTHERS), OTHERS]
    return [weights[next(pattern for pattern in patterns if fnmatchcase(task, pattern))] for task in tasks]
