"""The arena as `predimem.core.interfaces.Environment`, around its Gymnasium environment.

The simulation is made elsewhere and passed in: this module knows its interface (`unwrapped.task`,
`variant()`, `progress`, `world()`, ...), not its code.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from predimem.core.types import Observation, StepResult
from predimem.envs.arena.achievements import UndueAchievements
from predimem.envs.arena.attempts import FailedAttempts
from predimem.envs.arena.task import Task
from predimem.envs.arena.unseen.conditions import PLAIN

VERSION = "1.1"  # to be raised whenever a task, a predicate or the scene changes so that figures change
CONTROL_HZ = 20.0
POSITION, ROTATION, OPENING, JOINTS = slice(0, 3), slice(3, 9), 9, slice(10, 17)  # of the state
ARM_JOINTS = 7
GRIPPER_OPEN = 1.0


def benchmark_version() -> str:
    """The suite and the simulator that figures were made with, for result files."""
    parts = ("mani_skill", "sapien")
    return ", ".join([f"arena {VERSION}", *(f"{name} {importlib.metadata.version(name)}" for name in parts)])


def make(
    task: str | Task,
    control_mode: str,
    image_px: int,
    images: bool,
    inverse_kinematics: str,
    condition: str = PLAIN,
) -> ArenaEnvironment:
    """One world of the arena, by a task, its name or its file. inverse_kinematics: see `benchmark.ArenaOptions`.
    condition: what differs from the training, see `unseen.conditions`."""
    from predimem.envs.arena import registration

    driven = control_mode == "pd_ee_delta_pose" and inverse_kinematics == "predimem"
    env = registration.make(
        task,
        condition=condition,
        obs_mode="none",
        control_mode="pd_joint_pos" if driven else control_mode,
        image_px=image_px,
        sim_backend="cpu",
        render_backend="auto" if images else None,
    )
    if driven:
        from predimem.envs.arena.scene.delta_pose_env import DeltaPoseEnv

        env = DeltaPoseEnv(env)
    return ArenaEnvironment(env, camera_every=None)


class ArenaEnvironment:
    """One task of the arena, one episode at a time. The seed alone determines an episode.

    An episode ends with success (all stages passed and none undone), with a failure that cannot be
    mended, or at the task's horizon. Observations hold what a robot senses and nothing else:

    images: `agentview_rgb` and `eye_in_hand_rgb`, uint8; an image is taken every `camera_every` control
    steps and when the episode ends, and repeated in between. None: no images, for agents that do not look.
    state: float32 [17]: TCP position [3] in metres (world frame), its rotation [6] (the first two columns
    of the rotation matrix, world frame), opening of the gripper [1] in metres, joint angles [7] in rad.

    `info` of a step: `stages_passed` (passed and still standing), `stages_total`, `stage_labels` (one a
    line), `stage_states` (one character a stage: + passed, - undone again, x failed, . to come),
    `failure` (why the episode failed; empty while it has not), `pours` and `clipped_actions` so far.
    Stages are looked at with each image and when the episode ends, and repeated in between.
    For those who explain failures: `stage_due` (index of the stage that is due after this step; all stages passed:
    their number; in a pause the stage before it), `stage_facts` (as JSON, see
    `predimem.evaluation.analysis.stages.StageFacts`), `undue` (what was achieved at this step and was not due, one a
    line: see `achievements.UndueAchievements`) and `failed_attempts` (what came to nothing, one a line: see
    `attempts.FailedAttempts`), both empty while somebody else moves something, and `changed` (as JSON, what differs in
    this episode from the training, see `unseen.setting.Setting`).
    """

    def __init__(self, env: Any, camera_every: int | None = 1, horizon: int | None = None):
        """env: as `gymnasium.make` gives it, one world, `obs_mode` "none", with a renderer unless
        `camera_every` is always None; owned from here on. horizon: control steps, None: the task's."""
        if horizon is not None and horizon < 1:
            raise ValueError(f"the horizon has to be 1 control step or more, got {horizon}")
        self.camera_every = camera_every
        self._env = env
        self._horizon = int(env.unwrapped.task.horizon) if horizon is None else horizon
        self._images: Mapping[str, np.ndarray] = {}
        self._states = ""
        self._step = 0

    @property
    def simulation(self) -> Any:
        """The simulation itself, for agents that know the true state."""
        return self._env.unwrapped

    @property
    def instruction(self) -> str:
        return self.simulation.instructions()[0]

    @property
    def action_dim(self) -> int:
        return int(self._env.action_space.shape[-1])

    @property
    def horizon(self) -> int:
        return self._horizon

    @property
    def control_hz(self) -> float:
        return CONTROL_HZ

    def reset(self, seed: int) -> Observation:
        """Raises ValueError for a seed outside [0, 2**32), which NumPy's generators cannot take."""
        if not 0 <= seed < 2**32:
            raise ValueError(f"expected a seed in [0, 2**32), got {seed}")
        self._env.reset(seed=int(seed))
        self._step, self._images = 0, {}
        self._states = "." * self.simulation.task.stages
        self._facts, self._undue = _stage_facts(self.simulation), UndueAchievements(self.simulation)
        self._attempts = FailedAttempts(self.simulation)
        self._changed = json.dumps(self.simulation.settings[0].changed)
        self._labels = "\n".join(subtask.label for subtask in self.simulation.variant().subtasks)
        return self._observe(self._looks())

    def step(self, action: np.ndarray) -> StepResult:
        """Raises ValueError for another shape than [A] and for values that are not finite.

        Values outside the limits are clipped and counted.
        """
        _, _, terminated, truncated, report = self._env.step(np.asarray(action, np.float32))
        self._step += 1
        success, terminated = bool(report["success"][0]), bool(terminated[0])
        truncated = bool(truncated[0]) or self._step >= self._horizon
        done = terminated or truncated
        failure = "" if success or not done else self._failure()
        visited = self.simulation.visited
        if done or self._looks():
            self._states = self._stage_states(failed=bool(failure))
        return StepResult(
            observation=self._observe(self._looks() or (done and self.camera_every is not None)),
            terminated=terminated,
            truncated=truncated,
            success=success,
            info={
                "stages_passed": self._states.count("+"),
                "stages_total": len(self._states),
                "stage_labels": self._labels,
                "stage_states": self._states,
                "stage_due": int(self.simulation.progress.stage[0]) - self.simulation.waiting,
                "stage_facts": self._facts,
                "undue": "\n".join(() if visited else self._undue.look(self._step)),
                "failed_attempts": "\n".join(() if visited else self._attempts.look(self._step)),
                "changed": self._changed,
                "failure": failure,
                "pours": int(report["pours"][0]),
                "clipped_actions": int(report["clipped_actions"][0]),
            },
        )

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        """The arm stays at its last target (its place after the reset), the gripper as last commanded."""
        joints = self.action_dim == ARM_JOINTS + 1
        if last is not None and joints:
            return np.array(last, np.float32)
        action = np.zeros(self.action_dim, np.float32)
        if joints:
            action[:ARM_JOINTS] = self._joint_angles_rad()
        action[-1] = GRIPPER_OPEN if last is None else last[-1]
        return action

    def close(self) -> None:
        self._env.close()

    def _looks(self) -> bool:
        return self.camera_every is not None and self._step % self.camera_every == 0

    def _observe(self, look: bool) -> Observation:
        if look:
            seen = self.simulation.observe("rgb")  # the only rendering: its steps render nothing
            self._images = {name: np.array(data["rgb"][0].cpu(), np.uint8) for name, data in seen.items()}
        return Observation(self._step, self._images, self.simulation.proprioception(), self._step / CONTROL_HZ)

    def _joint_angles_rad(self) -> np.ndarray:
        return np.asarray(self.simulation.agent.robot.get_qpos()[0, :ARM_JOINTS].cpu())

    def _failure(self) -> str:
        """Why the episode that has just ended failed, in words that can be counted."""
        base = self.simulation
        if base.failure():
            return base.failure()
        subtasks, due = base.variant().subtasks, int(base.progress.stage[0])
        if due < len(subtasks):
            return f"out of time: {subtasks[due].label}"
        undone = self._stage_states(failed=False).index("-")
        return f"undone: {subtasks[undone].label}"

    def _stage_states(self, failed: bool) -> str:
        base = self.simulation
        due = int(base.progress.stage[0])
        standing = base.progress.stages(base.task, base.world())[0].tolist()
        states = ["." if k >= due else "+" if stands else "-" for k, stands in enumerate(standing)]
        if failed and due < len(states):
            states[due] = "x"
        return "".join(states)


def _stage_facts(simulation: Any) -> str:
    """The stages of the episode that has begun, as `predimem.evaluation.analysis.stages` reads them."""
    variant = simulation.variant()
    return json.dumps(
        [
            {
                "label": subtask.label,
                "skill": str(subtask.skill),
                "target": subtask.target,
                "object": subtask.object,
                "memory": subtask.memory or "",
                "budget_steps": budget,
                "evidence": evidence,
            }
            for subtask, budget, evidence in zip(variant.subtasks, variant.budgets_steps, variant.evidence, strict=True)
        ]
    )
