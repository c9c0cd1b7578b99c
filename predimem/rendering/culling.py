"""Which bodies of a scene a camera cannot see because they are outside its field of view.

Software drivers are slow per triangle, seen or not: a wrist camera sees a gripper, and used to pay for an arm.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

_BOXES: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # ManiSkill scene -> `_boxes` of it
_CORNERS = np.array([[x, y, z, 1.0] for x in (0, 1) for y in (0, 1) for z in (0, 1)])


def out_of_view(camera: Any) -> list[Any]:
    """The render bodies that no pixel of `camera` can show; camera: a sensor of ManiSkill with one world.

    None where a lamp casts shadows, which come from outside of the image too. Bodies that were added to the
    scene after its first image, or moved within their entity, are not looked at until `forget`.
    """
    scene = camera.camera.scene
    (world,) = scene.sub_scenes
    if any(light.shadow for light in world.render_system.lights):
        return []
    if scene not in _BOXES:
        _BOXES[scene] = _boxes(world)
    bodies, corners = _BOXES[scene]
    if not bodies:
        return []
    (lens,) = camera.camera._render_cameras
    seen_from = lens.get_projection_matrix() @ np.linalg.inv(lens.get_model_matrix())
    placed = np.stack([body.entity.pose.to_transformation_matrix() for body in bodies])
    clip = np.einsum("ij,bjk,bck->bci", seen_from, placed, corners)  # [B, 8, 4]
    x, y, w = clip[..., 0], clip[..., 1], clip[..., 3]
    beyond = np.stack([x > w, x < -w, y > w, y < -w, w < 0]).all(axis=2).any(axis=0)
    return [body for body, hidden in zip(bodies, beyond, strict=True) if hidden]


def forget(scene: Any) -> None:
    """To be called after bodies of a ManiSkill scene were replaced."""
    _BOXES.pop(scene, None)


def _boxes(world: Any) -> tuple[list[Any], np.ndarray]:
    """The bodies made of meshes, and the corners [B, 8, 4] of the box around each, in its entity's frame."""
    from sapien.render import RenderBodyComponent, RenderShapeTriangleMesh

    bodies, corners = [], []
    for entity in world.entities:
        for body in entity.components:
            if not isinstance(body, RenderBodyComponent) or not body.render_shapes:
                continue
            if all(isinstance(shape, RenderShapeTriangleMesh) for shape in body.render_shapes):
                points = np.concatenate([_points(shape) for shape in body.render_shapes])
                low, high = points.min(axis=0), points.max(axis=0)
                bodies.append(body)
                corners.append(np.append(low, 0.0) + _CORNERS * np.append(high - low, 1.0))
    return bodies, np.array(corners)


def _points(shape: Any) -> np.ndarray:
    """The corners [8 P, 3] of the boxes around its P parts, in its body's frame."""
    pose = shape.local_pose.to_transformation_matrix()
    found = []
    for part in shape.parts:
        vertices = np.asarray(part.vertices) * shape.scale
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        found.append((np.append(low, 0.0) + _CORNERS * np.append(high - low, 1.0)) @ pose[:3].T)
    return np.concatenate(found)
