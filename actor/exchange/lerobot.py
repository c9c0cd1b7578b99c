"""LeRobot's `pi05` checkpoints: a `config.json` that describes the robot, weights with the prefix `model.`, processors.

The statistics are in the safetensors file of the normaliser, a step of `policy_preprocessor.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from actor.exchange.checkpoint import Checkpoint, read_json
from actor.exchange.openpi import with_heads
from actor.exchange.sizes import SIGLIP_HEADS
from actor.exchange.tensors import FILE, Stored, stored_tensors, write_tensors
from actor.names import EMBEDDING, TIED_EMBEDDING
from actor.normalize import FIELDS, NormStats, Quantiles
from actor.weights import ActorConfig, WeightsError, read_safetensors
from predimem.core.files import write_json

PREFIX = "model."
BEFORE, AFTER = "policy_preprocessor", "policy_postprocessor"
STATE, ACTION, IMAGES = "observation.state", "action", "observation.images."
EMPTY_CAMERA = "empty_camera_"  # LeRobot's cameras that are always masked
TOKENIZER = "google/paligemma-3b-pt-224"
# how a normaliser of that kind is said in quantiles: (low, high) of which the middle and half the width are taken
AS_QUANTILES = {
    "QUANTILES": lambda stats: (stats["q01"], stats["q99"]),
    "QUANTILE10": lambda stats: (stats["q10"], stats["q90"]),
    "MIN_MAX": lambda stats: (stats["min"], stats["max"]),
    "MEAN_STD": lambda stats: (stats["mean"] - stats["std"], stats["mean"] + stats["std"]),
}


def is_lerobot(folder: Path) -> bool:
    """Whether its config is one of LeRobot's, of whichever policy."""
    path = folder / "config.json"
    return path.is_file() and "type" in read_json(path)


