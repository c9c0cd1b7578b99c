"""ManiSkill on a software Vulkan device: what has to be mended before and after a scene is made.

`prepare()` goes before the first `gym.make`. With an NVIDIA driver it changes nothing. Otherwise it
patches ManiSkill in this process: the parser of backend names (3.0.1 cannot parse "pci:0", and there
is no other name for such a device) and, for software drivers, `ManiSkillScene.add_camera`, so that
every camera gets a ready-made BRDF look-up table (SAPIEN otherwise computes one at the first image
of a process: 12 to 26 s on a software device), and `Camera.capture`, so that a camera is spared what it
cannot see: bodies outside its view, and the wrist camera its own housing, which is 425 thousand triangles,
four fifths of the scene. The shader is made lighter, too (see `shader`). Images stay the same to the last bit.

`decimate(env)` replaces heavy visual meshes by coarse ones. Images change a little (0.4 of 255 on
average), physics not at all: for making data, never for figures that are quoted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from predimem.core.progress import stage
from predimem.rendering import culling, shader, vulkan
from predimem.rendering.noise import ignore_loader_warning, without_driver_noise

_started = False  # whether this process has made an environment


def prepare() -> str:
    """Choose the Vulkan driver and mend ManiSkill for it. Returns `render_backend` for `gym.make`.

    Idempotent. To be called before anything imports sapien: the Vulkan loader reads its environment
    once. Raises `predimem.rendering.vulkan.VulkanError` where there is no driver.
    """
    ignore_loader_warning()
    driver = vulkan.use_driver()
    if driver.device.startswith("pci:"):
        _patch_backend_parser(driver.device)
    if driver.kind != "gpu":
        _patch_add_camera()
        _patch_capture()
        shader.patch_minimal_shader()
    return driver.device


@contextmanager
def starting() -> Iterator[None]:
    """To be put around the making of an environment, imports included. The first one in a process starts SAPIEN: that
    takes seconds, which are announced, and what a software driver says meanwhile is kept from standard error."""
    global _started
    if _started:
        yield
        return
    _started = True
    ignore_loader_warning()
    quiet = nullcontext() if vulkan.find_driver().kind in ("gpu", "none") else without_driver_noise()
    with stage("starting SAPIEN"), quiet:
        yield


def _patch_backend_parser(device: str) -> None:
    """Every backend but "none" becomes `device`: also ManiSkill's default "gpu", which is CUDA."""
    import dataclasses

    import mani_skill.envs.sapien_env as module
    import sapien

    stock = module.parse_sim_and_render_backend
    if getattr(stock, "mended", False):
        return

    def parse(sim_backend: str, render_backend: str | None) -> Any:
        info = stock(sim_backend, "none")
        if render_backend in (None, "none"):
            return info
        return dataclasses.replace(info, render_device=sapien.Device(device), render_backend="sapien_cpu")

    parse.mended = True  # type: ignore[attr-defined]
    module.parse_sim_and_render_backend = parse


def _patch_add_camera() -> None:
    from mani_skill.envs.scene import ManiSkillScene

    stock = ManiSkillScene.add_camera
    if getattr(stock, "mended", False):
        return

    def add_camera(self: Any, *args: Any, **kwargs: Any) -> Any:
        camera = stock(self, *args, **kwargs)
        for component in camera._render_cameras:
            component.set_texture("BRDFLUT", _brdf_lut())
        return camera

    add_camera.mended = True  # type: ignore[attr-defined]
    ManiSkillScene.add_camera = add_camera  # type: ignore[method-assign]


def _patch_capture() -> None:
    from mani_skill.sensors.camera import Camera

    stock = Camera.capture
    if getattr(stock, "mended", False):
        return

    def capture(self: Any) -> None:
        unseen = [(body, body.visibility) for body in (*_housing(self), *culling.out_of_view(self))]
        for body, _ in unseen:
            body.visibility = 0.0
        stock(self)
        for body, visibility in unseen:
            body.visibility = visibility

    capture.mended = True  # type: ignore[attr-defined]
    capture.stock = stock  # type: ignore[attr-defined]
    Camera.capture = capture  # type: ignore[method-assign]


def _housing(camera: Any) -> list[Any]:
    """The visual meshes of the RealSense that a camera sits in; none for any other camera."""
    from sapien.render import RenderBodyComponent

    if camera.entity is None or camera.entity.name != "camera_link":
        return []
    components = [c for link in camera.entity._objs for c in link.entity.components]
    return [c for c in components if isinstance(c, RenderBodyComponent)]


