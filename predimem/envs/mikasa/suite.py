"""MIKASA-Robo-VLA (mikasa-robo-suite 1.0.0) as `predimem.core.interfaces.Environment`.

The suite's own registration, wrappers and success are used unchanged; only the cameras that make no observation are
left out, and a mesh that its releases lack is replaced (`light_bulb`). Like the suite's harness
(`mikasa_robo_suite.vla.benchmarking.run_episode`), an episode counts as a success if `info["success"]` was true after
any of its steps, and it is not cut short by that: the suite's environments clear `terminated` on success, so it runs to
its horizon. `harness` is the other way round: an agent offered to the suite's own harness.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from predimem.core.progress import stage
from predimem.core.suggestions import did_you_mean
from predimem.core.types import Observation, StepResult
from predimem.envs.mikasa import light_bulb
from predimem.envs.mikasa.cameras import SparseCameras
from predimem.envs.mikasa.families.family import EpisodeReport, Family, State
from predimem.envs.mikasa.families.registry import family_of
from predimem.envs.mikasa.families.scene import camera_state
from predimem.rendering import maniskill as rendering

CAMERAS = ("base_camera", "hand_camera")
CONTROL_MODE = "pd_ee_delta_pose"
CONTROL_HZ = 20.0  # ManiSkill's default, which no task of the suite changes
ACTION_DIM = 7
GRIPPER_OPEN = 1.0
ROBOT_FLAT_M = 0.0015  # of `fast`: meshes are coarser where they bend by less; a fifth of a pixel here

Rendering = Literal["stock", "fast"]


def benchmark_version() -> str:
    """The suite and the simulator that figures were made with, for result files, and what the suite lacked."""
    packages = ("mikasa-robo-suite", "mani_skill", "sapien")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return ", ".join([*versions, light_bulb.NOTE] if light_bulb.is_missing() else versions)


@functools.cache
def tasks() -> tuple[str, ...]:
    """All ids of the suite's VLA registry. Those of ShellGame* need an asset download of ManiSkill's."""
    with stage("loading MIKASA-Robo"):
        rendering.prepare()
        import mikasa_robo_suite.vla.memory_envs  # noqa: F401  (registers the ids)
        from mikasa_robo_suite.vla.utils.apply_wrappers import MIKASA_VLA_ENV_IDS

    return tuple(MIKASA_VLA_ENV_IDS)


def describe(task: str) -> str:
    """The instruction of a task of the suite, how many control steps it has, and what is drawn otherwise here."""
    tasks()
    from mani_skill.utils.registration import REGISTERED_ENVS

    spec: Any = REGISTERED_ENVS[task]
    instruction = getattr(spec.cls, "LANGUAGE_INSTRUCTION", getattr(spec.cls, "LANGUAGE_INSTRUCTION_TEMPLATE", ""))
    note = f" ({light_bulb.NOTE})" if light_bulb.has_bulb(task) and light_bulb.is_missing() else ""
    return f"{spec.max_episode_steps} steps  {instruction}{note}"


def check_task(task: str) -> None:
    """Raises ValueError for an id that the suite does not have or whose assets are not on this machine."""
    if task not in tasks():
        raise ValueError(
            f"unknown MIKASA task {task!r}{did_you_mean(task, tasks())}; `predimem tasks --benchmark mikasa` lists all"
        )
    from mani_skill.utils import assets
    from mani_skill.utils.registration import REGISTERED_ENVS

    for asset in REGISTERED_ENVS[task].asset_download_ids or []:
        if not assets.is_data_source_downloaded(asset):
            raise ValueError(
                f"{task} needs ManiSkill's assets {asset!r}: run `python -m mani_skill.utils.download_asset {asset}`"
            )


def hold_action(last: np.ndarray | None) -> np.ndarray:
    """No motion of the arm (the actions are deltas), the gripper as last commanded (open after reset)."""
    action = np.zeros(ACTION_DIM, np.float32)
    action[-1] = GRIPPER_OPEN if last is None else last[-1]
    return action


def observation_of(obs: Mapping[str, Any], step: int) -> Observation:
    """The suite's wrapped observation (batch of one) as ours: two RGB images and the 7-D proprioception.

    State: TCP position in metres and roll, pitch, yaw in radians (world frame), gripper opening in metres.
    """
    rgb = np.asarray(obs["rgb"][0].cpu(), np.uint8)
    images = {name: rgb[..., 3 * i : 3 * i + 3] for i, name in enumerate(CAMERAS)}
    state = np.asarray(obs["proprio"][0].cpu(), np.float32)
    return Observation(step=step, images=images, state=state, time_s=step / CONTROL_HZ)


def blind_observation(base: Any, step: int) -> Observation:
    """The same state without images; base: the suite's unwrapped environment."""
    from mikasa_robo_suite.vla.utils.wrappers import ConvertJointsToEEFXyzRpyGripperWrapper as Proprioception

    pose = base.agent.tcp.pose
    angles = Proprioception._quat_wxyz_to_rpy_torch(pose.q)[0]
    opening = base.agent.robot.get_qpos()[0, -2:].sum()
    state = np.array([*pose.p[0].tolist(), *angles.tolist(), float(opening)], np.float32)
    return Observation(step=step, images={}, state=state, time_s=step / CONTROL_HZ)


