"""True states built by hand: what predicates and progress are tested on, without physics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from predimem.envs.arena.fixtures import DRAWERS, JOINTS, PLACES, POUR_TOP_M
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.task import Task
from predimem.envs.arena.world import World

Numbers = Sequence[float] | Sequence[Sequence[float]] | float
FAR_M = (0.0, 0.0, 1.0)  # where the gripper is when it holds nothing


def turned(degrees: float, axis: tuple[float, float, float] = (0.0, 0.0, 1.0)) -> list[float]:
    """A quaternion, w x y z."""
    norm = math.sqrt(sum(a * a for a in axis))
    half = math.radians(degrees) / 2
    return [math.cos(half), *(math.sin(half) * a / norm for a in axis)]


def made(
    n: int,
    position: Mapping[str, Numbers],
    rotation: Mapping[str, Numbers] | None = None,
    speed: Mapping[str, Numbers] | None = None,
    joint: Mapping[str, Numbers] | None = None,
    rest_bottom: Mapping[str, Numbers] | None = None,
    tcp: Numbers = FAR_M,
    pours: Numbers = 0,
) -> World:
    """A `World` of n worlds. Each value is given once for all worlds or once for each of them."""

    def each(value: Numbers, *shape: int) -> Tensor:
        return torch.broadcast_to(torch.as_tensor(value, dtype=torch.float32), (n, *shape)).clone()

    identity = {name: [1.0, 0.0, 0.0, 0.0] for name in position}
    objects = [name for name in position if name in OBJECTS]
    still = dict.fromkeys(objects, 0.0)
    return World(
        position_m={name: each(value, 3) for name, value in position.items()},
        rotation={name: each(value, 4) for name, value in {**identity, **(rotation or {})}.items()},
        speed_m_s={name: each(value) for name, value in {**still, **(speed or {})}.items()},
        joint={name: each(value) for name, value in {**dict.fromkeys(JOINTS, 0.0), **(joint or {})}.items()},
        rest_bottom_m={name: each(value) for name, value in {**still, **(rest_bottom or {})}.items()},
        tcp_m=each(tcp, 3),
        finger_gap_m=each(0.08),
        pours=each(pours).long(),
    )


class Scene:
    """A task in N worlds whose state is set by hand. At first all objects stand on the table, in a row."""

    def __init__(self, task: Task, n: int):
        names = [*task.objects, *task.fixtures, *DRAWERS, "microwave", "table"]
        position = {name: [0.0, 0.0, 0.0] for name in names}
        position |= {name: [0.5 * (i + 1), 0.0, 0.0] for i, name in enumerate((*task.fixtures, *DRAWERS, "microwave"))}
        position |= {name: [-0.5 + 0.2 * i, -0.5, OBJECTS[name].half_height_m] for i, name in enumerate(task.objects)}
        self._state = made(n, position)
        self._start = {name: p[0].clone() for name, p in self._state.position_m.items()}

    def world(self, pours: Tensor) -> World:
        return World(**{**self._state.__dict__, "pours": pours})

    def joint(self, i: int, name: str, value: float) -> None:
        self._state.joint[name][i] = value

    def hold(self, i: int, name: str) -> None:
        self._set(i, name, self._start[name] + torch.tensor([0.0, 0.0, 0.1]), turned(0.0))
        self.grip(i, name)

    def put(self, i: int, name: str, place: str) -> None:
        """Let go of it in a place, standing."""
        spec = PLACES[place]
        point = self._state.position_m[spec.frame][i] + torch.tensor(spec.centre_m)
        self._set(i, name, point + torch.tensor([0.0, 0.0, OBJECTS[name].half_height_m]), turned(0.0))
        self._state.speed_m_s[name][i] = 0.0
        self._state.tcp_m[i] = torch.tensor(FAR_M)
        self._state.finger_gap_m[i] = 0.08

    def lay(self, i: int, name: str, speed_m_s: float = 0.0) -> None:
        """Where it was at first."""
        self._set(i, name, self._start[name], turned(0.0))
        self._state.speed_m_s[name][i] = speed_m_s

    def grip(self, i: int, name: str) -> None:
        """Close the fingers on it, where it is."""
        self._state.tcp_m[i] = self._state.position_m[name][i]
        self._state.finger_gap_m[i] = 0.05

    def drop(self, i: int, name: str, height_m: float) -> None:
        self._state.position_m[name][i, 2] = height_m

    def tilt(self, i: int, name: str, target: str, degrees: float) -> None:
        """Hold it with its mouth 5 cm above a target."""
        angle = math.radians(degrees)
        up = torch.tensor([math.sin(angle), 0.0, math.cos(angle)])
        mouth = self._state.position_m[target][i] + torch.tensor([0.0, 0.0, POUR_TOP_M[target] + 0.05])
        self._set(i, name, mouth - OBJECTS[name].half_height_m * up, turned(degrees, (0.0, 1.0, 0.0)))
        self._state.tcp_m[i] = self._state.position_m[name][i]

    def _set(self, i: int, name: str, position: Tensor, rotation: list[float]) -> None:
        self._state.position_m[name][i] = position
        self._state.rotation[name][i] = torch.tensor(rotation)