@functools.cache
def _brdf_lut() -> Any:
    """A constant table: only environment maps are weighted by it, and ManiSkill's scenes have none."""
    import sapien.render

    table = np.full((16, 16, 4), 0.5, np.float32)
    return sapien.render.RenderTexture(table, 2, "R32G32B32A32Sfloat", 1, "linear", "edge", False)


def decimate(
    env: Any,
    cell_m: float = 0.010,
    fine_cell_m: float = 0.006,
    min_triangles: int = 2000,
    ground_m: float = 20.0,
    flat_m: float = 0.0,
) -> None:
    """Replace every visual mesh of at least `min_triangles` by one clustered on a grid of `cell_m`.

    flat_m: where the surface bends by less than this, cells are two or four times as large; 0: nowhere.
    Acts on the scenes of `env` (a ManiSkill environment or a wrapper of one) until they are
    reconfigured; calling it again changes nothing. The RealSense body on the wrist ("camera_link",
    four fifths of all triangles) is small and gets the finer grid. Of ManiSkill's 100 m of ground,
    which is textured, the part within `ground_m` of the origin stays as it is. Meshes that were read
    from files are clustered once per process: a later call for the same robot costs 2 ms.
    """
    from sapien.render import RenderBodyComponent

    for scene in env.unwrapped.scene.sub_scenes:
        for entity in scene.entities:
            fine = entity.name == "camera_link"
            for body in [c for c in entity.components if isinstance(c, RenderBodyComponent)]:
                if "ground" in entity.name:
                    lighter = _cropped_body(body, ground_m) if _triangle_count(body) >= min_triangles else None
                else:
                    lighter = _lighter_body(body, fine_cell_m if fine else cell_m, min_triangles, flat_m)
                if lighter is not None:
                    entity.remove_component(body)
                    entity.add_component(lighter)
    culling.forget(env.unwrapped.scene)


_LIGHTER: dict[tuple[Any, ...], Any] = {}  # what a body is made of -> its coarse twin, None where it is light enough


def _lighter_body(body: Any, cell_m: float, min_triangles: int, flat_m: float) -> Any:
    """A coarse twin of `body` to be added to a scene, or None where it has less than `min_triangles`."""
    source = _source(body)
    if source is None:
        return _coarse_body(body, cell_m, flat_m) if _triangle_count(body) >= min_triangles else None
    key = (source, cell_m, min_triangles, flat_m)
    if key not in _LIGHTER:
        _LIGHTER[key] = _coarse_body(body, cell_m, flat_m) if _triangle_count(body) >= min_triangles else None
    twin = _LIGHTER[key]
    return twin and twin.clone()  # a clone shares the meshes


def _source(body: Any) -> tuple[Any, ...] | None:
    """What a body is made of, where all of it was read from files: each shape's file, size, pose and colours."""
    from sapien.render import RenderShapeTriangleMesh

    shapes = body.render_shapes
    if not shapes or not all(isinstance(s, RenderShapeTriangleMesh) and s.filename for s in shapes):
        return None
    return tuple(
        (s.filename, *map(float, (*s.scale, *s.local_pose.p, *s.local_pose.q)), *(_colour(p.material) for p in s.parts))
        for s in shapes
    )


def _colour(material: Any) -> tuple[Any, ...]:
    texture = material.base_color_texture
    surface = (material.roughness, material.metallic, material.specular)
    return (*material.base_color, *material.emission, *surface, texture and texture.filename)


def _triangle_count(body: Any) -> int:
    """Triangles of a body made of meshes only; 0 where a primitive shape (box, sphere) is among them."""
    from sapien.render import RenderShapeTriangleMesh

    if not all(isinstance(shape, RenderShapeTriangleMesh) for shape in body.render_shapes):
        return 0
    return sum(len(part.triangles) for shape in body.render_shapes for part in shape.parts)


def _coarse_body(body: Any, cell_m: float, flat_m: float) -> Any:
    from sapien.render import RenderBodyComponent, RenderShapeTriangleMesh

    coarse = RenderBodyComponent()
    for shape in body.render_shapes:
        for part in shape.parts:
            points = np.asarray(part.vertices, np.float32) * np.asarray(shape.scale, np.float32)
            vertices, triangles = cluster_vertices(points, np.asarray(part.triangles), cell_m, flat_m)
            if len(triangles) == 0:
                continue
            mesh = RenderShapeTriangleMesh(
                vertices=vertices,
                triangles=triangles.astype(np.uint32),
                normals=_vertex_normals(vertices, triangles),
                uvs=np.zeros((0, 2), np.float32),
                material=part.material,
            )
            mesh.local_pose = shape.local_pose
            coarse.attach(mesh)
    return coarse


