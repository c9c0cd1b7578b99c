"""A folder that holds an actor: config, weights, normalisation statistics and tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from actor.aloha import ALOHA_DIM
from actor.engine.precision import set_precision
from actor.names import from_openpi, to_openpi
from actor.normalize import NormStats, load_stats, save_stats
from actor.pi05 import Pi05, Pi05Config
from actor.tiny.pose import ROTATION_DIM, Rotation
from actor.tokenizer import Tokenizer, load_tokenizer, save_tokenizer
from predimem.core.config import from_dict, to_dict
from predimem.core.faults import SetupError
from predimem.core.files import AtomicWrite

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
    optional_cameras: those of them that an observation or an episode may lack. The model does not attend to a camera
        that is missing; one camera at least has to be there.
    camera_shape: (height, width) of every camera. Other sizes are an error; where the model's own image size differs,
        the image is resized with padding.
    state_dim: how many numbers the state has.
    action_dim: how many numbers an action of the environment has. The model's may be larger (padded with zeros).
    relative_to_state: for robots that are told absolute positions while the model learns relative ones. For each
        action it has the entry of the state from which the model counts, and null for an action that stays absolute,
        such as a gripper's. Empty: all stay as the robot has them.
    aloha_space: whether state and actions are those of an ALOHA, which are converted to the units of π0.5's base
        weights (`actor.aloha`). `relative_to_state` counts in the converted units.
    tokenizer: a `tokenizer.json` or a sentencepiece `.model` in the weights folder, or the path of a `.model`.
    long_prompts: what becomes of a subtask that does not fit into `model.max_token_len`: its last words are `cut`, with
        a warning, or it is an error (`refuse`).
    openpi_exact: whether states are discretised and images resized exactly as by openpi, for weights that were
        trained that way: a constant dimension is bin 0, a state below the range is bin -1, and 720 rows become 126.
    num_steps: how many Euler steps there are at inference.
    gripper: which number of an action is the gripper's; it becomes -1 or 1. With None it is a number like the others.
    after_grip: chunks end so many steps after the gripper changes, so that the robot looks again.
    noise: the standard deviation of what the flow starts from at inference. Less than the 1 of training gives the
        likelier actions.
    base_m: where the robot's base is in the frame of the state.
    tcp: the entry of the state at which the TCP's position and rotation begin, which a model with a locator needs.
    rotation: how the state gives that rotation: as the first two `columns` of its matrix (six numbers), or as roll,
        pitch and yaw about fixed axes in radians (`rpy`), or not at all, because the gripper points `down`.
    """

    model: Pi05Config = field(default_factory=Pi05Config)
    cameras: tuple[str, ...] = ("base_camera", "hand_camera")
    camera_shape: tuple[int, ...] = (128, 128)
    state_dim: int = 7
    action_dim: int = 7
    tokenizer: str = "tokenizer.json"
    num_steps: int = 10
    gripper: int | None = None
    after_grip: int = 4
    noise: float = 1.0
    base_m: tuple[float, ...] = (0.0, 0.0, 0.0)
    tcp: int = 0
    rotation: Rotation = "columns"
    optional_cameras: tuple[str, ...] = ()
    relative_to_state: tuple[int | None, ...] = ()
    aloha_space: bool = False
    long_prompts: Literal["cut", "refuse"] = "cut"
    openpi_exact: bool = False

    def __post_init__(self) -> None:
        if len(self.cameras) != self.model.num_cameras:
            raise ValueError(
                f"model.num_cameras is {self.model.num_cameras}, but {len(self.cameras)} cameras are named"
            )
        if unknown := sorted(set(self.optional_cameras) - set(self.cameras)):
            raise ValueError(f"optional_cameras are some of the cameras {list(self.cameras)}, got {unknown}")
        self._check_space()
        if len(self.camera_shape) != 2:
            raise ValueError(f"camera_shape must be [height, width], got {list(self.camera_shape)}")
        if self.action_dim > self.model.action_dim:
            raise ValueError(f"the model's action_dim {self.model.action_dim} cannot hold {self.action_dim} actions")
        if self.gripper is not None and not 0 <= self.gripper < self.action_dim:
            raise ValueError(f"gripper should be one of the {self.action_dim} actions, counted from 0: {self.gripper}")
        if len(self.base_m) != 3:
            raise ValueError(f"base_m should be [x, y, z], got {list(self.base_m)}")
        if self.tcp < 0:
            raise ValueError(f"tcp is an entry of the state, counted from 0, got {self.tcp}")
        if self.model.locate and self.state_dim < self.tcp + (numbers := 3 + ROTATION_DIM[self.rotation]):
            raise ValueError(
                f"locate needs a state with the TCP's pose ({numbers} numbers from entry {self.tcp} on with rotation: "
                f"{self.rotation}), got state_dim {self.state_dim}"
            )
        if self.model.state_dim not in (0, self.state_dim):
            raise ValueError(f"model.state_dim should be 0 or state_dim {self.state_dim}, got {self.model.state_dim}")

    def _check_space(self) -> None:
        entries = self.relative_to_state
        if entries and len(entries) != self.action_dim:
            raise ValueError(
                f"relative_to_state has {len(entries)} entries, and there are {self.action_dim} actions: name the "
                "entry of the state for each of them, null for one that stays absolute"
            )
        if wrong := [entry for entry in entries if entry is not None and not 0 <= entry < self.state_dim]:
            raise ValueError(f"relative_to_state: the state has the entries 0 to {self.state_dim - 1}, got {wrong}")
        if self.aloha_space and (self.state_dim, self.action_dim) != (ALOHA_DIM, ALOHA_DIM):
            raise ValueError(
                f"aloha_space needs a state and actions of {ALOHA_DIM} numbers (two arms of six joints and a gripper), "
                f"got {self.state_dim} and {self.action_dim}"
            )


