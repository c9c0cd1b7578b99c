"""`predimem import actor` and `predimem export actor`: a checkpoint of openpi or LeRobot to a weights folder, and back.

No tensor is changed: they are copied byte by byte, those included that nothing uses, so that a checkpoint that was
imported and exported has the bytes that it had.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from actor.exchange.checkpoint import Checkpoint
from actor.exchange.lerobot import is_lerobot, read_lerobot, write_lerobot
from actor.exchange.openpi import read_openpi, write_openpi
from actor.exchange.sizes import SIGLIP_HEADS, model_config
from actor.exchange.tensors import FILE, stored_tensors, write_tensors
from actor.names import UNUSED, to_ours
from actor.normalize import NormStats, load_stats
from actor.pi05 import Pi05Config
from actor.tokenizer import load_tokenizer
from actor.weights import STATS_FILE, ActorConfig, WeightsError, read_config, write_description
from predimem.core.config import from_dict, to_dict
from predimem.core.files import AtomicWrite

Format = Literal["openpi", "lerobot"]
TOKENIZERS = ("paligemma_tokenizer.model", "tokenizer.model")


def import_actor(
    source: Path, out: Path, robot: Mapping[str, Any], tokenizer: Path | None = None, asset: str | None = None
) -> str:
    """Write the weights folder `out`; returns what was found, a line for each thing.

    robot: fields of `ActorConfig` (and `action_horizon`) that the checkpoint leaves open or that differ from it.
    tokenizer: PaliGemma's sentencepiece model; None: the one in `source`. asset: see `read_openpi`.
    Raises WeightsError for a checkpoint that cannot be used, and ValueError where the robot is not described.
    """
    lerobot = is_lerobot(source)
    found = read_lerobot(source) if lerobot else read_openpi(source, asset)
    config = _config(source, found, dict(robot), lerobot)
    stats = _sliced(found.stats, config, found.stats_source)
    words = _tokenizer_file(source, tokenizer)
    loaded = load_tokenizer(words)
    config = replace(config, tokenizer=f"tokenizer{words.suffix}")
    if loaded.vocab_size > config.model.vocab_size:
        raise ValueError(
            f"the tokenizer has {loaded.vocab_size} tokens and the model {config.model.vocab_size}: it is another "
            "model's tokenizer; expected PaliGemma's paligemma_tokenizer.model"
        )
    _check_free(out)
    with AtomicWrite(out) as partial:
        write_description(partial, config, stats, loaded)
        write_tensors(partial / FILE, found.tensors)
    return _report(config, found, "LeRobot" if lerobot else "openpi")


def export_actor(folder: Path, out: Path, kind: Format, asset: str = "robot") -> str:
    """Write a checkpoint of openpi or LeRobot; returns what was left unsaid, a line for each thing.

    Raises WeightsError for a folder that holds no actor, and ValueError for a model or a robot that they have not.
    """
    config, stats = read_config(folder), load_stats(folder / STATS_FILE)
    _check_exportable(config.model)
    tensors = stored_tensors(folder)
    _check_free(out)
    with AtomicWrite(out) as partial:
        if kind == "openpi":
            write_openpi(partial, config, tensors, stats, asset)
        else:
            write_lerobot(partial, config, tensors, stats)
    notes = [f"{len(tensors)} tensors, {config.state_dim} numbers of state, {config.action_dim} of action"]
    if kind == "openpi":
        notes.append(
            f"openpi's training config has to say the rest: asset_id={asset!r}, the cameras {list(config.cameras)}, "
            f"the delta actions {[k for k, entry in enumerate(config.relative_to_state) if entry is not None]}, "
            f"adapt_to_pi={config.aloha_space}"
        )
        if stats.state.mean is None or stats.actions.mean is None:
            notes.append("mean and std were not known: the middle and half the width of the quantiles stand for them")
    return "\n".join(notes)


def _check_free(out: Path) -> None:
    """Raises ValueError where there is something already, which would be replaced."""
    if out.is_dir() and any(out.iterdir()):
        raise ValueError(f"{out} holds files already: choose another --out, or move them away")


def _config(source: Path, found: Checkpoint, robot: dict[str, Any], lerobot: bool) -> ActorConfig:
    horizon = robot.pop("action_horizon", None) or found.horizon
    if horizon is None:
        raise ValueError(
            f"{source} does not say how many actions a chunk has (there is no config.json with action_horizon): say it "
            "with --horizon; openpi's configs have 50, those of DROID 15 and of LIBERO 10"
        )
    robot = dict(found.robot) | robot
    missing = [name for name in ("cameras", "state_dim", "action_dim") if name not in robot]
    if missing:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ValueError(f"{source} does not describe the robot: give {options}, or a recipe with --config")
    heads = found.siglip_heads or SIGLIP_HEADS
    cameras = len(robot["cameras"])
    model = model_config(found.tensors, horizon, found.max_token_len, cameras, source, heads)
    robot.setdefault("camera_shape", [model.image_size] * 2)
    robot |= {"model": to_dict(model), "tokenizer": TOKENIZERS[-1]}
    robot = {"openpi_exact": True, "long_prompts": "refuse"} | robot
    return from_dict(ActorConfig, json.loads(json.dumps(robot)), "LeRobot's config" if lerobot else "--config")


def _sliced(stats: NormStats, config: ActorConfig, source: Path) -> NormStats:
    """Those of the robot's own dimensions: the rest is padding."""
    for name, quantiles, dim in (
        ("state", stats.state, config.state_dim),
        ("actions", stats.actions, config.action_dim),
    ):
        if len(quantiles.q01) < dim:
            option = "--state-dim" if name == "state" else "--action-dim"
            raise WeightsError(
                f"{source} has statistics for {len(quantiles.q01)} dimensions of {name}, and the robot has {dim}: they "
                f"are another robot's; give {option} {len(quantiles.q01)}, or the checkpoint of your robot"
            )
    return NormStats(stats.state.first(config.state_dim), stats.actions.first(config.action_dim))


