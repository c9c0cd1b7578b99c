"""Meshes against geometry done by hand: closed, facing outwards, the size that was asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from predimem.envs.arena.scene import meshes
from predimem.envs.arena.scene.meshes import Mesh

BOX = meshes.box((0.1, 0.2, 0.3), (1.0, 0.0, 0.0), 0.4)
CAN = meshes.cylinder(0.1, 0.2, (0.0, 1.0, 0.0), sides=400)
CONE = meshes.turned(((0, 0), (0.1, 0), (0, 0.3)), sides=400)
ROOF = meshes.wedge((0.1, 0.2, 0.3))
BOW = meshes.rod(tuple((0.0, math.cos(t), math.sin(t)) for t in np.linspace(0, math.pi, 200)), 0.1, sides=60)


def face_vectors(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """Corners [F, 3, 3] and normals [F, 3] (twice the area long) of the triangles."""
    corners = mesh.vertices.astype(np.float64)[mesh.triangles]
    return corners, np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


@pytest.mark.parametrize("mesh", [BOX, CAN, CONE, ROOF, BOW])
def test_triangles_and_normals_face_the_same_way(mesh: Mesh) -> None:
    _, facing = face_vectors(mesh)
    facing /= np.linalg.norm(facing, axis=1, keepdims=True) + 1e-12
    agreement = np.einsum("fi,fci->fc", facing, mesh.normals[mesh.triangles])
    flat = np.linalg.norm(face_vectors(mesh)[1], axis=1) < 1e-9  # at the tip of a cone, or the middle of a lid
    assert agreement[~flat].min() > 0.9
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("mesh", "volume_m3"),
    [
        (BOX, 8 * 0.1 * 0.2 * 0.3),
        (CAN, math.pi * 0.1**2 * 0.4),
        (CONE, math.pi * 0.1**2 * 0.3 / 3),
    ],
)
def test_a_closed_mesh_encloses_its_volume(mesh: Mesh, volume_m3: float) -> None:
    corners, facing = face_vectors(mesh)
    assert np.einsum("fi,fi->", corners.mean(axis=1), facing) / 6 == pytest.approx(volume_m3, rel=1e-3)


def test_a_roof_without_its_base() -> None:
    _, facing = face_vectors(ROOF)
    slopes, gables = 2 * 0.4 * math.hypot(0.1, 0.6), 2 * 0.1 * 0.6
    assert np.linalg.norm(facing, axis=1).sum() / 2 == pytest.approx(slopes + gables, rel=1e-5)
    assert ROOF.vertices[:, 2].max() == pytest.approx(0.3) and abs(ROOF.vertices[:, 0]).max() == pytest.approx(0.1)


def test_a_rod_keeps_its_radius() -> None:
    to_centre = np.hypot(BOW.vertices[:, 1], BOW.vertices[:, 2]) - 1.0
    np.testing.assert_allclose(np.hypot(to_centre, BOW.vertices[:, 0]), 0.1, atol=1e-4)


def test_a_image_fits_a_face_or_is_repeated() -> None:
    assert {tuple(uv) for uv in meshes.box((0.1, 0.2, 0.3)).uvs} == {(0, 0), (1, 0), (1, 1), (0, 1)}
    left = meshes.box((0.1, 0.2, 0.3), (0, 0, 0), 0.0, 0.1).uvs[:4]  # the side -x: 0.4 m wide, 0.6 m high
    np.testing.assert_allclose(left.max(axis=0), (4, 6), rtol=1e-5)


def test_images_stand_upright_on_the_sides_of_a_box() -> None:
    mesh = meshes.box((0.1, 0.2, 0.3))
    for face in range(4):
        corners, uvs = mesh.vertices[4 * face : 4 * face + 4], mesh.uvs[4 * face : 4 * face + 4]
        assert (corners[uvs[:, 1] == 1][:, 2] > 0).all()
        right = corners[1] - corners[0]  # from u = 0 to u = 1
        assert np.cross(right, [0, 0, 1]) @ mesh.normals[4 * face] > 0


def test_meshes_are_shared_and_cannot_be_changed() -> None:
    again = meshes.box((0.1, 0.2, 0.3), (1.0, 0.0, 0.0), 0.4)
    assert again is BOX
    with pytest.raises(ValueError, match="read-only"):
        again.vertices[0] = 0.0
