"""The arena as a ManiSkill environment: one class for all tasks, on CPU PhysX or batched on a GPU."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import sapien
import torch
from mani_skill.envs.sapien_env import BaseEnv
from mani_skill.sensors.camera import CameraConfig
from mani_skill.utils import sapien_utils
from mani_skill.utils.structs import Pose
from mani_skill.utils.structs.types import SimConfig
from transforms3d.euler import euler2quat

from predimem.envs.arena import fixtures as f
from predimem.envs.arena.due import DueStage
from predimem.envs.arena.objects import OBJECTS
from predimem.envs.arena.progress import FAILURES, Progress
from predimem.envs.arena.scene import backends, saving
from predimem.envs.arena.scene.actions import limited
from predimem.envs.arena.scene.furniture import build_fixture, build_mat, build_table
from predimem.envs.arena.scene.groceries import build_object
from predimem.envs.arena.scene.looks import light_scene
from predimem.envs.arena.scene.mats import carry_mats
from predimem.envs.arena.scene.options import CONTROL_MODES, check_options, textures
from predimem.envs.arena.scene.reading import proprioception, read_world, tcp_pose
from predimem.envs.arena.scene.shading import shader_config
from predimem.envs.arena.scene.visitor import Visitor
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.tasks import task_of
from predimem.envs.arena.unseen.conditions import PLAIN, condition_of, drawing
from predimem.envs.arena.unseen.setting import AS_BUILT, ROOM, Setting, View
from predimem.envs.arena.world import World
from predimem.rendering import maniskill as rendering

CONTROL_HZ = 20
CAMERAS = ("agentview_rgb", "eye_in_hand_rgb")
DEPTH_CAMERAS = ("agentview_depth", "eye_in_hand_depth")  # at the same places, for making data
ROBOT_MESHES = ("light", "stock")
ROBOT_FLAT_M = 0.0015  # a third of a pixel of a camera with 256 px; spares two triangles in five
AGENTVIEW_FOV_RAD = 0.86
# In front of the gripper, between the fingers, and turned towards their tips.
HAND_CAMERA_M, HAND_CAMERA_TILT_RAD, HAND_CAMERA_FOV_RAD = (0.06, 0.0, 0.045), 0.35, 1.4
GROUND_M = -0.75


class ArenaEnv(BaseEnv):
    """One task of the arena, in N worlds: `BaseEnv` of ManiSkill, so everything is batched, [N, ...].

    task: its id (1 to 26), its name or its Gymnasium id. condition: what differs from the training (`unseen`); all but
    "plain" need one world. variation: for training data, what varies in which share of the episodes
    (`unseen.conditions.vary`); it needs one world, too. image_px: width and height of both cameras.
    obs_mode: "state" (the true state, hidden state included: for oracles), "none", or what the cameras
    see: "rgb", "rgbd", or any of ManiSkill's textures joined by "+" ("rgb+depth+segmentation"); beside
    images there is only what the robot feels (joints, TCP). control_mode: one of `CONTROL_MODES`.
    render_backend: None has a renderer where obs_mode or render_mode need one, "auto" always (for
    `observe`), "none" never; else ManiSkill's. robot_meshes: what is seen of the robot, "light" (coarse
    and quick to render) or "stock"; nothing else differs. depth_px: width and height of the
    `DEPTH_CAMERAS`, which are there for `observe` only if this is given. reward_mode: "sparse" (1 success,
    -1 failure) or "none".
    num_envs: more than one needs PhysX on a GPU. The code is written for N worlds and has been run with
    one on the CPU; `tests/envs/arena/test_environment.py` has the checks for a machine with a GPU.

    An episode ends with success or with a failure that cannot be mended; `registration` adds the horizon.
    `info`, all [N]: success, fail, stage (how many were passed), pours, clipped_actions, elapsed_steps.

    Exact: with one world on the CPU, the same seed and actions give bit-identical states, whatever was
    played before and in every process: the scene is built afresh at every reset (a plain reset is not
    exact after contacts). On a GPU only the starts are the same.

    A state that was saved continues as the original did but for PhysX's contact caches, which cannot be
    saved: over 60 random steps the arm stays within 5e-6 rad and things at rest within 0.01 mm, a held
    bottle slips by 1 to 6 mm and 2 to 12 degrees (joints: 1e-3 rad), and a bottle that rolls goes
    elsewhere. Among each other, roll-outs are bit-identical where each begins with
    `reset(options={"reset_to_env_states": {"env_states": state}})`.

    Raises ValueError for a bad option, and `predimem.rendering.vulkan.VulkanError` where images are wanted and
    nothing can render them.
    """

    SUPPORTED_REWARD_MODES = ("sparse", "none")
    metadata: ClassVar[dict[str, Any]] = {**BaseEnv.metadata, "render_fps": CONTROL_HZ}

    def __init__(
        self,
        *,
        task: int | str | Task,
        condition: str = PLAIN,
        variation: Mapping[str, float] | None = None,
        image_px: int = 128,
        depth_px: int | None = None,
        num_envs: int = 1,
        obs_mode: str = "state",
        control_mode: str = CONTROL_MODES[0],
        render_mode: str | None = None,
        sim_backend: str = "auto",
        render_backend: str | None = None,
        robot_meshes: str = "light",
        reconfiguration_freq: int | None = None,
        **kwargs: Any,
    ):
        self.task: Task = task_of(task)
        self.condition = condition_of(condition).name
        self._draw = drawing(self.condition, variation or {})
        self.settings: list[Setting] = []  # one for each world, of the episode that runs
        self.image_px, self._depth_px = image_px, depth_px
        self._robot_meshes = robot_meshes
        self.fixtures: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}
        self.mats: dict[str, Any] = {}
        self.distractors: dict[str, Any] = {}
        self._dropped_scenes = 0
        if num_envs > 1 and any(variant.pauses or variant.visits for variant in self.task.variants):
            raise ValueError(f"task {self.task.name} has pauses or visits, which need num_envs=1; got {num_envs}")
        check_options(obs_mode, control_mode, image_px, num_envs, sim_backend)
        if robot_meshes not in ROBOT_MESHES:
            raise ValueError(f"robot_meshes is one of {', '.join(ROBOT_MESHES)}, not {robot_meshes!r}")
        if reconfiguration_freq is None:
            reconfiguration_freq = 1 if num_envs == 1 else 0
        if (self.condition != PLAIN or variation) and (num_envs, reconfiguration_freq) != (1, 1):
            raise ValueError(
                f"{variation or condition!r} builds a scene for each episode: it needs num_envs=1 and "
                f"reconfiguration_freq=1, got {num_envs} and {reconfiguration_freq}"
            )
        super().__init__(
            num_envs=num_envs,
            obs_mode=obs_mode,
            control_mode=control_mode,
            render_mode=render_mode,
            sim_backend=sim_backend,
            render_backend=backends.render_backend(render_backend, obs_mode, render_mode),
            reconfiguration_freq=reconfiguration_freq,
            robot_uids="panda",
            **kwargs,
        )

    # ---- the scene

    @property
    def _default_sim_config(self) -> SimConfig:
        return SimConfig(sim_freq=100, control_freq=CONTROL_HZ)

    @property
    def _default_sensor_configs(self) -> list[CameraConfig]:
        view = self.settings[0].view
        scene = sapien_utils.look_at(view.eye_m, view.target_m)
        turned: Any = euler2quat(0.0, HAND_CAMERA_TILT_RAD - np.pi / 2, np.pi)
        mount_pose: Any = sapien.Pose(list(HAND_CAMERA_M), turned)
        mount = self.agent.robot.links_map["panda_hand"]

        def pair(names: tuple[str, str], px: int) -> list[CameraConfig]:
            common: Any = {"width": px, "height": px, "near": 0.01, "far": 10, "shader_config": shader_config()}
            return [
                CameraConfig(names[0], scene, fov=AGENTVIEW_FOV_RAD, **common),
                CameraConfig(names[1], mount_pose, fov=HAND_CAMERA_FOV_RAD, mount=mount, **common),
            ]

        return pair(CAMERAS, self.image_px) + (pair(DEPTH_CAMERAS, self._depth_px) if self._depth_px else [])

    @property
    def _default_human_render_camera_configs(self) -> CameraConfig:
        view = View()
        return CameraConfig(
            "render_camera", pose=sapien_utils.look_at(view.eye_m, view.target_m),
            width=512, height=512, fov=AGENTVIEW_FOV_RAD, near=0.01, far=10, shader_config=shader_config(),
        )  # fmt: skip

    def _load_agent(
        self, options: dict[str, Any], initial_agent_poses: Any = None, build_separate: bool = False
    ) -> None:
        super()._load_agent(options, sapien.Pose(list(f.ROBOT_BASE_M)), build_separate)
        if self._robot_meshes == "light" and self.scene.can_render():
            rendering.decimate(self, flat_m=ROBOT_FLAT_M)  # of the scene, only the robot is there yet

    def _load_scene(self, options: dict[str, Any]) -> None:
        setting = self.settings[0]
        styles = {name: setting.styles.get(name, AS_BUILT) for name in (ROOM, *f.FIXTURES, *self.task.objects)}
        build_table(self.scene, styles[ROOM])
        fixtures = (*f.KITCHEN, *self.task.fixtures)
        self.fixtures = {name: build_fixture(self.scene, name, styles[name]) for name in fixtures}
        self.objects = {name: build_object(self.scene, name, styles[name]) for name in self.task.objects}
        self.distractors = {name: build_object(self.scene, name) for name in setting.distractors}
        marked = sorted({place for variant in self.task.variants for place in variant.mats})
        self.mats = {place: build_mat(self.scene, f"mat_{place}") for place in marked}
        self.progress = Progress.fresh(self.num_envs, self.device)
        self.visitor = Visitor(self) if any(v.pauses or v.visits for v in self.task.variants) else None
        self.due = DueStage(self)
        self.table_pose = self._tensor([[0.0, 0, 0, 1, 0, 0, 0]] * self.num_envs)
        self.rest_bottom_m = torch.zeros(self.num_envs, len(self.task.objects), device=self.device)

    def _clear(self) -> None:
        """Drop the scene, as `BaseEnv` does, but look for garbage only now and then.

        That takes 0.17 s, eight times as long as building the next scene, and a dropped scene is less than
        1 MB. (On a GPU it is more, and scenes are seldom built afresh.)
        """
        self._close_viewer()
        self.agent = self.scene = None  # type: ignore[assignment]
        self._sensors, self._human_render_cameras, self._hidden_objects = {}, {}, []
        self.fixtures, self.objects, self.mats, self.distractors = {}, {}, {}, {}
        self._dropped_scenes += 1
        if self._dropped_scenes % 20 == 0 or self.device.type == "cuda":
            gc.collect()

    def close(self) -> None:
        super().close()
        gc.collect()

    def _load_lighting(self, options: dict[str, Any]) -> None:
        light_scene(self.scene, self.enable_shadow, self.settings[0].lamps)

    # ---- an episode

    def reset(self, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin new episodes, in the worlds options["env_idx"] or in all.

        seed: one for each of these worlds, or one number, from which the others are drawn; without one they
        are drawn from the last seed that was given. options: see `BaseEnv.reset`.
        """
        options = dict(options or {})
        env_idx = torch.as_tensor(options.get("env_idx", range(self.num_envs)), device=self.device)
        options["env_idx"] = env_idx
        seeds = self._seeds(seed, env_idx.cpu().numpy())
        self.settings = [self._draw(self.task, seed) for seed in seeds]
        return super().reset(seed=seeds, options=options)

    def _seeds(self, seed: int | Sequence[int] | None, env_idx: np.ndarray) -> list[int]:
        """The episode seeds of all N worlds, new in `env_idx`. (ManiSkill mixes them up in partial resets.)"""
        if seed is None:
            drawn = self.np_random.integers(2**31, size=len(env_idx))
        else:
            given = np.atleast_1d(np.asarray(seed))
            whole = given.dtype.kind in "iu" and len(given) in (1, len(env_idx))
            if not whole or (given < 0).any() or (given >= 2**32).any():
                raise ValueError(
                    f"a seed is a whole number from 0 to 2**32 - 1, or one for each of the {len(env_idx)} worlds; "
                    f"got {seed!r}"
                )
            more = np.random.RandomState(given[0]).randint(2**31, size=len(env_idx) - len(given))
            drawn = np.concatenate([given, more])
            self._np_random = np.random.default_rng(drawn)
        seeds = np.zeros(self.num_envs, np.int64) if self._episode_seed is None else self._episode_seed.copy()
        seeds[env_idx] = drawn
        return seeds.tolist()

    def _initialize_episode(self, env_idx: torch.Tensor, options: dict[str, Any]) -> None:
        layouts = [self.settings[i].layout for i in env_idx.cpu().numpy()]
        qpos = self._tensor([layout.qpos for layout in layouts])
        self.agent.reset(qpos)
        self.agent.robot.set_pose(sapien.Pose(list(f.ROBOT_BASE_M)))
        self.agent.robot.set_joint_drive_targets(qpos, self.agent.robot.active_joints)  # a step without action holds
        for name, fixture in self.fixtures.items():
            fixture.set_pose(self._pose_of([layout.fixtures[name] for layout in layouts]))
            if name in f.KITCHEN:
                shut = torch.zeros(len(layouts), fixture.max_dof, device=self.device)
                fixture.set_qpos(shut)
                fixture.set_qvel(shut)
        nowhere = (np.array([0.0, 0.0, GROUND_M]), 0.0)
        for place, mat in self.mats.items():
            mat.set_pose(self._pose_of([layout.mats.get(place, nowhere) for layout in layouts]))
        for name, thing in self.objects.items():
            thing.set_pose(self._pose_of([layout.objects[name] for layout in layouts]))
        for name, thing in self.distractors.items():
            thing.set_pose(self._pose_of([self.settings[0].distractors[name]]))
        self.progress.reset(env_idx, torch.tensor([layout.variant for layout in layouts]))
        if self.visitor is not None:
            self.visitor.reset()
        self.due.reset()
        self.rest_bottom_m[env_idx] = self._tensor(
            [[layout.objects[n][0][2] - OBJECTS[n].half_height_m for n in self.task.objects] for layout in layouts]
        )

    def _tensor(self, values: Any) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.float32, device=self.device)

    def _pose_of(self, poses: Sequence[tuple[np.ndarray, float]]) -> Pose:
        p = self._tensor([p for p, _ in poses])
        return Pose.create_from_pq(p, self._tensor([euler2quat(0, 0, yaw) for _, yaw in poses]))

    def _step_action(self, action: Any) -> Any:
        """action: see `actions.limited`; None goes on towards the last action's targets."""
        if action is not None:
            space: Any = self.agent.single_action_space
            action, clipped = limited(action, space, self.progress.clipped, self.control_mode)
            self.progress.clipped += clipped
        result = super()._step_action(action)  # on a GPU this fetches the new state
        world = self.world()
        self.progress.advance(self.task, world, self.waiting)
        self.due.look(world)
        return result

    def _before_control_step(self) -> None:
        carry_mats(self)
        if self.visitor is not None:
            self.visitor.before_step()

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
        return read_world(self)

    def get_info(self) -> dict[str, torch.Tensor]:
        return super().get_info() | {"elapsed_steps": self.elapsed_steps.clone()}  # on CPU it would go on counting

    def proprioception(self) -> np.ndarray:
        """float32 [17]: see `reading.proprioception`."""
        return proprioception(self)

    def variant(self, index: int = 0) -> Variant:
        """The hidden state of world `index`: for oracles and for making data, never for a policy."""
        return self.task.variants[int(self.progress.variant[index])]

    @property
    def waiting(self) -> bool:
        """Whether the robot has to wait, so that the stage that is due cannot pass yet."""
        return self.visitor is not None and self.visitor.waiting

    @property
    def visited(self) -> bool:
        """Whether somebody else is moving something now, so that not all that changes is the robot's doing."""
        return self.visitor is not None and self.visitor.busy

    def instructions(self) -> list[str]:
        """What each world's robot is told."""
        told = zip(self.settings, self.progress.variant, strict=True)
        return [setting.instruction or self.task.variants[int(v)].instruction for setting, v in told]

    def episode_seeds(self) -> list[int]:
        """What each world's episode was drawn from."""
        return [int(seed) for seed in self._episode_seed]

    def failure(self, index: int = 0) -> str:
        """Why the episode of world `index` cannot succeed any more; empty while it can."""
        return FAILURES[int(self.progress.failure[index])]

    # ---- what cameras see, and the whole state

    def observe(self, mode: str = "rgb", cameras: Sequence[str] = CAMERAS) -> dict[str, dict[str, torch.Tensor]]:
        """What cameras see now: {camera: {"rgb": uint8 [N, H, W, 3], "depth": int16 [N, H, W, 1] in mm, ...}}.

        mode: "rgb", "rgbd" or textures joined by "+", of which "segmentation" [N, H, W, 1] has the ids of
        `segmentation_id_map`. The only rendering of an environment with obs_mode "none", which steps as
        fast as one without a renderer. Raises ValueError for a mode without images, or where the
        environment was made without a renderer.
        """
        if not self.scene.can_render():
            raise ValueError("this environment has no renderer: make it with render_backend='auto'")
        visual = textures(mode)
        self.scene.update_render(update_sensors=True, update_human_render_cameras=False)
        for name in cameras:
            self._sensors[name].capture()
        return {name: self._sensors[name].get_obs(**vars(visual)) for name in cameras}

    def get_state_dict(self) -> Any:
        """The whole state, [N, D] each, task memory included: see `saving`. `get_state` is its flat form."""
        whole: Any = super().get_state_dict()
        return whole | saving.own_state(self)

    def set_state_dict(self, state: Mapping[str, Any], env_idx: torch.Tensor | None = None) -> None:
        """Go back to a saved state, in the worlds `env_idx` or in all; the state has that many rows.

        Raises ValueError, and changes nothing, unless it is a state of this task.
        """
        env_idx = torch.as_tensor(range(self.num_envs) if env_idx is None else env_idx, device=self.device)
        made = saving.checked(state, self.get_state_dict(), len(env_idx), self.device)
        saving.restore_own_state(self, made, env_idx)
        super().set_state_dict({key: made[key] for key in ("actors", "articulations")}, env_idx)
        self.due.reset()

    def set_state(self, state: Any, env_idx: torch.Tensor | None = None) -> None:
        """`set_state_dict` for the flat form [n, D]."""
        self.set_state_dict(saving.unflatten(state, self.get_state_dict()), env_idx)

    def _get_obs_extra(self, info: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        extra = {"tcp_pose": tcp_pose(self)}
        if self.obs_mode_struct.use_state:
            extra |= {name: thing.pose.raw_pose for name, thing in self.objects.items()}
            extra |= {name: fixture.qpos for name, fixture in self.fixtures.items() if name in f.KITCHEN}
            extra |= {"stage": self.progress.stage.float(), "variant": self.progress.variant.float()}
        return extra
