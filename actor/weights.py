"""A folder that holds an actor: config, weights, normalisation statistics and tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from actor.names import from_openpi, to_openpi
from actor.normalize import NormStats, load_stats, save_stats
from actor.pi05 import Pi05, Pi05Config
from actor.tiny.locator import POSE_DIM
from actor.tokenizer import Tokenizer, load_tokenizer, save_tokenizer
from predimem.core.config import from_dict, to_dict
from predimem.core.faults import SetupError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
STATS_FILE = "norm_stats.json"


class WeightsError(SetupError, ValueError):
    """A weights folder that cannot be used: says what is wrong with which file."""


@dataclass(frozen=True)
class ActorConfig:
    """What the actor expects of an observation, and what it gives.

    model: the sizes of the model.
    cameras: the names of the cameras, in the model's order.
    camera_shape: (height, width) of every camera. Other sizes are an error; where the model's own image size differs,
        the image is resized with padding.
    state_dim: how many numbers the state has.
    action_dim: how many numbers an action of the environment has. The model's may be larger (padded with zeros).
    tokenizer: a `tokenizer.json` in the weights folder, or the path of a sentencepiece `.model`.
    num_steps: how many Euler steps there are at inference.
    gripper: which number of an action is the gripper's; it becomes -1 or 1. With None it is a number like the others.
    relative_to: for actions that are absolute positions of joints: for each action the entry of the state that measures
        the same joint, null for an action that is none. The model then learns how far a joint moves from where it is,
        a small number, in place of where it moves to. Empty: actions are learned as they are.
    after_grip: chunks end so many steps after the gripper changes, so that the robot looks again.
    noise: the standard deviation of what the flow starts from at inference. Less than the 1 of training gives the
        likelier actions.
    base_m: where the robot's base is in the frame of the state. The state has to begin with the TCP's position and
        rotation if the model has a locator.
    """

    model: Pi05Config = field(default_factory=Pi05Config)
    cameras: tuple[str, ...] = ("base_camera", "hand_camera")
    camera_shape: tuple[int, ...] = (128, 128)
    state_dim: int = 7
    action_dim: int = 7
    tokenizer: str = "tokenizer.json"
    num_steps: int = 10
    gripper: int | None = None
    relative_to: tuple[int | None, ...] = ()
    after_grip: int = 4
    noise: float = 1.0
    base_m: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.cameras) != self.model.num_cameras:
            raise ValueError(
                f"model.num_cameras is {self.model.num_cameras}, but {len(self.cameras)} cameras are named"
            )
        if len(self.camera_shape) != 2:
            raise ValueError(f"camera_shape must be [height, width], got {list(self.camera_shape)}")
        if self.action_dim > self.model.action_dim:
            raise ValueError(f"the model's action_dim {self.model.action_dim} cannot hold {self.action_dim} actions")
        if self.gripper is not None and not 0 <= self.gripper < self.action_dim:
            raise ValueError(f"gripper should be one of the {self.action_dim} actions, counted from 0: {self.gripper}")
        if self.relative_to and len(self.relative_to) != self.action_dim:
            raise ValueError(
                f"relative_to should have an entry for each of the {self.action_dim} actions, null for one that is no "
                f"position of a joint; got {len(self.relative_to)}"
            )
        if any(entry is not None and not 0 <= entry < self.state_dim for entry in self.relative_to):
            raise ValueError(f"relative_to: the state has the entries 0 to {self.state_dim - 1}: {self.relative_to}")
        if len(self.base_m) != 3:
            raise ValueError(f"base_m should be [x, y, z], got {list(self.base_m)}")
        if self.model.locate and self.state_dim < POSE_DIM:
            raise ValueError(f"locate needs a state that begins with the TCP's pose ({POSE_DIM} numbers)")
        if self.model.state_dim not in (0, self.state_dim):
            raise ValueError(f"model.state_dim should be 0 or state_dim {self.state_dim}, got {self.model.state_dim}")


@dataclass(frozen=True, eq=False)
class Actor:
    """Everything that inference needs, as read from one folder."""

    config: ActorConfig
    model: Pi05
    stats: NormStats
    tokenizer: Tokenizer


def save_actor(folder: str | Path, actor: Actor, dtype: torch.dtype = torch.float16) -> None:
    """Write a weights folder; the weights under openpi's names, floating point as `dtype`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(json.dumps(to_dict(actor.config), indent=1) + "\n")
    save_stats(folder / STATS_FILE, actor.stats)
    save_tokenizer(actor.tokenizer, tokenizer_path(folder, actor.config))
    weights = {to_openpi(k): v.to(dtype).contiguous() for k, v in actor.model.state_dict().items()}
    save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    (folder / WEIGHTS_FILE).chmod(0o644)  # safetensors writes for the owner alone


def load_actor(folder: str | Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Actor:
    """Read a weights folder. Raises WeightsError if a file is missing, truncated or does not fit."""
    folder = Path(folder)
    for name in (CONFIG_FILE, WEIGHTS_FILE, STATS_FILE):
        if not (folder / name).is_file():
            raise WeightsError(
                f"no actor in {folder}: {name} is missing. Train one with `predimem train actor`, or check the path"
            )
    try:
        data = json.loads((folder / CONFIG_FILE).read_text())
    except json.JSONDecodeError as error:
        raise WeightsError(f"{folder / CONFIG_FILE} is not valid JSON: {error}") from error
    try:
        config = from_dict(ActorConfig, data, where=str(folder / CONFIG_FILE))
        stats = load_stats(folder / STATS_FILE)
        stats.check(config.state_dim, config.action_dim, folder / STATS_FILE)
        tokenizer = load_tokenizer(tokenizer_path(folder, config))
    except ValueError as error:
        raise WeightsError(f"{error}; copy the whole folder of the actor, or train it again") from error
    with torch.device(device):
        model = Pi05(config.model).to(dtype)
    load_into(model, from_openpi(read_safetensors(folder / WEIGHTS_FILE)), folder / WEIGHTS_FILE)
    return Actor(config, model.eval(), stats, tokenizer)


def tokenizer_path(folder: str | Path, config: ActorConfig) -> Path:
    """A tokenizer.json lies in the folder; a sentencepiece model lies where the config says."""
    path = Path(config.tokenizer)
    return Path(folder) / path if path.suffix == ".json" else path


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    try:
        return load_file(str(path))
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read (truncated or not safetensors?): {error}") from error


def load_into(model: nn.Module, weights: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors (under our names) into the model, casting to its dtype; all must fit exactly."""
    own = model.state_dict()
    missing, extra = sorted(set(own) - set(weights)), sorted(set(weights) - set(own))
    if missing or extra:
        raise WeightsError(
            f"{source} does not fit the config: {len(missing)} weights missing (first: "
            f"{to_openpi(missing[0]) if missing else 'none'}), {len(extra)} unknown (first: "
            f"{extra[0] if extra else 'none'})"
        )
    for name, tensor in weights.items():
        if own[name].shape != tensor.shape:
            raise WeightsError(
                f"{source}: {to_openpi(name)} should have shape {tuple(own[name].shape)} by the config, got "
                f"{tuple(tensor.shape)}"
            )
    model.load_state_dict(dict(weights))
