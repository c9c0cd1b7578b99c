"""Failed attempts at the stage that is due: a grasp of nothing, a thing that was dropped, a drawer left half open.

They are seen in the true state. Only what the agent said tells whether it meant the stage that is due.
"""

from __future__ import annotations

from typing import Any

from predimem.envs.arena.achievements import LOOK_STEPS
from predimem.envs.arena.fixtures import DOOR

DROPPED, MISSED, STOPPED = "dropped", "missed grasp", "stopped short"

AWAY_M = 0.09  # from the TCP to the centre of a thing that is not in the gripper
LIFTED_M = 0.05
GRACE_LOOKS = 5  # a stage that is passed within 1 s of letting go was no failure
GAP_SHUT_M, GAP_OPEN_M = 0.006, 0.03  # between the fingers: around nothing, and ready to grasp
MOVED = {DOOR: (0.15, 0.01)}  # rad: that a motion has begun, and that it stands still
MOVED_M = (0.02, 0.002)
STILL_LOOKS = 10  # 2 s


class FailedAttempts:
    """Watches one episode."""

    def __init__(self, simulation: Any):
        """simulation: an `ArenaEnv` of one world that has been reset."""
        self._simulation = simulation
        self._stage = -1
        self._carried, self._gone_looks = "", 0
        self._ready = False
        self._joint_start, self._joint_last, self._still_looks = 0.0, 0.0, 0

    def look(self, step: int) -> tuple[str, ...]:
        """To be called after each control step; what failed since the last look, by `DROPPED`, `MISSED`, `STOPPED`.

        A drop is told one second after it.
        """
        stage, subtasks = int(self._simulation.progress.stage[0]), self._simulation.variant().subtasks
        if step % LOOK_STEPS or stage >= len(subtasks):
            return ()
        due, world = subtasks[stage], self._simulation.world()
        if stage != self._stage:
            self._begin(stage, due, world)
        if not due.object:
            grasped = due.skill == "Open" and self._misses(world)
            failed = {MISSED: grasped, STOPPED: self._stops(due, world)}
        else:
            dropped = self._drops(due.object, world)
            failed = {DROPPED: dropped, MISSED: not self._carried and self._misses(world)}
        return tuple(kind for kind, happened in failed.items() if happened)

    def _begin(self, stage: int, due: Any, world: Any) -> None:
        self._stage, self._ready = stage, False
        if due.object != self._carried:
            self._carried = ""
        if not due.object:
            self._joint_start = self._joint_last = float(world.joint[due.target][0])
            self._still_looks = 0

    def _drops(self, name: str, world: Any) -> bool:
        away = float((world.position_m[name] - world.tcp_m).norm()) >= AWAY_M
        if not away:
            lifted = float((world.bottom_m(name) - world.rest_bottom_m[name])[0]) >= LIFTED_M
            self._carried, self._gone_looks = name if lifted else self._carried, 0
            return False
        self._gone_looks += bool(self._carried)
        if self._gone_looks <= GRACE_LOOKS:
            return False
        self._carried, self._gone_looks = "", 0
        return True

    def _misses(self, world: Any) -> bool:
        """The fingers, which were open, meet."""
        gap = float(world.finger_gap_m[0])
        missed = self._ready and gap <= GAP_SHUT_M
        self._ready = (self._ready or gap >= GAP_OPEN_M) and not missed
        return missed

    def _stops(self, due: Any, world: Any) -> bool:
        """The joint was moved towards its goal, and stands still before it: else the next stage would be due."""
        begun, still = MOVED.get(due.target, MOVED_M)
        joint, opens = float(world.joint[due.target][0]), due.skill == "Open"
        furthest = min if opens else max  # from the goal: an opened drawer may run on after the next stage became due
        self._joint_start = furthest(self._joint_start, joint)
        moves, self._joint_last = abs(joint - self._joint_last) > still, joint
        self._still_looks = 0 if moves else self._still_looks + 1
        if self._still_looks < STILL_LOOKS or abs(joint - self._joint_start) < begun:
            return False
        self._joint_start, self._still_looks = joint, 0
        return True
