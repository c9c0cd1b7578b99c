"""Compares our π0.5 with openpi's, on recorded inputs and outputs of their implementation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from actor.gemma import GemmaConfig
from actor.names import from_openpi
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.siglip import SiglipConfig
from actor.weights import load_into, read_safetensors
from predimem.core.config import from_dict

TOLERANCE = 1e-4


def verify(golden_dir: str | Path) -> dict[str, float]:
    """Max abs errors (float32) of the actions after 10 and 1 Euler steps and of the training loss.

    `golden_dir` holds config.json, model.safetensors (openpi's names), inputs.npz (image.<slot>,
    image_mask.<slot>, tokenized_prompt[_mask], noise, actions, time) and expected.npz
    (actions_10_steps, actions_1_step, loss per element). Raises ValueError if something is missing.
    A value that is not a number counts as an infinite error.
    """
    folder = Path(golden_dir)
    for name in ("config.json", "model.safetensors", "inputs.npz", "expected.npz"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} is no folder of golden tensors: {name} is missing")
    with np.load(folder / "inputs.npz") as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    with np.load(folder / "expected.npz") as file:
        expected = {name: torch.from_numpy(file[name]) for name in file.files}
    slots = [name.removeprefix("image.") for name in arrays if name.startswith("image.")]
    model = Pi05(_config(folder / "config.json", len(slots))).eval()
    load_into(model, from_openpi(read_safetensors(folder / "model.safetensors")), folder)
    inputs = Prompted(
        images=torch.stack([arrays[f"image.{slot}"] for slot in slots], dim=1),
        image_mask=torch.stack([arrays[f"image_mask.{slot}"] for slot in slots], dim=1),
        tokens=arrays["tokenized_prompt"],
        token_mask=arrays["tokenized_prompt_mask"],
    )
    with torch.no_grad():
        loss = model.loss(model.encode(inputs), arrays["actions"], arrays["noise"], arrays["time"])
    got = {
        "actions_10_steps": model.sample(inputs, arrays["noise"], num_steps=10),
        "actions_1_step": model.sample(inputs, arrays["noise"], num_steps=1),
        "loss": loss,
    }
    return {name: _max_error(name, value, expected) for name, value in got.items()}


def _max_error(name: str, value: Tensor, expected: dict[str, Tensor]) -> float:
    if expected[name].shape != value.shape:
        raise ValueError(
            f"expected.npz: {name} has shape {tuple(expected[name].shape)}, the model gives {tuple(value.shape)}"
        )
    error = (value - expected[name]).abs().max()
    return float(error) if torch.isfinite(error) else float("inf")


def _config(path: Path, num_cameras: int) -> Pi05Config:
    data = json.loads(path.read_text())
    return Pi05Config(
        vision="siglip",
        siglip=from_dict(SiglipConfig, data["vision"], where=f"{path}: vision"),
        paligemma=from_dict(GemmaConfig, data["paligemma"], where=f"{path}: paligemma"),
        action_expert=from_dict(GemmaConfig, data["action_expert"], where=f"{path}: action_expert"),
        num_cameras=num_cameras,
        vocab_size=data["vocab_size"],
        max_token_len=data["max_token_len"],
        action_dim=data["action_dim"],
        action_horizon=data["action_horizon"],
    )
