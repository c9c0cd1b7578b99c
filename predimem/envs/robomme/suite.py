"""RoboMME as `predimem.core.interfaces.Environment`: its builder, wrappers and success, with cameras that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from predimem.core.types import Observation, StepResult
from predimem.envs.robomme import package
from predimem.envs.robomme.events import shown
from predimem.envs.robomme.labels import SubgoalLabels, put_in_order
from predimem.envs.robomme.robot import ACTION_DIM, CAMERAS, CONTROL_HZ, check_action, hold_action, resized, state_of
from predimem.envs.robomme.shutter import Shutter
from predimem.rendering import maniskill as rendering

Rendering = Literal["stock", "fast"]


class RobommeEnvironment:
    """One task, whose episodes are RoboMME's: `package.episode_of` says which seed stands for which.

    RoboMME fixes an episode when its environment is made, so that each reset makes a new one. In some tasks the reset
    plays a conditioning video: `video` has its observations, with steps below 0. Step 0 is the first one at which the
    robot acts, as in RoboMME's own evaluation, in which a first action has been executed by then.

    camera_every: images are taken at multiples of so many steps, and when the episode ends; in between the last ones
    hold. None: no images, for agents that do not look. video_every: of the conditioning video one frame of so many.

    `info` of a step: `status` as RoboMME says it, `true_subtask`, `stages_passed`, `stages_total` and `failure`.
    """

    def __init__(self, task: str, image_px: int = 128, rendering: Rendering = "stock", video_every: int = 4):
        """rendering: "stock" for figures to quote (RoboMME's meshes and sizes of images, which are then scaled), "fast"
        for making data (coarse meshes, images rendered in `image_px`).

        Raises NotInstalled, and ValueError for an unknown task.
        """
        if rendering not in ("stock", "fast"):
            raise ValueError(f"rendering must be 'stock' or 'fast', got {rendering!r}")
        if min(image_px, video_every) < 1:
            raise ValueError(f"image_px and video_every must be at least 1, got {image_px} and {video_every}")
        package.check_installed()
        package.check_task(task)
        self.task = task
        self.camera_every: int | None = 1
        self._px, self._rendering, self._video_every = image_px, rendering, video_every
        self._env: Any = None

    @property
    def simulation(self) -> Any:
        """The simulation itself, for agents that know the true state."""
        return self._env.unwrapped

    @property
    def wrapped(self) -> Any:
        """RoboMME's wrapper around the simulation, which its motion planners are called with."""
        return self._env.env

    @property
    def instruction(self) -> str:
        return self._instruction

    @property
    def action_dim(self) -> int:
        return ACTION_DIM

    @property
    def horizon(self) -> int:
        return package.MAX_STEPS

    @property
    def control_hz(self) -> float:
        return CONTROL_HZ

    @property
    def video(self) -> Sequence[Observation]:
        """The conditioning video of the episode, oldest first: steps up to -1. Empty in tasks without one."""
        return self._video

    @property
    def shown_in_video(self) -> Sequence[str]:
        """For each frame of `video` what it shows and hides later (`events.shown`)."""
        return self._shown_in_video

    def reset(self, seed: int) -> Observation:
        """Raises ValueError for a seed that stands for no episode, and NoScene for one that RoboMME cannot build."""
        self.close()
        fast = self._rendering == "fast"
        self._env = package.make_episode(self.task, seed, self._px if fast else None)
        if fast:
            rendering.decimate(self._env)
        self._shutter = Shutter(self.simulation, self._video_every)
        self._shutter.open = self.camera_every is not None
        shown_at: dict[int, str] = {}
        simulation = self.simulation
        self._shutter.on_ask = lambda: shown_at.update({int(simulation.elapsed_steps): shown(simulation)})
        observed, info = self._env.reset()
        self._shutter.on_ask = lambda: None
        steps = self.wrapped.demonstration_data[4]["elapsed_steps"][:-1]
        self._shown_in_video = tuple(shown_at.get(int(step), "") for step in steps)
        put_in_order(self.simulation)
        self.labels = SubgoalLabels(self.simulation)
        self._instruction = str(info["task_goal"][0])
        self._step, self._failure, self._images = 0, "", {}
        self._video = self._observations(observed)
        self._shutter.every = 1
        return self._observe(observed, self._looks())

    def step(self, action: np.ndarray) -> StepResult:
        """Raises ValueError for another shape than [8] or values that are not finite, and RuntimeError where RoboMME
        reports an error of its own."""
        self._step += 1
        self._shutter.open = looks = self._looks()
        observed, _, terminated, truncated, info = self._env.step(check_action(action))
        if info["status"] == "error":
            raise RuntimeError(f"RoboMME: {info.get('error_message', 'an error without a message')}")
        ended, out_of_time = bool(terminated), bool(truncated) or self._step >= self.horizon
        done, success = ended or out_of_time, info["status"] == "success"
        if done and self.camera_every is not None and not looks:
            self._shutter.look()
            looks = True
        due = self.labels.due()
        if done and not success:
            self._failure = f"{'failed' if ended else 'out of time'}: {due.name}"
        return StepResult(
            observation=self._observe(observed, looks),
            terminated=ended,
            truncated=out_of_time,
            success=success,
            info={
                "status": str(info["status"]),
                "true_subtask": due.label,
                "stages_passed": due.total if success else due.passed,
                "stages_total": due.total,
                "failure": self._failure,
            },
        )

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        return hold_action(last, self.simulation.agent.robot.get_qpos()[0].cpu().numpy())

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def _looks(self) -> bool:
        return self.camera_every is not None and self._step % self.camera_every == 0

    def _observe(self, observed: Mapping[str, Any], look: bool) -> Observation:
        if look:
            if self._step == 0:
                self._shutter.look()
            self._images = {
                name: resized(image, (self._px, self._px)) for name, image in self._shutter.images().items()
            }
        return Observation(self._step, self._images, _state(observed, -1), self._step / CONTROL_HZ)

    def _observations(self, observed: Mapping[str, Any]) -> list[Observation]:
        """The conditioning video. Frames in between, whose images are repeated, share them."""
        length = len(observed["front_rgb_list"]) - 1
        video: list[Observation] = []
        images: Mapping[str, np.ndarray] = {}
        last: list[np.ndarray] = []
        for place in range(length):
            raw = [np.asarray(observed[key][place]) for key in ("front_rgb_list", "wrist_rgb_list")]
            if not last or not all(map(np.array_equal, raw, last)):
                last = raw
                small = [resized(image, (self._px, self._px)) for image in raw]
                images = dict(zip(CAMERAS, small, strict=True)) if self.camera_every is not None else {}
            step = place - length
            video.append(Observation(step, images, _state(observed, place), step / CONTROL_HZ))
        return video


def _state(observed: Mapping[str, Any], place: int) -> np.ndarray:
    return state_of(*(observed[f"{name}_state_list"][place] for name in ("joint", "gripper", "eef")))