def _tokenizer_file(source: Path, given: Path | None) -> Path:
    if given is not None:
        return given
    found = [source / name for name in TOKENIZERS if (source / name).is_file()]
    if not found:
        raise ValueError(
            f"{source} holds no tokenizer: give the path of PaliGemma's paligemma_tokenizer.model with --tokenizer"
        )
    return found[0]


def _check_exportable(model: Pi05Config) -> None:
    wrong = {
        "model.vision": (model.vision, "siglip"),
        "model.state_dim": (model.state_dim, 0),
        "model.locate": (model.locate, False),
        "model.paligemma.num_kv_heads": (model.paligemma.num_kv_heads, 1),
    }
    for name, (got, expected) in wrong.items():
        if got != expected:
            raise ValueError(
                f"{name} is {got!r}, which openpi and LeRobot cannot run: only models with {name}: {expected!r} can be "
                "exported, such as those of configs/actor/pi05.yaml"
            )


def _report(config: ActorConfig, found: Checkpoint, tool: str) -> str:
    model = config.model
    used = {to_ours(name): tensor.shape for name, tensor in found.tensors.items() if name not in UNUSED}
    unused = [name for name in UNUSED if name in found.tensors]
    million = sum(math.prod(shape) for shape in used.values()) / 1e6
    sizes = f"{model.siglip.num_hidden_layers} + {model.paligemma.depth} layers of widths {model.siglip.hidden_size}, "
    sizes += f"{model.paligemma.width} and {model.action_expert.width}, {million:.1f} million parameters"
    relative = [k for k, entry in enumerate(config.relative_to_state) if entry is not None]
    return "\n".join(
        [
            f"{tool}: {len(found.tensors)} tensors ({', '.join(sorted({t.dtype for t in found.tensors.values()}))}), "
            f"{len(unused)} of them language heads that nothing uses",
            f"model: {sizes}, chunks of {model.action_horizon} x {model.action_dim}",
            f"robot: cameras {', '.join(config.cameras)} at {config.camera_shape[0]} x {config.camera_shape[1]}; "
            f"{config.state_dim} numbers of state, {config.action_dim} of action; relative to the state: "
            f"{', '.join(map(str, relative)) or 'none'}" + ("; ALOHA's units" if config.aloha_space else ""),
            f"statistics: {found.stats_source}",
        ]
    )
