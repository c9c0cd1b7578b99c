"""What an action has to look like: refused when it is wrong, clipped when it is only too large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gymnasium.spaces import Box
    from torch import Tensor


def limited(action: Any, space: Box, worlds: Tensor, control_mode: str) -> tuple[Tensor, Tensor]:
    """(float32 [N, A] within the limits of `space`, bool [N]: it had to be clipped).

    action: [N, A], or [A] where N is 1; an array, a tensor or nested lists. space: of one world's action.
    worlds: any tensor [N] on the device of the simulation. Raises ValueError for anything else, and for
    numbers that are not finite.
    """
    import torch

    n, width = len(worlds), space.shape[0]
    try:
        given = torch.as_tensor(action).to(worlds.device, torch.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{_expected(space, n, control_mode)}; got {type(action).__name__}: {error}") from error
    shape = tuple(given.shape)
    if shape == (width,) and n == 1:
        given = given[None]
    elif shape != (n, width):
        raise ValueError(f"{_expected(space, n, control_mode)}; got shape {shape}")
    if not bool(torch.isfinite(given).all()):
        raise ValueError(f"{_expected(space, n, control_mode)}; got {given.tolist()}")
    low, high = (torch.as_tensor(limit, device=given.device) for limit in (space.low, space.high))
    clipped = torch.minimum(torch.maximum(given, low), high)
    return clipped, (clipped != given).any(dim=-1)


def _expected(space: Box, n: int, control_mode: str) -> str:
    width = space.shape[0]
    shape = f"({width},) or (1, {width})" if n == 1 else f"({n}, {width})"
    low, high = (np.array2string(limit, precision=4, separator=", ") for limit in (space.low, space.high))
    return f"an action of {control_mode} is finite numbers of shape {shape}, from {low} to {high}"