def read_lerobot(folder: Path) -> Checkpoint:
    """Raises WeightsError for another policy, for options of `pi05` that our model has not, and without statistics."""
    path = folder / "config.json"
    config = read_json(path)
    if config["type"] != "pi05":
        raise WeightsError(f"{path} is of a LeRobot policy of the type {config['type']!r}; expected 'pi05'")
    for option in ("use_visual_memory", "use_proprioceptive_memory", "use_peft"):
        if config.get(option):
            raise WeightsError(f"{path} says {option}: true, which this model has not; expected a plain pi05")
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in stored_tensors(folder).items()}
    stats, source = _read_stats(folder, config)
    try:
        return Checkpoint(
            tensors,
            stats,
            source,
            config["chunk_size"],
            config.get("tokenizer_max_length", 200),
            _robot(config, folder),
            config.get("vision_heads"),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise WeightsError(f"{path} is not as LeRobot writes it: {error!r}") from error


def _robot(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    features = config["input_features"]
    cameras = [n for n, f in features.items() if f["type"] == "VISUAL" and EMPTY_CAMERA not in n]
    robot: dict[str, Any] = {
        "cameras": [name.removeprefix(IMAGES) for name in cameras],
        "state_dim": features[STATE]["shape"][0],
        "action_dim": config["output_features"][ACTION]["shape"][0],
        "num_steps": config.get("num_inference_steps", 10),
    }
    shapes = {tuple(features[name]["shape"][1:]) for name in cameras}
    if len(shapes) == 1:
        robot["camera_shape"] = list(shapes.pop())
    relative = _step(folder, BEFORE, "relative_actions_processor")
    if relative is not None and relative["config"].get("enabled"):
        robot["relative_to_state"] = _relative(relative["config"], robot["action_dim"])
    return robot


def _relative(step: dict[str, Any], action_dim: int) -> list[int | None]:
    """An action whose name contains one of the words `exclude_joints` stays absolute; without names none does."""
    names = [str(name).lower() for name in step.get("action_names") or ()]
    words = [str(word).lower() for word in step.get("exclude_joints") or () if word]
    stays = [any(word in name for word in words) for name in names] + [False] * (action_dim - len(names))
    return [None if stays[k] else k for k in range(action_dim)]


def _step(folder: Path, pipeline: str, name: str) -> dict[str, Any] | None:
    path = folder / f"{pipeline}.json"
    if not path.is_file():
        return None
    steps = read_json(path).get("steps", [])
    return next((step for step in steps if step.get("registry_name") == name), None)


def _read_stats(folder: Path, config: dict[str, Any]) -> tuple[NormStats, Path]:
    step = _step(folder, BEFORE, "normalizer_processor")
    if step is None or "state_file" not in step:
        raise WeightsError(
            f"{folder / BEFORE}.json names no file with statistics (a `normalizer_processor` with a `state_file`): "
            "without the statistics that it was trained with the checkpoint's actions mean nothing. Copy it from the "
            "checkpoint's own folder, or, for weights that were never trained on a robot, train with them as init_from"
        )
    path = folder / step["state_file"]
    if not path.is_file():
        raise WeightsError(f"{path} is missing, the statistics that {BEFORE}.json names; copy it too")
    stored = {name: tensor.double().numpy() for name, tensor in read_safetensors(path).items()}
    modes = step.get("config", {}).get("norm_map") or config.get("normalization_mapping") or {}
    state = _quantiles(stored, STATE, modes.get("STATE", "QUANTILES"), path)
    return NormStats(state, _quantiles(stored, ACTION, modes.get("ACTION", "QUANTILES"), path)), path


def _quantiles(stored: Mapping[str, np.ndarray], feature: str, mode: str, path: Path) -> Quantiles:
    stats = {name.removeprefix(f"{feature}."): v for name, v in stored.items() if name.startswith(f"{feature}.")}
    if mode not in AS_QUANTILES:
        raise WeightsError(f"{path}: {feature} is normalised by {mode}; expected one of {', '.join(AS_QUANTILES)}")
    try:
        low, high = AS_QUANTILES[mode](stats)
    except KeyError as error:
        raise WeightsError(
            f"{path} has no {error.args[0]} of {feature}, which {mode} needs; it has: "
            f"{', '.join(sorted(stored)) or 'nothing'}"
        ) from None
    return Quantiles(low, high, stats.get("mean"), stats.get("std"))


@dataclass(frozen=True)
class _Pipeline:
    """A list of processors, as LeRobot's `DataProcessorPipeline` writes it."""

    name: str
    steps: list[tuple[str, dict[str, Any]]]

    def write(self, folder: Path, stateful: str, state: dict[str, np.ndarray]) -> None:
        from safetensors.numpy import save_file

        written: list[dict[str, Any]] = []
        for number, (name, config) in enumerate(self.steps):
            step = {"registry_name": name, "config": config}
            if name == stateful:
                step["state_file"] = f"{self.name}_step_{number}_{name}.safetensors"
                save_file(state, folder / step["state_file"])
            written.append(step)
        write_json(folder / f"{self.name}.json", {"name": self.name, "steps": written}, indent=2)


def write_lerobot(folder: Path, config: ActorConfig, tensors: Mapping[str, Stored], stats: NormStats) -> None:
    """A folder that LeRobot's `PI05Policy.from_pretrained` and `make_pre_post_processors` read. Raises ValueError for a
    robot that LeRobot cannot describe."""
    relative = _named_relative(config)
    folder.mkdir(parents=True, exist_ok=True)
    found = with_heads(tensors, config)
    if TIED_EMBEDDING not in found:
        found[TIED_EMBEDDING] = found.pop(EMBEDDING)  # LeRobot copies it to the embedding, and not the other way round
    write_tensors(folder / FILE, {PREFIX + name: tensor for name, tensor in found.items()})
    described = _described(config, tensors) | ({"use_relative_actions": True, **relative} if relative else {})
    write_json(folder / "config.json", described, indent=4)
    inputs, outputs = described["input_features"], described["output_features"]
    state = {
        f"{feature}.{field}": np.asarray(value, np.float32)
        for feature, quantiles in ((STATE, stats.state), (ACTION, stats.actions))
        for field in FIELDS
        if (value := getattr(quantiles, field)) is not None
    }
    modes = described["normalization_mapping"]
    step = {"enabled": True, "exclude_joints": relative["relative_exclude_joints"]} if relative else {}
    step |= {"action_names": relative["action_feature_names"]} if relative else {}
    before = [
        ("rename_observations_processor", {"rename_map": {}}),
        ("to_batch_processor", {}),
        *([("relative_actions_processor", step)] if relative else []),
        ("normalizer_processor", {"eps": 1e-8, "features": inputs | outputs, "norm_map": modes}),
        ("pi05_prepare_state_tokenizer_processor_step", {}),
        ("tokenizer_processor", _tokenizer(config)),
        ("device_processor", {"device": "cpu", "float_dtype": None}),
    ]
    after = [
        ("unnormalizer_processor", {"eps": 1e-8, "features": outputs, "norm_map": modes}),
        *([("absolute_actions_processor", {"enabled": True})] if relative else []),
        ("device_processor", {"device": "cpu", "float_dtype": None}),
    ]
    _Pipeline(BEFORE, before).write(folder, "normalizer_processor", state)
    _Pipeline(AFTER, after).write(folder, "unnormalizer_processor", state)


def _tokenizer(config: ActorConfig) -> dict[str, Any]:
    return {
        "max_length": config.model.max_token_len,
        "task_key": "task",
        "padding_side": "right",
        "padding": "max_length",
        "truncation": True,
        "tokenizer_name": TOKENIZER,
    }


def _described(config: ActorConfig, tensors: Mapping[str, Stored]) -> dict[str, Any]:
    model, (height, width) = config.model, config.camera_shape
    keys = [name if name.startswith("observation.") else f"{IMAGES}{name}" for name in config.cameras]
    images = {key: {"type": "VISUAL", "shape": [3, height, width]} for key in keys}
    described = {
        "type": "pi05",
        "n_obs_steps": 1,
        "input_features": {**images, STATE: {"type": "STATE", "shape": [config.state_dim]}},
        "output_features": {ACTION: {"type": "ACTION", "shape": [config.action_dim]}},
        "device": "cpu",
        "dtype": "bfloat16" if any(tensor.dtype == "BF16" for tensor in tensors.values()) else "float32",
        "paligemma_variant": "gemma_2b",
        "action_expert_variant": "gemma_300m",
        "chunk_size": model.action_horizon,
        "n_action_steps": model.action_horizon,
        "max_state_dim": model.action_dim,
        "max_action_dim": model.action_dim,
        "num_inference_steps": config.num_steps,
        "image_resolution": [config.model.image_size] * 2,
        "tokenizer_max_length": model.max_token_len,
        "normalization_mapping": {"VISUAL": "IDENTITY", "STATE": "QUANTILES", "ACTION": "QUANTILES"},
    }
    if model.siglip.num_attention_heads != SIGLIP_HEADS:
        described["vision_heads"] = model.siglip.num_attention_heads
    return described


def _named_relative(config: ActorConfig) -> dict[str, Any]:
    """What LeRobot says instead of `relative_to_state`: names of actions, and words in the names of absolute ones."""
    if config.aloha_space:
        raise ValueError("aloha_space: LeRobot has no such conversion; export to openpi, whose ALOHA policies have it")
    entries = config.relative_to_state
    if not entries:
        return {}
    if wrong := [k for k, entry in enumerate(entries) if entry not in (None, k)]:
        raise ValueError(
            f"relative_to_state: in LeRobot an action is relative to the entry of the state of its own number; those "
            f"of the actions {wrong} have other ones: put the state into the order of the actions"
        )
    names = [f"joint_{k}" if entry is not None else f"absolute_{k}" for k, entry in enumerate(entries)]
    return {"relative_exclude_joints": ["absolute"], "action_feature_names": names}
