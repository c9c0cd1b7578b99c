"""Any Gymnasium environment with a box of actions as `predimem.core.interfaces.Environment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from predimem.core.types import Observation, StepResult

if TYPE_CHECKING:
    import gymnasium

CAMERA = "render"


class GymnasiumEnvironment:
    """Plays an environment that was made with `render_mode="rgb_array"`, one episode at a time.

    images: what it renders, uint8 [H, W, 3], as the camera `render`.
    state: its observation, flattened to float32 [D].

    Actions are clipped to its action space. An episode is a success once `info["success"]` (or `is_success`) is true.
    """

    def __init__(self, env: gymnasium.Env, instruction: str, horizon: int | None = None, control_hz: float = 10.0):
        """horizon: control steps after which an episode is truncated; None: those of the environment's registration.

        Raises ValueError for an environment that cannot be rendered, has no box of actions, or is endless.
        """
        import gymnasium

        limit = horizon or (env.spec.max_episode_steps if env.spec else None)
        if env.render_mode != "rgb_array":
            raise ValueError(f"expected render_mode='rgb_array', got {env.render_mode!r}: pass it to gymnasium.make")
        if not isinstance(env.action_space, gymnasium.spaces.Box) or len(env.action_space.shape) != 1:
            raise ValueError(f"expected a one-dimensional Box of actions, got {env.action_space}")
        if limit is None:
            raise ValueError("the environment never truncates an episode: pass horizon")
        self.env, self.instruction, self.horizon, self.control_hz = env, instruction, limit, control_hz
        self._box = env.action_space
        self._step, self._success = 0, False

    @property
    def action_dim(self) -> int:
        return int(self._box.shape[0])

    def reset(self, seed: int) -> Observation:
        seen, _ = self.env.reset(seed=seed)
        self._step, self._success = 0, False
        return self._observe(seen)

    def step(self, action: np.ndarray) -> StepResult:
        """Raises ValueError for an action of another shape than [A] and for values that are not finite."""
        action = np.asarray(action, np.float32)
        if action.shape != self._box.shape or not np.isfinite(action).all():
            raise ValueError(f"expected {self.action_dim} finite numbers, got {action!r}")
        seen, _, terminated, truncated, info = self.env.step(np.clip(action, self._box.low, self._box.high))
        self._step += 1
        self._success = self._success or bool(info.get("success", info.get("is_success", False)))
        late = self._step >= self.horizon
        return StepResult(self._observe(seen), bool(terminated), bool(truncated) or late, self._success, _plain(info))

    def hold_action(self, last: np.ndarray | None) -> np.ndarray:
        """Zeros: right for velocities and displacements; override it for absolute targets."""
        return np.zeros(self.action_dim, np.float32)

    def close(self) -> None:
        self.env.close()

    def _observe(self, seen: Any) -> Observation:
        image: Any = self.env.render()
        state = np.asarray(seen, np.float32).reshape(-1)
        return Observation(self._step, {CAMERA: np.asarray(image, np.uint8)}, state, self._step / self.control_hz)


def _plain(info: dict[str, Any]) -> dict[str, object]:
    return {name: value for name, value in info.items() if isinstance(value, bool | int | float | str)}