def _cropped_body(body: Any, half_width_m: float) -> Any:
    from sapien.render import RenderBodyComponent, RenderShapeTriangleMesh

    cropped = RenderBodyComponent()
    for shape in body.render_shapes:
        for part in shape.parts:
            vertices, triangles = np.asarray(part.vertices), np.asarray(part.triangles)
            inside = (np.abs(vertices[:, :2]) <= half_width_m).all(axis=1)
            mesh = RenderShapeTriangleMesh(
                vertices=vertices,
                triangles=triangles[inside[triangles].all(axis=1)],
                normals=np.asarray(part.get_vertex_normal()),
                uvs=np.asarray(part.get_vertex_uv()),
                material=part.material,
            )
            mesh.local_pose = shape.local_pose
            cropped.attach(mesh)
    return cropped


def cluster_vertices(
    vertices: np.ndarray, triangles: np.ndarray, cell_m: float, flat_m: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Merge the vertices [V, 3] of each grid cell into their mean; drop collapsed and double triangles.

    flat_m: see `decimate`. Returns (float32 [V', 3], int64 [F', 3]).
    """
    vertices, triangles = np.asarray(vertices, np.float64), np.asarray(triangles, np.int64)
    index = _flat_cells(vertices, triangles, cell_m, flat_m) if flat_m else _cells(vertices, cell_m)
    faces = index[triangles]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (a != c)]
    first = np.unique(_row_numbers(np.sort(faces, axis=1)), return_index=True)[1]
    return _means(vertices, index).astype(np.float32), faces[np.sort(first)]


def _cells(points: np.ndarray, cell_m: float) -> np.ndarray:
    """int64 [V]: the number, from 0, of the grid cell that a point lies in."""
    return np.unique(_row_numbers(np.floor(points / cell_m).astype(np.int64)), return_inverse=True)[1]


def _means(points: np.ndarray, index: np.ndarray) -> np.ndarray:
    """[max(index) + 1, 3]: the mean of the points [V, 3] of each index [V]; every index has a point."""
    return np.stack([np.bincount(index, column) for column in points.T], 1) / np.bincount(index)[:, None]


def _flat_cells(points: np.ndarray, triangles: np.ndarray, cell_m: float, flat_m: float) -> np.ndarray:
    """As `_cells`, of the largest of 4, 2 and 1 `cell_m` that keeps the surface.

    It does where the planes of the triangles at a cell's points pass within `flat_m` of their mean: the
    root of the mean square distance, weighted by area.
    """
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1)
    normals /= np.maximum(areas, 1e-30)[:, None]
    index, taken = np.zeros(len(points), np.int64), 0
    left = np.arange(len(points))
    for size in (4, 2, 1):
        cells = _cells(points[left], size * cell_m)
        if size > 1:
            cell_of = np.full(len(points), -1)
            cell_of[left] = cells
            face, corner = np.nonzero(cell_of[triangles] >= 0)
            at = cell_of[triangles[face, corner]]
            offsets = ((_means(points[left], cells)[at] - corners[face, 0]) * normals[face]).sum(axis=1)
            squares = np.bincount(at, areas[face] * offsets**2, cells.max(initial=-1) + 1)
            weights = np.bincount(at, areas[face], len(squares))
            flat = (squares <= flat_m**2 * weights)[cells]
        else:
            flat = np.ones(len(left), bool)
        index[left[flat]] = taken + np.unique(cells[flat], return_inverse=True)[1]
        taken += len(np.unique(cells[flat]))
        left = left[~flat]
    return index


def _row_numbers(rows: np.ndarray) -> np.ndarray:
    """int64 [N]: one number for each row [N, 3] of small integers, in the rows' lexicographic order."""
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    low, high = rows.min(axis=0), rows.max(axis=0)
    _, y, z = (int(extent) for extent in high - low + 1)
    shifted = rows - low
    return (shifted[:, 0] * y + shifted[:, 1]) * z + shifted[:, 2]


def _vertex_normals(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    corners = vertices[triangles]
    face_normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(normals, triangles[:, corner], face_normals)
    return normals / (np.linalg.norm(normals, axis=1, keepdims=True) + 1e-9)