def check_action(action: np.ndarray) -> np.ndarray:
    """float32 [7] in [-1, 1]. Raises ValueError for another shape or for values that are not finite."""
    action = np.asarray(action, np.float32)
    if action.shape != (ACTION_DIM,):
        raise ValueError(f"expected an action of shape ({ACTION_DIM},), {CONTROL_MODE}, got {action.shape}")
    if not np.isfinite(action).all():
        raise ValueError(f"expected finite action values in [-1, 1], got {action.tolist()}")
    return np.clip(action, -1.0, 1.0)


class MikasaEnvironment:
    """One task of the suite with its own wrappers, on the CPU, one episode at a time.

    camera_every: images are taken every so many control steps and at the horizon, and repeated in between; None: none
    are. look_steps: the steps at which images are taken instead, where not None; it applies from the next reset on.
    Nothing else depends on either: rendering is nearly all that a step costs.

    Actions are the suite's: `pd_ee_delta_pose` in [-1, 1] (dx, dy, dz with 1 = 0.1 m, rotation,
    gripper: 1 open, -1 closed). In the cue and delay phases of the short tasks the suite's wrapper
    replaces every action by zeros. The seed alone determines an episode.

    `info` of a step: `success_now` (of this step alone), and for the tasks that a family knows (see `families`)
    `true_subtask` and what the family reports, such as `mistake`.
    """

    def __init__(self, task_id: str, rendering: Rendering = "stock", images: bool = True, camera_every: int | None = 1):
        """rendering: "stock" for figures to quote, "fast" (decimated meshes) for making data.

        images: without them a step costs milliseconds; observations then have none, and states are the same.
        """
        if rendering not in ("stock", "fast"):
            raise ValueError(f"rendering must be 'stock' or 'fast', got {rendering!r}")
        check_task(task_id)
        self.task_id = task_id
        self.family: Family | None = family_of(task_id)
        self.camera_every = camera_every
        self.look_steps: frozenset[int] | None = None
        self._images = images
        self._env = _make(task_id, rendering) if images else _make_blind(task_id)
        self._cameras = SparseCameras(self._env.unwrapped)
        self._instruction = str(getattr(self._env.unwrapped, "LANGUAGE_INSTRUCTION", ""))
        self._begin()

    @property
    def instruction(self) -> str:
        """From the first reset on that of the episode, which in some tasks names an angle or a number of steps."""
        return self._instruction

    @property
    def action_dim(self) -> int:
        return ACTION_DIM

    @property
    def horizon(self) -> int:
        return int(self._env.max_episode_steps)

    @property
    def control_hz(self) -> float:
        return CONTROL_HZ

    def reset(self, seed: int) -> Observation:
        """Raises ValueError for a seed outside [0, 2**32), which NumPy's generators cannot take."""
        if not 0 <= seed < 2**32:
            raise ValueError(f"expected a seed in [0, 2**32), got {seed}")
        self._cameras.looking = self._looks_at(0)
        obs, info = self._env.reset(seed=int(seed))
        said = info["language_instruction"]
        self._instruction = said if isinstance(said, str) else str(said[0])
        self._begin()
        return self._observation(obs)

    def step(self, action: np.ndarray) -> StepResult:
        """Raises ValueError for an action of another shape than [7] or with values that are not finite."""
        import torch

        self._cameras.looking = self._looks_at(self._step + 1)
        batch = torch.from_numpy(check_action(action))[None]
        obs, _, terminated, truncated, info = self._env.step(batch)
        self._step += 1
        report = self._reported(bool(info["success"][0]))
        self._success = self._success or bool(report["success_now"])
        return StepResult(
            observation=self._observation(obs),
            terminated=bool(np.asarray(terminated).reshape(-1)[0]),
            truncated=bool(np.asarray(truncated).reshape(-1)[0]),
            success=self._success,
            info=report,
        )

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return hold_action(last)

    def true_state(self) -> State:
        """The family's true state of this step, see `families.family.Family.state`; computed once a step.

        Raises ValueError for tasks that no family knows.
        """
        if self.family is None:
            raise ValueError(f"the true state of {self.task_id} is not known: it belongs to no family")
        if self._state is None:
            self._state = self.family.state(self._env.unwrapped, self._step)
        return self._state

    def privileged(self) -> dict[str, Any]:
        """`true_state` with the cameras: what labels for the actor are made from."""
        return {**self.true_state(), **camera_state(self._env.unwrapped)}

    def close(self) -> None:
        self._env.close()

    def _looks_at(self, step: int) -> bool:
        if self.look_steps is not None:
            return step in self.look_steps
        every = self.camera_every
        return every is not None and (step % every == 0 or step >= self.horizon)

    def _observation(self, obs: Mapping[str, Any]) -> Observation:
        if not self._images:
            return blind_observation(self._env.unwrapped, self._step)
        observation = observation_of(obs, self._step)
        return observation if self.camera_every is not None else replace(observation, images={})

    def _begin(self) -> None:
        self._step, self._success = 0, False
        self._state: State | None = None
        self._report: EpisodeReport | None = self.family.report() if self.family else None

    def _reported(self, success_now: bool) -> dict[str, object]:
        """`info` of the step that has just been made; success_now: the suite's own."""
        self._state = None
        report: dict[str, object] = {"success_now": success_now}
        if self.family is not None:
            report["true_subtask"] = self.family.subtask(self.true_state())
        if self._report is not None:
            report |= self._report.update(self.true_state(), success_now)
        return report


