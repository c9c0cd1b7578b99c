import numpy as np
import pytest

from datagen.perception.boxes import upright_box


def surface(half: tuple[float, float, float], n: int = 4000) -> np.ndarray:
    """[n, 3]: points on the top and the sides of a box around the origin, not on its bottom."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (n, 3))
    face = rng.integers(0, 5, n)
    points[face == 0, 2] = 1.0
    for k, (axis, side) in enumerate(((0, 1), (0, -1), (1, 1), (1, -1)), 1):
        points[face == k, axis] = side
    return points * half


@pytest.mark.parametrize("yaw", [0.0, 0.3, 0.8, 1.5])
def test_a_box_is_found_however_it_is_turned(yaw: float) -> None:
    half = (0.02, 0.035, 0.017)
    cos, sin = np.cos(yaw), np.sin(yaw)
    turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
    box = upright_box(surface(half) @ turn.T + [0.1, -0.2, 0.017], floor_m=0.0)
    np.testing.assert_allclose(box.centre_m, [0.1, -0.2, 0.017], atol=0.001)
    np.testing.assert_allclose(sorted(box.half_m), sorted(half), atol=0.0015)
    long = box.rotation[:, int(np.argmax(box.half_m[:2]))]
    assert abs(long @ turn[:, 1]) > np.cos(np.radians(3))


def test_what_is_known_of_the_floor_completes_a_box_that_was_seen_from_above_only() -> None:
    top = surface((0.02, 0.03, 0.05))
    top = top[top[:, 2] > 0.02] + [0, 0, 0.05]
    assert upright_box(top).half_m[2] == pytest.approx(0.015, abs=0.002)
    box = upright_box(top, floor_m=0.0)
    assert box.half_m[2] == pytest.approx(0.05, abs=0.001) and box.centre_m[2] == pytest.approx(0.05, abs=0.001)


def test_a_few_stray_points_do_not_matter() -> None:
    points = np.concatenate([surface((0.02, 0.02, 0.02)), [[0.3, 0.0, 0.0]] * 20])
    np.testing.assert_allclose(upright_box(points).half_m, 0.02, atol=0.002)
