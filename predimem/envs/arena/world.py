"""What predicates and scripted skills may know of the simulation: the true state of N parallel worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from predimem.envs.arena.objects import OBJECTS

if TYPE_CHECKING:
    from torch import Tensor

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class World:
    """One control step of N worlds. World frame, metres, quaternions w x y z; first dimension N.

    position_m [N, 3], rotation [N, 4]: of objects (`objects.OBJECTS`), of fixtures, of the drawers
    ("top_drawer", ...), of the microwave's "door", and of the "table".
    speed_m_s [N]: of objects. joint [N]: how far each of `fixtures.JOINTS` is open, m or rad.
    rest_bottom_m [N]: the height of each object's lowest point after the reset.
    tcp_m [N, 3], finger_gap_m [N]: the gripper.
    pours [N]: how often the bottle was poured.
    """

    position_m: Mapping[str, Tensor]
    rotation: Mapping[str, Tensor]
    speed_m_s: Mapping[str, Tensor]
    joint: Mapping[str, Tensor]
    rest_bottom_m: Mapping[str, Tensor]
    tcp_m: Tensor
    finger_gap_m: Tensor
    pours: Tensor

    def up(self, name: str) -> Tensor:
        """[N, 3]: the z axis of a thing, in the world frame."""
        w, x, y, z = self.rotation[name].unbind(-1)
        import torch

        return torch.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], dim=-1)

    def upright(self, name: str) -> Tensor:
        """[N]: the cosine of the angle between a thing's z axis and the vertical."""
        _, x, y, _ = self.rotation[name].unbind(-1)
        return 1 - 2 * (x * x + y * y)

    def bottom_m(self, name: str) -> Tensor:
        """[N]: the height of an object's lowest point, however it lies."""
        spec = OBJECTS[name]
        w, x, y, z = self.rotation[name].unbind(-1)
        a, b, c = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)  # its axes' heights
        if spec.shape == "cylinder":
            reach = spec.half_m[0] * (1 - c * c).clamp(min=0).sqrt() + spec.half_m[2] * c.abs()
        else:
            reach = spec.half_m[0] * a.abs() + spec.half_m[1] * b.abs() + spec.half_m[2] * c.abs()
        return self.position_m[name][:, 2] - reach

    def mouth_m(self, name: str) -> Tensor:
        """[N, 3]: the middle of an object's top, where it pours from."""
        return self.position_m[name] + OBJECTS[name].half_height_m * self.up(name)


class OnDemand(dict[str, V]):
    """A mapping whose values are read when they are first asked for: most are not, in most steps."""

    def __init__(self, read: Callable[[str], V]):
        super().__init__()
        self._read = read

    def __missing__(self, key: str) -> V:
        value = self[key] = self._read(key)
        return value
