"""The arena as a ManiSkill environment: one class for all tasks, on CPU PhysX or batched on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sapien
import torch
from mani_skill.envs.sapien_env import BaseEnv
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils import sapien_utils
from mani_skill.utils.structs import Pose
from mani_skill.utils.structs.types import SimConfig
from transforms3d.euler import euler2quat

from datagen.arena import fixtures as f
from datagen.arena.furniture import build_fixture, build_mat, build_object, build_table
from datagen.arena.layout import Layout, draw_layout
from datagen.arena.objects import OBJECTS
from datagen.arena.progress import FAILURES, Progress
from datagen.arena.task import Task, Variant
from datagen.arena.tasks import task_of
from datagen.arena.world import OnDemand, World

CONTROL_HZ = 20
CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")
AGENTVIEW_EYE_M, AGENTVIEW_TARGET_M = (-0.70, 0.70, 0.95), (-0.08, 0.02, 0.05)
GROUND_M = -0.75


class ArenaEnv(BaseEnv):
    """One task of the arena.

    task: its id (1 to 26), its name or its Gymnasium id. image_px: width and height of both cameras.
    Raises ValueError for an unknown task. Everything else is ManiSkill's `BaseEnv`.

    With one world the scene is built afresh at every reset: only then are the same seed and actions
    bit-identical whatever was played before.
    """

    SUPPORTED_ROBOTS = ["panda"]
    SUPPORTED_REWARD_MODES = ["none", "sparse"]

    def __init__(
        self,
        *args: Any,
        task: int | str,
        image_px: int = 128,
        robot_uids: str = "panda",
        num_envs: int = 1,
        reconfiguration_freq: int | None = None,
        **kwargs: Any,
    ):
        self.task: Task = task_of(task)
        self._image_px = image_px
        self._fixtures: dict[str, Any] = {}
        self._objects: dict[str, Any] = {}
        self._mats: dict[str, Any] = {}
        self.progress = Progress.fresh(num_envs)
        if reconfiguration_freq is None:
            reconfiguration_freq = 1 if num_envs == 1 else 0
        super().__init__(
            *args,
            robot_uids=robot_uids,
            num_envs=num_envs,
            reconfiguration_freq=reconfiguration_freq,
            **kwargs,
        )

    # ---- the scene

    @property
    def _default_sim_config(self) -> SimConfig:
        return SimConfig(sim_freq=100, control_freq=CONTROL_HZ)

    @property
    def _default_sensor_configs(self) -> list[CameraConfig]:
        size = {"width": self._image_px, "height": self._image_px, "near": 0.01, "far": 10}
        hand = sapien.Pose(p=[0.0465, -0.02, 0.036], q=[0, 0.70710678, 0, 0.70710678])
        return [
            CameraConfig(
                CAMERAS[0], pose=sapien_utils.look_at(AGENTVIEW_EYE_M, AGENTVIEW_TARGET_M), fov=1.1, **size
            ),
            CameraConfig(CAMERAS[1], pose=hand, fov=1.4, mount=self.agent.robot.links_map["panda_hand"], **size),
        ]

    @property
    def _default_human_render_camera_configs(self) -> CameraConfig:
        return CameraConfig(
            "render_camera", pose=sapien_utils.look_at([-0.75, 0.75, 1.0], [-0.05, 0.0, 0.05]),
            width=512, height=512, fov=1.0, near=0.01, far=10,
        )  # fmt: skip

    def _load_agent(self, options: dict[str, Any]) -> None:
        super()._load_agent(options, sapien.Pose(p=list(f.ROBOT_BASE_M)))

    def _load_scene(self, options: dict[str, Any]) -> None:
        self._table = build_table(self.scene)
        self._fixtures = {name: build_fixture(self.scene, name) for name in (*f.KITCHEN, *self.task.fixtures)}
        self._objects = {name: build_object(self.scene, name) for name in self.task.objects}
        marked = sorted({place for variant in self.task.variants for place in variant.mats})
        self._mats = {place: build_mat(self.scene, f"mat_{place}") for place in marked}

    # ---- an episode

    def _initialize_episode(self, env_idx: torch.Tensor, options: dict[str, Any]) -> None:
        if len(self.progress.stage) != self.num_envs or self.progress.stage.device != self.device:
            self.progress = Progress.fresh(self.num_envs, self.device)
        seeds = [int(seed) for seed in np.asarray(self._episode_seed)[env_idx.cpu().numpy()]]
        layouts = [draw_layout(self.task, seed) for seed in seeds]
        self.agent.reset(np.stack([layout.qpos for layout in layouts]))
        self.agent.robot.set_pose(sapien.Pose(list(f.ROBOT_BASE_M)))
        for name, fixture in self._fixtures.items():
            fixture.set_pose(_poses([layout.fixtures[name] for layout in layouts]))
            if name in f.KITCHEN:
                fixture.set_qpos(torch.zeros(len(layouts), fixture.max_dof, device=self.device))
                fixture.set_qvel(torch.zeros(len(layouts), fixture.max_dof, device=self.device))
        nowhere = (np.array([0.0, 0.0, GROUND_M]), 0.0)
        for place, mat in self._mats.items():
            mat.set_pose(_poses([layout.mats.get(place, nowhere) for layout in layouts]))
        for name, thing in self._objects.items():
            thing.set_pose(_poses([layout.objects[name] for layout in layouts]))
        self.progress.reset(env_idx.to(self.device), torch.tensor([layout.variant for layout in layouts]))
        self._remember_rest(env_idx, layouts)

    def _remember_rest(self, env_idx: torch.Tensor, layouts: list[Layout]) -> None:
        if getattr(self, "_rest_bottom_m", None) is None or len(self._rest_bottom_m) != self.num_envs:
            self._rest_bottom_m = torch.zeros(self.num_envs, len(self.task.objects), device=self.device)
        bottoms = [[layout.objects[n][0][2] - OBJECTS[n].half_height_m for n in self.task.objects] for layout in layouts]
        self._rest_bottom_m[env_idx.to(self.device)] = torch.tensor(bottoms, dtype=torch.float32, device=self.device)

    def _step_action(self, action: Any) -> Any:
        result = super()._step_action(action)  # on a GPU this fetches the new state
        self.progress.advance(self.task, self.world())
        return result

    def evaluate(self) -> dict[str, torch.Tensor]:
        """Stages passed so far, success, and failures that cannot be mended; all [N]."""
        progress = self.progress
        finished = progress.stage == self.task.stages
        success = finished
        if bool(finished.any()):
            success = finished & progress.stages(self.task, self.world()).all(dim=-1)
        return {
            "success": success & (progress.failure == 0),
            "fail": progress.failure > 0,
            "stage": progress.stage.clone(),
            "pours": progress.pours.clone(),
            "clipped_actions": progress.clipped.clone(),
        }

    def world(self) -> World:
        """The true state of the simulation at this control step."""
        tcp = self.agent.tcp.pose
        return World(
            position_m=OnDemand(lambda name: self._pose(name).p),
            rotation=OnDemand(lambda name: self._pose(name).q),
            speed_m_s=OnDemand(lambda name: self._objects[name].linear_velocity.norm(dim=-1)),
            joint=OnDemand(self._opening),
            rest_bottom_m=OnDemand(lambda name: self._rest_bottom_m[:, self.task.objects.index(name)]),
            tcp_m=tcp.p,
            tcp_rotation=tcp.q,
            finger_gap_m=self.agent.robot.qpos[:, 7:9].sum(dim=-1),
            pours=self.progress.pours,
        )

    def variant(self, index: int = 0) -> Variant:
        """The hidden state of world `index`: for oracles and for making data, never for a policy."""
        return self.task.variants[int(self.progress.variant[index])]

    def instructions(self) -> list[str]:
        """What each world's robot is told."""
        return [self.task.variants[int(v)].instruction for v in self.progress.variant]

    def failure(self, index: int = 0) -> str:
        """Why the episode of world `index` cannot succeed any more; empty while it can."""
        return FAILURES[int(self.progress.failure[index])]

    def _pose(self, name: str) -> Any:
        if name in self._objects:
            return self._objects[name].pose
        if name in f.DRAWERS:
            return self._fixtures["cabinet"].links_map[name].pose
        if name == "door":
            return self._fixtures["microwave"].links_map["door"].pose
        if name == "table":
            return Pose.create_from_pq(torch.zeros(self.num_envs, 3, device=self.device))
        return self._fixtures[name].pose

    def _opening(self, name: str) -> torch.Tensor:
        fixture = self._fixtures["microwave" if name == f.DOOR else "cabinet"]
        names = [joint.name for joint in fixture.active_joints]
        return fixture.qpos[:, names.index("door" if name == f.DOOR else name)]

    def _get_obs_extra(self, info: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        extra = {"tcp_pose": self.agent.tcp.pose.raw_pose}
        if self.obs_mode_struct.use_state:
            extra |= {name: thing.pose.raw_pose for name, thing in self._objects.items()}
            extra |= {name: fixture.qpos for name, fixture in self._fixtures.items() if name in f.KITCHEN}
            extra |= {"stage": self.progress.stage.float(), "variant": self.progress.variant.float()}
        return extra


def _poses(poses: list[tuple[np.ndarray, float]]) -> Pose:
    p = torch.tensor(np.stack([p for p, _ in poses]), dtype=torch.float32)
    q = torch.tensor(np.stack([euler2quat(0, 0, yaw) for _, yaw in poses]), dtype=torch.float32)
    return Pose.create_from_pq(p, q)
