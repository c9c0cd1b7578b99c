"""Leaving images out: the suite renders at every step, which is nearly all that a step costs."""

from __future__ import annotations

from typing import Any


class SparseCameras:
    """Makes the suite's environment render only while `looking`, and repeat its last images else.

    The suite's wrappers see complete observations. Simulation and success do not depend on images.
    """

    def __init__(self, base: Any):
        """base: the suite's unwrapped environment, changed from here on."""
        self.looking = True
        self._render, self._images = base._get_obs_sensor_data, None
        base._get_obs_sensor_data = self._sensor_data

    def _sensor_data(self, apply_texture_transforms: bool = True) -> Any:
        if self.looking or self._images is None:
            self._images = self._render(apply_texture_transforms)
        return dict(self._images)