@dataclass(frozen=True, eq=False)
class Actor:
    """Everything that inference needs, as read from one folder."""

    config: ActorConfig
    model: Pi05
    stats: NormStats
    tokenizer: Tokenizer


def save_actor(folder: str | Path, actor: Actor, dtype: torch.dtype = torch.float16) -> None:
    """Write a weights folder; the weights under openpi's names, floating point as `dtype`.

    A sentencepiece tokenizer is copied into it.
    """
    folder = Path(folder)
    write_description(folder, actor.config, actor.stats, actor.tokenizer)
    weights = {to_openpi(k): v.to(dtype).contiguous() for k, v in actor.model.state_dict().items()}
    with AtomicWrite(folder / WEIGHTS_FILE) as partial:
        save_file(weights, partial, metadata={"format": "pt"})
        partial.chmod(0o644)  # safetensors writes for the owner alone


def write_description(folder: Path, config: ActorConfig, stats: NormStats, tokenizer: Tokenizer) -> None:
    """All of a weights folder but the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    name = Path(config.tokenizer).name
    config = replace(config, tokenizer=name)
    (folder / CONFIG_FILE).write_text(json.dumps(to_dict(config), indent=1) + "\n")
    save_stats(folder / STATS_FILE, stats)
    save_tokenizer(tokenizer, folder / name)


def load_actor(folder: str | Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Actor:
    """Read a weights folder. With bfloat16, what openpi keeps in float32 stays so (`actor.engine.precision`).

    Raises WeightsError if a file is missing, truncated or does not fit.
    """
    folder = Path(folder)
    for name in (CONFIG_FILE, WEIGHTS_FILE, STATS_FILE):
        if not (folder / name).is_file():
            raise WeightsError(
                f"no actor in {folder}: {name} is missing. Train one with `predimem train actor`, or check the path"
            )
    config = read_config(folder)
    try:
        stats = load_stats(folder / STATS_FILE)
        stats.check(config.state_dim, config.action_dim, folder / STATS_FILE)
        tokenizer = load_tokenizer(tokenizer_path(folder, config))
    except ValueError as error:
        raise WeightsError(f"{error}; copy the whole folder of the actor, or train it again") from error
    with torch.device(device):
        model = set_precision(Pi05(config.model), dtype)
    load_into(model, from_openpi(read_safetensors(folder / WEIGHTS_FILE)), folder / WEIGHTS_FILE)
    return Actor(config, model.eval(), stats, tokenizer)


def read_config(folder: str | Path) -> ActorConfig:
    """Raises WeightsError for a config that is missing, is no JSON, or says what no actor can be."""
    path = Path(folder) / CONFIG_FILE
    try:
        return from_dict(ActorConfig, json.loads(path.read_text()), where=str(path))
    except FileNotFoundError:
        raise WeightsError(f"no actor in {folder}: {CONFIG_FILE} is missing") from None
    except json.JSONDecodeError as error:
        raise WeightsError(f"{path} is not valid JSON: {error}") from error
    except ValueError as error:
        raise WeightsError(f"{error}; copy the whole folder of the actor, or train it again") from error


def tokenizer_path(folder: str | Path, config: ActorConfig) -> Path:
    """A tokenizer.json lies in the folder; a sentencepiece model there or else where the config says."""
    path = Path(config.tokenizer)
    inside = Path(folder) / path.name
    return inside if path.suffix == ".json" or inside.is_file() else path


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
