"""Diagnostic environments that come in packages of their own: POPGym, Minigrid and Memory Gym."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from math import prod
from typing import Any

import numpy as np

from predimem.core.faults import SetupError
from predimem.envs.base.game import Seen, Turn


class MissingPackage(SetupError, ImportError):
    """A package that a task needs is not installed; the message says how to get it."""


@dataclass(frozen=True)
class Package:
    """name: what pip calls it. module: what registers its environments. install: what gets it."""

    name: str
    module: str
    install: str = "pip install 'predimem[base]'"


POPGYM = Package("popgym", "popgym")
MINIGRID = Package("minigrid", "minigrid")
# It asks for another patch release of Gymnasium than ManiSkill does, and for pygame where Minigrid brings pygame-ce.
MEMORY_GYM = Package("memory-gym", "memory_gym", "pip install --no-deps memory-gym==1.0.2")
PACKAGES = (POPGYM, MINIGRID, MEMORY_GYM)
LONGEST_EPISODE = 2_048  # for environments that do not say how long an episode can be


def versions() -> str:
    """The versions of the packages that are installed, for the records of results."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package.name} {version(package.name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def check_installed(package: Package, task: str) -> None:
    """Raises MissingPackage unless the package can be imported."""
    try:
        importlib.import_module(package.module)
    except ImportError as error:
        raise MissingPackage(
            f"{task} needs the package {package.name}, which cannot be imported ({error}): {package.install}"
        ) from error


class PackagedGame:
    """An environment that is registered in Gymnasium, as a `predimem.envs.base.game.Game`.

    Its vector is the flattened observation, with one-hot vectors for discrete ones (`gymnasium.spaces.flatten`). Of a
    MultiDiscrete action every combination is an action of its own.

    success_return: an episode is a success if it ended with at least this sum of rewards, unless the package itself
    says whether it is one.
    """

    hold = 0

    def __init__(self, env_id: str, instruction: str, success_return: float):
        """Raises ValueError for an action space that is not supported."""
        import gymnasium

        self.instruction, self._success_return = instruction, success_return
        self._env = gymnasium.make(env_id, disable_env_checker=True)
        if env_id.startswith("MiniGrid"):
            from minigrid.wrappers import RGBImgPartialObsWrapper

            self._env = RGBImgPartialObsWrapper(self._env)
        bare: Any = self._env.unwrapped
        limits = (getattr(bare, name, None) for name in ("max_episode_length", "max_steps"))
        self.horizon = next((int(n) for n in limits if n), LONGEST_EPISODE)
        self._box: Any = None
        self._sizes: tuple[int, ...] = ()
        space: Any = self._env.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            self._sizes = (int(space.n),)
        elif isinstance(space, gymnasium.spaces.MultiDiscrete):
            self._sizes = tuple(int(n) for n in space.nvec.ravel())
        elif isinstance(space, gymnasium.spaces.Box) and len(space.low.shape) == 1:
            self._box = space
        else:
            raise ValueError(f"{env_id}: its actions are a {space}, which no agent here can choose from")
        self._discrete: Any = space
        self.actions = tuple(str(n) for n in range(prod(self._sizes))) if self._box is None else ()
        box: Any = self._box
        self.action_dim = len(self.actions) if box is None else len(box.low)

    def reset(self, seed: int) -> Seen:
        seen, _ = self._env.reset(seed=seed)
        self._return = 0.0
        return self._seen(seen)

    def step(self, action: int | np.ndarray) -> Turn:
        seen, reward, terminated, truncated, info = self._env.step(self._native(action))
        self._return += float(reward)
        done = bool(terminated or truncated)
        success = done and bool(info.get("success", self._return >= self._success_return))
        return Turn(self._seen(seen), float(reward), done, success)

    def close(self) -> None:
        self._env.close()

    def _native(self, action: int | np.ndarray) -> Any:
        if self._box is not None:
            return self._box.low + (np.asarray(action) + 1) / 2 * (self._box.high - self._box.low)
        if len(self._sizes) == 1 and self._discrete.shape == ():
            return int(action)
        return np.array(np.unravel_index(int(action), self._sizes)).reshape(self._discrete.shape)

    def _seen(self, seen: Any) -> Seen:
        import gymnasium

        space: Any = self._env.observation_space
        image = None
        if isinstance(seen, dict):  # an image beside a direction (Minigrid) or a vector (Memory Gym)
            parts = dict(seen)
            parts.pop("mission", None)
            name = next((n for n, part in parts.items() if _is_image(part)), None)
            image = None if name is None else parts.pop(name)
            flat = [np.ravel(gymnasium.spaces.flatten(space[name], part)) for name, part in parts.items()]  # type: ignore[arg-type]
            return Seen(np.concatenate([np.zeros(0), *flat]).astype(np.float32), image)
        if _is_image(seen):
            return Seen(np.zeros(0, np.float32), seen)
        return Seen(np.asarray(gymnasium.spaces.flatten(space, seen), np.float32))


def _is_image(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype == np.uint8 and part.ndim == 3 and part.shape[2] == 3
