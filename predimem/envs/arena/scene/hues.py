"""Turns colours about the wheel of hues."""

from __future__ import annotations

import numpy as np

TINT = 0.35  # the least saturation of what is turned: a grey has no hue that could be seen to turn


def turn_hue(rgb: np.ndarray, angle_deg: float) -> np.ndarray:
    """sRGB [..., 3] in [0, 1] with its hues turned by an angle; brightness (the largest channel) stays.

    An angle of 0 gives the colours back as they are; any other raises each saturation to `TINT` at least.
    """
    if not angle_deg:
        return rgb
    value, least = rgb.max(axis=-1), rgb.min(axis=-1)
    spread = value - least
    safe = np.where(spread > 0, spread, 1.0)
    red, green, blue = np.moveaxis(rgb, -1, 0)
    sixths = np.select(
        [spread == 0, value == red, value == green],
        [0.0, ((green - blue) / safe) % 6, (blue - red) / safe + 2],
        (red - green) / safe + 4,
    )
    saturation = np.maximum(np.where(value > 0, spread / np.where(value > 0, value, 1.0), 0.0), TINT)
    turned = (sixths + angle_deg / 60.0) % 6
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = (offset + turned) % 6
        channels.append(value * (1 - saturation * np.clip(np.minimum(k, 4 - k), 0.0, 1.0)))
    return np.stack(channels, axis=-1)
