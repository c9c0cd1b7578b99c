"""Plays the pauses and visits of an episode: drawers are driven, objects carried along a path, both smoothly.

Nobody is seen. Whoever visits keeps clear of the gripper: an act waits while it is near. Visits follow one another, and
one that could not begin while its stage was due does not take place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from mani_skill.utils.structs import Pose

from predimem.envs.arena.fixtures import CABINET, DRAWERS, FIXTURES, PLACES
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.scene.path import LOW_M, SHELF_M, free_slot_m, free_table_point_m, passes, path_m
from predimem.envs.arena.scene.reading import raw_pose, tcp_pose
from predimem.envs.arena.visits import Carry, Slide, Visit

if TYPE_CHECKING:
    from predimem.envs.arena.scene.simulation import ArenaSimulation

SLIDE_STEPS = 30  # 1.5 s
HOLD_STEPS = 20  # after every act: what was moved stays in view for a second
STIFFNESS, DAMPING, FORCE_N = 2000.0, 200.0, 200.0
DRAWER_ROOM_M = 0.15  # from a handle to the gripper
ROOM_M, PASSING_ROOM_M = 0.15, 0.10  # seen from above, from what is carried: where a way is chosen, and on the way
SHELVES = tuple(name for name, spec in FIXTURES.items() if spec.kind == "shelf")
RELEASE_M = 0.002  # above the floor
STREAM = 31  # of random numbers


class Visitor:
    """Of one world. `before_step` is to be called before each control step."""

    def __init__(self, env: ArenaSimulation):
        self._env = env
        self.reset()

    def reset(self) -> None:
        """At the beginning of an episode."""
        self._stage, self._since = 0, -1
        self._done, self._act, self._steps = 0, 0, 0  # visits that are over, the act that is due and how far it is
        self._path: np.ndarray | None = None
        self._goal_m = np.zeros(3)
        self._from_m = np.zeros(3)

    @property
    def waiting(self) -> bool:
        """Whether the robot has to wait: a pause lasts until its time is over and its visits are."""
        stage = int(self._env.progress.stage[0])
        pauses = [pause for pause in self._variant.pauses if pause.stage == stage]
        if not pauses:
            return False
        since = self._since if stage == self._stage else -1
        return since + 1 < pauses[0].steps or any(visit.stage == stage for visit in self._left)

    @property
    def busy(self) -> bool:
        """Whether somebody is moving something."""
        return self._act > 0 or self._steps > 0

    @property
    def carrying(self) -> Carry | None:
        """What somebody is carrying, from when it is lifted until it has been put down."""
        on_its_way = self._path is not None and 0 < self._steps < len(self._path)
        act = self._left[0].acts[self._act] if on_its_way else None
        return act if isinstance(act, Carry) else None

    def before_step(self) -> None:
        stage = int(self._env.progress.stage[0])
        self._stage, self._since = stage, self._since + 1 if stage == self._stage else 0
        if not self.busy:  # what is too late does not take place: the robot may need the things now
            self._done += sum(visit.stage < stage for visit in self._left)
        if self._left:
            visit = self._left[0]
            due = visit.stage == stage and visit.delay_steps <= self._since
            if self.busy or due:
                self._go_on(visit)

    def state(self) -> torch.Tensor:
        """[1, 11]: all that has to be kept to take an episode up again."""
        counts = (self._stage, self._since, self._done, self._act, self._steps)
        return torch.tensor([[*counts, *self._from_m, *self._goal_m]], device=self._env.device)

    def restore(self, state: torch.Tensor) -> None:
        """state: as `state` gave it."""
        values = state[0].cpu().numpy().astype(float)
        self._stage, self._since, self._done, self._act, self._steps = (round(value) for value in values[:5])
        self._from_m, self._goal_m, self._path = values[5:8], values[8:], None
        acts = self._left[0].acts if self._left else ()
        if self._steps and isinstance(act := acts[self._act], Carry):
            self._path = self._way(act, self._from_m, self._goal_m)

    @property
    def _variant(self) -> Any:
        return self._env.task.variants[int(self._env.progress.variant[0])]

    @property
    def _left(self) -> tuple[Visit, ...]:
        return tuple(sorted(self._variant.visits, key=lambda v: (v.stage, v.delay_steps)))[self._done :]

    def _go_on(self, visit: Visit) -> None:
        act = visit.acts[self._act]
        over = self._slide(act) if isinstance(act, Slide) else self._carry(act)
        if over:
            self._act, self._steps, self._path = self._act + 1, 0, None
        if self._act == len(visit.acts):
            self._done, self._act = self._done + 1, 0

    # ---- a drawer

    def _slide(self, act: Slide) -> bool:
        """One control step of it; whether it is over."""
        cabinet = self._env.fixtures["cabinet"]
        joint = cabinet.active_joints_map[act.drawer]
        opening_m = float(joint.qpos[0])
        if self._steps == 0:
            self._from_m = np.array([opening_m, 0.0, 0.0])
        handle = raw_pose(cabinet.links_map[act.drawer])[0, :3].numpy() + CABINET.handle_in_drawer_m
        if float(np.linalg.norm(self._tcp_m - handle)) < DRAWER_ROOM_M:
            self._release(joint)
            return False
        self._steps += 1
        share = min(1.0, self._steps / SLIDE_STEPS)
        joint.set_drive_properties(STIFFNESS, DAMPING, FORCE_N)
        joint.set_drive_target(self._from_m[0] + share * (act.opening_m - self._from_m[0]))
        if self._steps < SLIDE_STEPS + HOLD_STEPS:
            return False
        self._release(joint)
        return True

    def _release(self, joint: Any) -> None:
        joint.set_drive_properties(0.0, CABINET.damping)

    # ---- an object

    def _carry(self, act: Carry) -> bool:
        """One control step of it; whether it is over."""
        thing, half_m = self._env.objects[act.object], OBJECTS[act.object].half_height_m
        here = raw_pose(thing)[0].numpy()
        if self._steps == 0 and not self._begin_to_carry(act, here[:3].astype(float)):
            return False
        assert self._path is not None
        if 0 < self._steps < len(self._path) and not passes(here[None, :3], half_m, self._tcp_m, PASSING_ROOM_M):
            self._move(thing, here, here[:3])
            return False
        self._steps += 1
        if self._steps < len(self._path):
            self._move(thing, np.array([*self._path[self._steps - 1], *here[3:]]), self._path[self._steps])
        elif self._steps == len(self._path):
            self._put_down(thing, np.array([*self._goal_m, *here[3:]]))
        return self._steps >= len(self._path) + HOLD_STEPS

    def _begin_to_carry(self, act: Carry, here: np.ndarray) -> bool:
        """False while there is no way past the gripper."""
        half_m = OBJECTS[act.object].half_height_m

        def clear(floor: np.ndarray) -> bool:
            way = self._way(act, here, floor + np.array([0.0, 0.0, half_m + RELEASE_M]))
            return passes(way, half_m, self._tcp_m, ROOM_M)

        floor = self._floor_m(act, clear)
        if floor is None or not clear(floor):
            return False
        self._from_m, self._goal_m = here, floor + np.array([0.0, 0.0, half_m + RELEASE_M])
        self._path = self._way(act, here, self._goal_m)
        return True

    def _way(self, act: Carry, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """[T, 3]"""
        on_shelf = PLACES[self._variant.start.get(act.object, "table")].frame in SHELVES
        return path_m(start, goal, SHELF_M if on_shelf else LOW_M, PLACES[act.place].frame in DRAWERS)

    def _floor_m(self, act: Carry, clear: Callable[[np.ndarray], bool]) -> np.ndarray | None:
        """[3]: the point of the floor where the object comes to stand."""
        env: Any = self._env
        at = {name: raw_pose(thing)[0, :3].numpy() for name, thing in env.objects.items()}
        if act.place == "table":
            steps = int(env.elapsed_steps[0])
            rng = np.random.default_rng([env.episode_seeds()[0], env.task.task_id, STREAM, self._done, steps])
            fixtures = env.settings[0].layout.fixtures
            return free_table_point_m([point[:2] for point in at.values()], fixtures, clear, rng)
        frame = PLACES[act.place].frame
        holder = env.fixtures["cabinet"].links_map[frame] if frame in DRAWERS else env.fixtures[frame]
        others = [point for name, point in at.items() if name != act.object]
        return free_slot_m(act.place, raw_pose(holder)[0, :3].numpy(), others)

    def _move(self, thing: Any, pose: np.ndarray, towards_m: np.ndarray) -> None:
        """From a pose [7] to a position [3] within this control step, without turning and without weight."""
        body = thing._bodies[0]
        body.disable_gravity = True
        thing.set_pose(Pose.create(torch.as_tensor(pose, dtype=torch.float32)[None]))
        step_m = torch.as_tensor(towards_m - pose[:3], dtype=torch.float32)
        thing.set_linear_velocity(step_m[None] * self._env.control_freq)
        thing.set_angular_velocity(torch.zeros(1, 3))

    def _put_down(self, thing: Any, pose: np.ndarray) -> None:
        self._move(thing, pose, pose[:3])
        thing._bodies[0].disable_gravity = False

    # ---- the gripper

    @property
    def _tcp_m(self) -> np.ndarray:
        return tcp_pose(self._env)[0, :3].numpy()