def _make(task_id: str, quality: Rendering) -> Any:
    with rendering.starting():
        backend = rendering.prepare()
        from mikasa_robo_suite.vla.utils.apply_wrappers import apply_mikasa_vla_wrappers

        env = _bare(task_id, "rgb", backend)
    if quality == "fast":
        rendering.decimate(env, flat_m=ROBOT_FLAT_M)
    return apply_mikasa_vla_wrappers(env, include_overlays=False)


def _make_blind(task_id: str) -> Any:
    """Without a renderer, with only that wrapper of the suite's which changes actions."""
    with rendering.starting():
        rendering.prepare()
        from mani_skill.utils import gym_utils
        from mikasa_robo_suite.vla.utils.apply_wrappers import VLA_WRAPPER_CONFIGS

        env = _bare(task_id, "none", "none")
    horizon = gym_utils.find_max_episode_steps_value(env)
    freeze = VLA_WRAPPER_CONFIGS[task_id].curriculum_wrapper
    env = env if freeze is None else freeze(env)
    env.max_episode_steps = horizon
    return env


def _bare(task_id: str, obs_mode: str, render_backend: str) -> Any:
    import gymnasium

    if light_bulb.has_bulb(task_id):
        light_bulb.replace_missing()
    return gymnasium.make(
        task_id,
        num_envs=1,
        obs_mode=obs_mode,
        control_mode=CONTROL_MODE,
        reward_mode="none",
        render_mode=None,
        sim_backend="cpu",
        render_backend=render_backend,
    )
