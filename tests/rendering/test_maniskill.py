"""Mesh decimation against numbers done by hand; the simulator's part is in evaluation/test_mikasa.py."""

import numpy as np
import pytest

from predimem.envs.mikasa.suite import MikasaEnvironment
from predimem.rendering.maniskill import _housing, cluster_vertices


def test_vertices_of_a_cell_become_their_mean() -> None:
    vertices = np.array([[0.1, 0, 0], [0.3, 0, 0], [1.5, 0, 0], [0, 1.5, 0]], np.float32)
    triangles = np.array([[0, 2, 3], [1, 2, 3]])
    merged, faces = cluster_vertices(vertices, triangles, cell_m=1.0)
    # Cells in lexicographic order: (0, 0, 0) with two vertices, (0, 1, 0), (1, 0, 0).
    np.testing.assert_allclose(merged, [[0.2, 0, 0], [0, 1.5, 0], [1.5, 0, 0]])
    assert faces.tolist() == [[0, 2, 1]]  # the second triangle became the same as the first


def test_triangles_within_a_cell_vanish() -> None:
    vertices = np.array([[0.1, 0, 0], [0.2, 0, 0], [0, 0.2, 0]], np.float32)
    merged, faces = cluster_vertices(vertices, np.array([[0, 1, 2]]), cell_m=1.0)
    assert merged.shape == (1, 3) and faces.shape == (0, 3)


def test_a_fine_grid_changes_nothing_but_the_order() -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], np.float32)
    triangles = np.array([[0, 1, 2], [1, 3, 2]])
    merged, faces = cluster_vertices(vertices, triangles, cell_m=0.01)
    before = {frozenset(map(tuple, vertices[t])) for t in triangles}
    assert {frozenset(map(tuple, merged[f])) for f in faces} == before


@pytest.mark.slow
@pytest.mark.needs("suite", "vulkan")
def test_hiding_the_wrist_cameras_housing_leaves_stock_images_as_they_are() -> None:
    environment = MikasaEnvironment("RememberColor3-VLA-v0", "stock")
    environment.reset(900_000)
    sensor = environment._env.unwrapped.scene.sensors["hand_camera"]
    assert len(_housing(sensor)) == 1
    for axis in range(3):
        action = np.zeros(7, np.float32)
        action[axis] = 1.0
        shown = environment.step(action).observation.images["hand_camera"]
        type(sensor).capture.stock(sensor)  # the suite's own way, housing included
        stock = sensor.get_obs(rgb=True, depth=False, segmentation=False, position=False)["rgb"][0]
        np.testing.assert_array_equal(shown, stock.numpy())
    environment.close()
