"""Self-supervised pretraining of a tiny vision tower, from pixels alone. Afterwards the tower is frozen.

A pretrained Qwen3-VL brings a tower that sees colours; a tiny one has to learn to see them first. Every merged token
predicts a thumbnail of its own cell of the image, and which palette colours are present there. The palette covers the
frames' colours, rare ones as well, so that an object of thirty pixels counts as much as the table. This part needs no
labels and no knowledge of the task; two training-only aids, which are off by default, do (see `VisionConfig`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

from planner.tiny.vision_config import VisionConfig
from planner.tiny.vision_features import cell_grid, levels, linear_probe, unit_scale
from planner.tiny.vision_readout import StepLabels, StepReadout
from planner.tiny.vision_scenes import SceneLabels, SceneReadout, Scenes
from planner.tiny.vision_targets import CellTargets, fit_palette
from planner.tiny.vision_training import CHECKPOINT, CellReadout, TowerTrainer, embed_patches
from predimem.core.files import AtomicWrite, write_json

WEIGHTS, REPORT = "vision.safetensors", "vision.json"
_LATER = {  # fields older reports lack
    **{"step_weight": 0.0, "scenes": None, "scene_share": 0.5, "scene_weight": 1.0},
    **{"cell_weight": 4.0, "from_planner": None, "spot_weight": 0.0, "whiten": False},
}


def pretrain_tower(
    tower: Qwen3VLVisionModel,
    image_processor: Any,
    frames: np.ndarray,
    held_out: np.ndarray,
    config: VisionConfig,
    folder: Path,
    labels: StepLabels | None = None,
    scenes: tuple[Scenes, Scenes] | None = None,
    benchmarks: Callable[[], Collection[str]] = tuple,
) -> dict[str, Tensor]:
    """Train `tower` in place on frames uint8 [N, H, W, 3] and return its state dict.

    The result is kept in `folder`; if it is there already, it is loaded instead. Interrupted training
    goes on from its last checkpoint. labels: of the frames, for `step_weight`. scenes: for training, and held
    out. benchmarks(): whose images the planner will see. The report (`vision.json`) holds figures on the `held_out`
    frames and scenes. Raises ValueError if `folder` holds a tower of another config or size, or of other benchmarks.
    """
    if (folder / WEIGHTS).is_file():
        return _load_tower(tower, config, folder, benchmarks)
    if config.step_weight > 0 and labels is None:
        raise ValueError("step_weight needs the labels of the frames (`planner.tiny.vision_readout.sample_steps`)")
    if config.scenes is not None and scenes is None:
        raise ValueError("vision.scenes needs images of scenes (`planner.tiny.vision_scenes.scenes_of`)")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(config.seed)
    torch.manual_seed(config.seed)
    palette = fit_palette(frames[rng.permutation(len(frames))[:400]], config.palette_size)
    vision: Any = tower.config
    targets = CellTargets(palette, vision.patch_size * vision.spatial_merge_size, config.present_pixels)
    readouts = nn.ModuleList(
        CellReadout(vision.out_hidden_size, len(palette), config.spot_weight) for _ in range(levels(vision))
    )
    if labels is not None:
        features = labels.cameras * levels(vision) * math.prod(cell_grid(vision, frames)) * vision.out_hidden_size
        readouts.append(StepReadout(features, labels))
    if scenes is not None:
        readouts.append(scene_readout(vision, frames, scenes[0].labels))
    tower.requires_grad_(True).train()
    embed: Any = tower.patch_embed
    embed.forward = partial(embed_patches, embed.proj)
    trainer = TowerTrainer(tower, readouts, image_processor, targets, config, folder, labels, scenes)
    seconds = trainer.run(frames)
    del embed.forward
    tower.requires_grad_(False).eval()
    shown = trainer.scene_report() if scenes is not None else None
    sample = frames[:: max(1, len(frames) // 1500)] if config.whiten else held_out[:64]
    unit_scale(tower, image_processor, sample, config.whiten)
    state = {name: tensor.detach().clone() for name, tensor in tower.state_dict().items()}
    report = linear_probe(tower, image_processor, targets, frames[:1500], held_out[:500])
    report |= {"config": asdict(config), "seconds": round(seconds, 1), "palette_rgb": palette.round().tolist()}
    report["benchmarks"] = sorted(benchmarks())
    if shown is not None:
        report["scenes"] = shown
    write_json(folder / REPORT, report, indent=1)
    with AtomicWrite(folder / WEIGHTS) as whole:
        save_file(state, whole)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return state


def _load_tower(
    tower: Qwen3VLVisionModel, config: VisionConfig, folder: Path, benchmarks: Callable[[], Collection[str]]
) -> dict[str, Tensor]:
    mend = f"choose another vision.directory, or delete {folder} to train the tower anew"
    if not (folder / REPORT).is_file():
        raise ValueError(f"{folder} holds features of a planner's tower (continue_from, vision.from_planner): {mend}")
    report = json.loads((folder / REPORT).read_text())
    known = _LATER | report["config"] | {"directory": config.directory}
    if known != asdict(config):
        raise ValueError(f"{folder} holds a vision tower trained with another config: {mend}")
    state = load_file(folder / WEIGHTS)
    try:
        tower.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"{folder} holds a vision tower of another size: {mend}") from error
    seen = report.get("benchmarks")  # none in reports of earlier versions
    if seen and (unseen := sorted(set(benchmarks()) - set(seen))):
        raise ValueError(
            f"{folder} holds a tower trained on images of {', '.join(seen)}, not {', '.join(unseen)}: {mend}"
        )
    return state


def scene_readout(vision: Any, frames: np.ndarray, labels: SceneLabels) -> SceneReadout:
    """A fresh one. vision: the tower's config. frames: [N, H, W, 3]."""
    return SceneReadout(vision.out_hidden_size, levels(vision), cell_grid(vision, frames), labels)
