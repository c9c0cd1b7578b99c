"""Builds the objects: what collides is a box or a cylinder, what is seen is a package with a label on it."""

from __future__ import annotations

from typing import Any

import sapien
from mani_skill.envs.scene import ManiSkillScene

from predimem.envs.arena.objects import DENSITY_KG_M3, DISTRACTORS, OBJECTS, ObjectSpec
from predimem.envs.arena.scene.furniture import HIDDEN_M
from predimem.envs.arena.scene.looks import Look
from predimem.envs.arena.scene.meshes import box, cylinder, turned, wedge
from predimem.envs.arena.scene.parts import Parts
from predimem.envs.arena.unseen.setting import AS_BUILT, Style


def build_object(scene: ManiSkillScene, name: str, style: Style = AS_BUILT) -> Any:
    spec = (OBJECTS | DISTRACTORS)[name]
    builder: Any = scene.create_actor_builder()
    parts = Parts(scene, builder, density=DENSITY_KG_M3, style=style)
    if spec.shape == "box":
        parts.box(spec.half_m, [0, 0, 0])
    else:
        parts.cylinder(spec.half_m[0], spec.half_m[2], [0, 0, 0])
    {"box": _box, "carton": _carton, "can": _can, "bottle": _bottle}[spec.form](parts, spec)
    builder.initial_pose = sapien.Pose(list(HIDDEN_M))
    thing = builder.build(name=name)
    parts.dress(thing)
    return thing


def _label(spec: ObjectSpec) -> Look:
    return Look(image=spec.label, roughness=0.5)


def _box(parts: Parts, spec: ObjectSpec) -> None:
    parts.show(_label(spec), box(spec.half_m))


def _carton(parts: Parts, spec: ObjectSpec) -> None:
    """A gable top with a screw cap."""
    a, b, c = spec.half_m
    gable, cap = 0.009, 0.004  # half heights
    shoulder = c - 2 * cap - 2 * gable
    parts.show(_label(spec), box((a, b, (shoulder + c) / 2), (0, 0, (shoulder - c) / 2)))
    parts.show(Look(spec.colour, roughness=0.5), wedge((a, b, gable), (0, 0, shoulder + gable)))
    parts.show(Look((0.85, 0.10, 0.12), roughness=0.4), cylinder(0.009, 1.5 * cap, (0, 0, c - 1.5 * cap), sides=12))


def _can(parts: Parts, spec: ObjectSpec) -> None:
    r, _, c = spec.half_m
    rim = 0.004
    parts.show(_label(spec), turned(((r, rim - c), (r, c - rim))))
    inner = r - 0.003
    steel = Look(spec.colour, roughness=0.35)
    parts.show(steel, turned(((0, -c), (r - 0.001, -c), (r, rim - c))))
    parts.show(steel, turned(((r, c - rim), (r - 0.001, c), (inner, c), (inner, c - rim), (0, c - rim))))


def _bottle(parts: Parts, spec: ObjectSpec) -> None:
    """Straight to two thirds of its height, then a neck; red foil around the mouth."""
    r, _, c = spec.half_m
    shoulder, neck = 0.015, 0.032
    foil = c - 0.014
    glass = turned(((0, -c), (r, -c), (r, -0.035)))
    upper = turned(((r, 0.003), (r, shoulder), (0.7 * r, shoulder + 0.010), (0.009, neck), (0.009, foil)))
    parts.show(Look(spec.colour, roughness=0.2), glass, upper)
    parts.show(_label(spec), turned(((r, -0.035), (r, 0.003))))
    parts.show(Look((0.55, 0.08, 0.16), roughness=0.4), turned(((0.010, foil), (0.010, c), (0, c)), sides=12))
