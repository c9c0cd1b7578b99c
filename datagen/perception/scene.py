"""The world as the executor knows it: what it has seen, and what follows from what its gripper did since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datagen.experts.scripted.pick import EMPTY_GAP_M, GRASPED_M, SLOW_M
from datagen.experts.scripted.scene import Extent, TcpPose
from datagen.grasp.types import GraspDetector
from datagen.perception.boxes import upright_box
from datagen.perception.cloud import point_cloud
from datagen.perception.furniture import NotSeenError, fixture_position_m, opening, points_of
from datagen.perception.views import View
from predimem.envs.arena.fixtures import CABINET, DOOR, DRAWERS, JOINTS, KITCHEN, MICROWAVE, PLACES
from predimem.envs.arena.robot.arm import CLOSED, Arm
from predimem.envs.arena.robot.rotations import FLIP, angle_between_rad, rotation_matrix

MIN_POINTS = 8  # of an object, to say where it is
GRIPPED_STEPS = 6  # after so many with closed fingers that are not shut, the object between them is held
PARTLY = 0.5  # fewer pixels than this share of the most that an object ever had show only a part of it
CONFIRMED_M = 0.01
FLOOR_ROOM_M = 0.012  # an object's lowest point may be seen this far under the floor that it stands on
OTHER_GRASP_M, OTHER_GRASP_RAD = 0.012, 0.3  # a grasp that is nearer than both to one that failed is the same


@dataclass(frozen=True, eq=False)
class Belief:
    """An object: its centre and rotation in the world, its size, and the most pixels that agentview ever saw of it."""

    position_m: np.ndarray
    rotation: np.ndarray
    half_m: np.ndarray
    pixels: int


class PerceivedScene:
    """A `datagen.experts.scripted.scene.Scene` made of images and of what the arm feels. No true pose goes into it.

    look: takes images now, agentview first. `look()` updates what is in sight, and `follow(arm)`, after
    every control step, what is in the gripper.
    held: the object in the gripper, "" if none.
    seen, unseen_joints: the objects that the last images show, and the drawers and door that they do not.
    marked: the places in which a mat was seen.
    contents: of every drawer and door that was looked into, what was in it.
    """

    def __init__(
        self, objects: Sequence[str], fixtures: Sequence[str], look: Callable[[], list[View]], detector: GraspDetector
    ):
        self._names, self._fixtures = tuple(objects), tuple(fixtures)
        self._look, self._detector = look, detector
        self._views: list[View] = []
        self._beliefs: dict[str, Belief] = {}
        self._origins: dict[str, np.ndarray] = {"table": np.zeros(3)}
        self._openings: dict[str, float] = dict.fromkeys(JOINTS, 0.0)
        self._in_gripper: TcpPose = (np.zeros(3), np.eye(3))  # of the held object, in the TCP's frame
        self._gripped_steps = 0
        self._tried: list[TcpPose] = []
        self.reaching_for = ""  # the object that closing fingers are expected to find
        self.held = ""
        self.seen: frozenset[str] = frozenset()
        self.unseen_joints: set[str] = set()
        self.marked: set[str] = set()
        self.contents: dict[str, frozenset[str]] = {}

    # ---- looking

    def look(self) -> None:
        """Take images and update what they show. Raises NotSeenError where a piece of furniture was never seen."""
        self._views = self._look()
        for name in (*KITCHEN, *self._fixtures):
            if name not in self._origins:  # nothing moves it
                self._origins[name] = fixture_position_m(self._views[:1], name)
        self.unseen_joints.clear()
        for joint in JOINTS:
            try:
                furniture = "microwave" if joint == DOOR else "cabinet"
                self._openings[joint] = opening(self._views, joint, self._origins[furniture])
            except NotSeenError:
                self.unseen_joints.add(joint)
        points = {name: points_of(self._views, name) for name in self._names}
        self.seen = frozenset(name for name in self._names if len(points[name]) >= MIN_POINTS)
        for name in self.seen - {self.held}:
            self._beliefs[name] = self._belief(name, points[name])
        self._note_contents()
        self._note_mats()

    def look_closer(self) -> None:
        """With the hand camera alone: nothing but the robot has moved since agentview's last image."""
        self._views = [self._views[0], self._look()[1]]

    def _belief(self, name: str, points: np.ndarray) -> Belief:
        box = upright_box(points, self._floor_m(points))
        old = self._beliefs.get(name)
        pixels = int(self._views[0].mask(name).sum())  # agentview's distance is always the same
        best = max(pixels, old.pixels if old else 0)
        if old and pixels < PARTLY * best:  # too little to measure it, enough to say that it is where it was
            off_m = np.linalg.norm(np.median(points, axis=0) - old.position_m)
            if off_m < np.linalg.norm(old.half_m) + CONFIRMED_M:
                return old
        return Belief(box.centre_m, box.rotation, box.half_m, best)

    def _floor_m(self, points: np.ndarray) -> float | None:
        """The height of the highest floor that may be under points."""
        middle, lowest = np.append(np.median(points[:, :2], axis=0), 0.0), float(points[:, 2].min())
        floors = [self.floor_m(place) for place in self.places if place != "table" and self.over(middle, place)]
        fit = [floor for floor in [0.0, *floors] if lowest >= floor - FLOOR_ROOM_M]
        return max(fit, default=None)

    def _note_contents(self) -> None:
        for joint in JOINTS:
            if self.is_open(joint):
                self.contents[joint] = frozenset(name for name in self.seen - {self.held} if self.inside(name, joint))

    def _note_mats(self) -> None:
        names = {name for view in self._views for name in view.names.values() if name.startswith("mat_")}
        for points in (points_of(self._views, name) for name in names):
            if len(points) >= MIN_POINTS:
                middle = np.median(points, axis=0)
                for place in self.places:
                    spec = PLACES[place]
                    seen = spec.frame not in JOINTS or self.is_open(spec.frame)
                    on_floor = abs(middle[2] - self.floor_m(place)) < FLOOR_ROOM_M
                    if place not in ("table", *JOINTS) and seen and on_floor and self.over(middle, place):
                        self.marked.add(place)

    # ---- the gripper

    def follow(self, arm: Arm) -> None:
        """Take note of what closed fingers hold, and that it moves with them."""
        gripped = arm.gripper == CLOSED and arm.finger_gap_m > EMPTY_GAP_M
        self._gripped_steps = self._gripped_steps + 1 if gripped else 0
        if self.held and not gripped:
            self.held = ""
        elif self.held:
            position, rotation = self._in_gripper
            tcp_rotation = arm.true_rotation
            self._beliefs[self.held] = replace(
                self._beliefs[self.held],
                position_m=arm.true_position + tcp_rotation @ position,
                rotation=tcp_rotation @ rotation,
            )
        elif self._gripped_steps >= GRIPPED_STEPS and self.reaching_for in self._beliefs:
            self._grip(arm, self.reaching_for)

    def _grip(self, arm: Arm, object: str) -> None:
        """Between the fingers the object is in their middle, and one of its sides is parallel to them."""
        belief, tcp_rotation = self._beliefs[object], arm.true_rotation
        offset = tcp_rotation.T @ (belief.position_m - arm.true_position)
        if np.linalg.norm(offset) > GRASPED_M:
            return
        offset[1] = 0.0
        turned = tcp_rotation.T @ belief.rotation
        angle = np.arctan2(turned[1, 0], turned[0, 0])  # of its first side, about the approach
        askew = angle - np.round(angle / (np.pi / 2)) * np.pi / 2
        self._in_gripper = (offset, rotation_matrix(np.array([0.0, 0.0, -askew])) @ turned)
        self.held = object

    def forget_grasps(self) -> None:
        """All grasps may be tried again."""
        self._tried.clear()

    # ---- what skills ask for

    @property
    def objects(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if name in self._beliefs)

    @property
    def fixtures(self) -> tuple[str, ...]:
        return self._fixtures

    def position_m(self, name: str) -> np.ndarray:
        if name in self._names:
            return self._known(name).position_m
        if name in DRAWERS:
            floor = CABINET.drawer_floor_m(name)
            return self._origins["cabinet"] + [-self._openings[name], 0.0, floor]
        if name == "door":
            return self._origins["microwave"] + MICROWAVE.hinge_m
        return self._origins[name]

    def rotation(self, name: str) -> np.ndarray:
        return self._known(name).rotation if name in self._names else np.eye(3)

    def extent(self, object: str) -> Extent:
        x, y, z = self._known(object).half_m
        return Extent((float(x), float(y), float(z)))

    def opening(self, joint: str) -> float:
        return self._openings[joint]

    def grasp(self, arm: Arm, object: str) -> TcpPose | None:
        """The detector's best grasp that the arm reaches and that has not failed before."""
        if object not in self.seen:
            return None
        cloud, rotation, position = point_cloud(self._views, object)
        for grasp in self._detector.detect(cloud):
            approach, closing, _ = (rotation @ grasp.rotation).T
            tcp_rotation = np.stack([np.cross(closing, approach), closing, approach], axis=1)
            pose = self._reached(arm, rotation @ grasp.translation_m + position, tcp_rotation)
            if pose is not None and not any(_same(pose, tried) for tried in self._tried):
                self._tried.append(pose)
                return pose
        return None

    def _reached(self, arm: Arm, position: np.ndarray, tcp_rotation: np.ndarray) -> TcpPose | None:
        """The pose, with the fingers the way round that turns the wrist less; None out of reach."""
        best: tuple[float, TcpPose] | None = None
        for turned in (tcp_rotation, tcp_rotation @ FLIP):
            q, reached = arm.kinematics.solve(position, turned)
            _, before = arm.kinematics.solve(position - SLOW_M * turned[:, 2], turned)
            wrist = abs(float(q[6] - arm.kinematics.rest_rad[6]))
            if reached and before and (best is None or wrist < best[0]):
                best = (wrist, (position, turned))
        return best[1] if best else None

    def _known(self, object: str) -> Belief:
        if object not in self._beliefs:
            raise NotSeenError(f"{object}: not seen so far")
        return self._beliefs[object]

    # ---- what the executor asks for

    @property
    def places(self) -> tuple[str, ...]:
        """The places of this scene."""
        frames = {"table", *self._fixtures, *JOINTS}
        return tuple(name for name, place in PLACES.items() if place.frame in frames)

    def in_hand_view(self, object: str) -> bool:
        """Whether the hand camera saw an object in the last images."""
        return bool(self._views[1].mask(object).sum() >= MIN_POINTS)

    def is_furnished(self, object: str) -> bool:
        """Whether an object stands in or on a piece of furniture."""
        return any(self.inside(object, place) for place in self.places if place != "table")

    def is_open(self, joint: str) -> bool:
        """Far enough to look in."""
        return self._openings[joint] > (0.5 if joint == DOOR else CABINET.travel_m / 2)

    def floor_m(self, place: str) -> float:
        """The height of a place's floor."""
        spec = PLACES[place]
        return float(self.position_m(spec.frame)[2] + spec.centre_m[2])

    def over(self, point: np.ndarray, place: str) -> bool:
        """Whether a point is over the floor of a place, or under it."""
        spec = PLACES[place]
        x, y = (point - self.position_m(spec.frame) - spec.centre_m)[:2]
        if spec.round:
            return bool(np.hypot(x, y) <= spec.half_m[0])
        return bool(abs(x) <= spec.half_m[0] and abs(y) <= spec.half_m[1])

    def inside(self, object: str, place: str) -> bool:
        """Whether an object is where it would be if it stood or lay in a place."""
        belief = self._known(object)
        lowest = belief.position_m[2] - float(np.abs(belief.rotation[2]) @ belief.half_m)
        above = lowest - self.floor_m(place)
        room = PLACES[place].clearance_m + FLOOR_ROOM_M
        return self.over(belief.position_m, place) and -FLOOR_ROOM_M <= above <= room

    def points_m(self, object: str) -> np.ndarray:
        """[P, 3] in the world: what the last images show of an object."""
        return points_of(self._views, object)


def _same(pose: TcpPose, other: TcpPose) -> bool:
    near = np.linalg.norm(pose[0] - other[0]) < OTHER_GRASP_M
    turn = min(angle_between_rad(pose[1], turned) for turned in (other[1], other[1] @ FLIP))
    return bool(near) and turn < OTHER_GRASP_RAD
