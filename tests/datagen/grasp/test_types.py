"""Clouds that cannot be used are refused, saying why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datagen.grasp.types import PointCloud


def parts(**changed: Any) -> dict[str, Any]:
    whole = {
        "points_m": np.zeros((4, 3)),
        "colours": np.zeros((4, 3), np.uint8),
        "target": np.array([True, False, False, False]),
        "up": np.array([0.0, -1.0, 0.0]),
        "viewpoints_m": np.zeros((4, 3)),
    }
    return whole | changed


def test_a_cloud() -> None:
    assert PointCloud(**parts()).target.sum() == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"colours": np.zeros((3, 3), np.uint8)}, r"colours of a cloud of 4 points has the shape \[4, 3\]"),
        ({"viewpoints_m": np.zeros(3)}, "viewpoints_m"),
        ({"points_m": np.zeros((4, 2))}, "points_m"),
        ({"target": np.zeros((4, 1), bool)}, "target"),
        ({"target": np.ones(4)}, "bool, not float64"),
        ({"target": np.zeros(4, bool)}, "no point is of the target: look from"),
        ({"points_m": np.full((4, 3), np.nan)}, "without depth"),
        ({"up": np.array([0.0, 0.0, 2.0])}, "unit vector"),
    ],
)
def test_wrong_clouds(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PointCloud(**parts(**changed))
