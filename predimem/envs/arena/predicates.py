"""When is a subtask done? Every condition of the benchmark, stated once, in SI units.

A predicate maps a `World` of N worlds to bool [N]. `lasting()` is the part of it that a later subtask
must not undo; None where nothing has to last (a drawer that was opened may be closed again).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from predimem.envs.arena.fixtures import DOOR, PLACES, POUR_RADIUS_M, POUR_TOP_M
from predimem.envs.arena.world import World

if TYPE_CHECKING:
    from torch import Tensor

LIFTED_M = 0.05  # a held object's lowest point is this far above where it rested
GRASPED_M = 0.06  # and its centre this close to the TCP
RELEASED_M = 0.09  # a placed object's centre is this far from the TCP
RESTING_M_S = 0.05
DRAWER_OPEN_M, DRAWER_CLOSED_M = 0.16, 0.015  # open: the gripper has room behind the front
DOOR_OPEN_RAD, DOOR_CLOSED_RAD = 1.5, 0.06
UPRIGHT_COS = math.cos(math.radians(30.0))
POUR_COS = math.cos(math.radians(75.0))  # the bottle's axis is tilted beyond 75 degrees
POUR_STEPS = 10  # for half a second at 20 Hz
POUR_HEIGHT_M = 0.35  # the mouth is at most this high above the target


class Predicate(Protocol):
    def __call__(self, world: World) -> Tensor: ...

    def lasting(self) -> Predicate | None: ...


@dataclass(frozen=True)
class Held:
    """In the gripper, and lifted off what it rested on."""

    object: str

    def __call__(self, world: World) -> Tensor:
        near = (world.position_m[self.object] - world.tcp_m).norm(dim=-1) <= GRASPED_M
        if not bool(near.any()):  # in most steps the rest need not be worked out
            return near
        return near & (world.bottom_m(self.object) - world.rest_bottom_m[self.object] >= LIFTED_M)

    def lasting(self) -> None:
        return None


@dataclass(frozen=True)
class Inside:
    """The object's centre is over the floor of a place, and its lowest point close above that floor."""

    object: str
    place: str

    def __call__(self, world: World) -> Tensor:
        place = PLACES[self.place]
        x, y = planar_offset_m(world, self.object, place.frame).unbind(-1)
        x, y = x - place.centre_m[0], y - place.centre_m[1]
        if place.round:
            over = x * x + y * y <= place.half_m[0] ** 2
        else:
            over = (x.abs() <= place.half_m[0]) & (y.abs() <= place.half_m[1])
        if not bool(over.any()):
            return over
        floor = world.position_m[place.frame][:, 2] + place.centre_m[2]
        above = world.bottom_m(self.object) - floor
        return over & (above >= -0.01) & (above <= place.clearance_m)

    def lasting(self) -> Inside:
        return self


@dataclass(frozen=True)
class Placed:
    """Inside a place, at rest, and let go of. upright: it also has to stand."""

    object: str
    place: str
    upright: bool = False

    def __call__(self, world: World) -> Tensor:
        done = (world.position_m[self.object] - world.tcp_m).norm(dim=-1) >= RELEASED_M
        if not bool(done.any()):
            return done
        done = done & Inside(self.object, self.place)(world) & (world.speed_m_s[self.object] <= RESTING_M_S)
        return done & (world.upright(self.object) >= UPRIGHT_COS) if self.upright else done

    def lasting(self) -> Inside:
        return Inside(self.object, self.place)


@dataclass(frozen=True)
class Opened:
    joint: str

    def __call__(self, world: World) -> Tensor:
        return world.joint[self.joint] >= (DOOR_OPEN_RAD if self.joint == DOOR else DRAWER_OPEN_M)

    def lasting(self) -> None:
        return None


@dataclass(frozen=True)
class Closed:
    joint: str

    def __call__(self, world: World) -> Tensor:
        return world.joint[self.joint] <= (DOOR_CLOSED_RAD if self.joint == DOOR else DRAWER_CLOSED_M)

    def lasting(self) -> Closed:
        return self


@dataclass(frozen=True)
class Pouring:
    """The bottle is tilted beyond the pouring angle with its mouth over the target, at this step."""

    object: str
    target: str

    def __call__(self, world: World) -> Tensor:
        tilted = world.upright(self.object) <= POUR_COS
        if not bool(tilted.any()):
            return tilted
        mouth, target = world.mouth_m(self.object), world.position_m[self.target]
        near = (mouth[:, :2] - target[:, :2]).norm(dim=-1) <= POUR_RADIUS_M[self.target]
        height = mouth[:, 2] - target[:, 2] - POUR_TOP_M[self.target]
        return tilted & near & (height >= 0.0) & (height <= POUR_HEIGHT_M)

    def lasting(self) -> None:
        return None


@dataclass(frozen=True)
class Poured:
    """Poured `times` times, and upright again. `Progress` counts: once per tilt-and-return."""

    object: str
    target: str
    times: int

    def __call__(self, world: World) -> Tensor:
        return (world.pours >= self.times) & (world.upright(self.object) >= UPRIGHT_COS)

    def lasting(self) -> None:
        return None


def planar_offset_m(world: World, name: str, frame: str) -> Tensor:
    """[N, 2]: a thing's position in a frame that stands upright (it is turned about z only)."""
    import torch

    offset = world.position_m[name] - world.position_m[frame]
    w, z = world.rotation[frame][:, 0], world.rotation[frame][:, 3]
    cos, sin = w * w - z * z, 2 * w * z
    x, y = offset[:, 0], offset[:, 1]
    return torch.stack([cos * x + sin * y, cos * y - sin * x], dim=-1)
