"""What a training step costs with the frozen tower in it, and with its features read from the disk.

    python -m benchmarks.feature_shards --steps 8

A small Qwen3-VL folder with random weights stands for a pretrained one. Its tower is larger in proportion than that of
the 8B model, so that the difference can be seen on a CPU: the share of the operations that it has is printed, too, and
`benchmarks.planner_training_cost` says what it is at 8B (`tower_share`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--images", type=int, default=20, help="of a sample")
    parser.add_argument("--image-px", type=int, default=256)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure(Path(folder), args.steps, args.images, args.image_px).items():
            print(f"{name}: {value:g}")


def measure(folder: Path, steps: int, images: int, image_px: int) -> dict[str, float]:
    """Seconds of a step in the median, the operations' share that the tower has, and how the losses differ."""
    import torch
    from PIL import Image
    from transformers import AutoProcessor

    from benchmarks.planner_training_cost import Model
    from benchmarks.qwen3vl_folder import make_qwen3vl_folder
    from planner.feature_shards import FeatureShards, write_shards
    from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
    from planner.prompt import PromptConfig
    from planner.tiny.base import link_pretrained_base

    hub, base = folder / "hub", folder / "base"
    make_qwen3vl_folder(hub, hidden=256, layers=6, vision_hidden=128, vision_layers=8)
    link_pretrained_base(base, str(hub), ObjectiveConfig(window=5))
    rng = np.random.default_rng(0)
    names = []
    for number in range(images):
        names.append(str(folder / f"{number}.png"))
        Image.fromarray(rng.integers(0, 256, (image_px, image_px, 3), np.uint8)).save(names[-1])
    model: Any = PrediMemForConditionalGeneration.from_pretrained(base)
    processor: Any = AutoProcessor.from_pretrained(base)
    began_s = time.perf_counter()
    write_shards(folder / "features", names, model.model, processor.image_processor, PromptConfig())
    written_s = time.perf_counter() - began_s
    table = FeatureShards(folder / "features")
    pixels = processor.image_processor(images=[Image.open(n) for n in names], do_resize=False, return_tensors="pt")
    config = model.config
    start, pad, end = config.vision_start_token_id, config.image_token_id, config.vision_end_token_id
    ids = [token for row in range(images) for token in (start, *[pad] * table.tokens(row), end)]
    ids += rng.integers(300, 500, 60).tolist()
    labels = [-100] * (len(ids) - 20) + ids[-20:]
    batch = {"input_ids": torch.tensor([ids]), "labels": torch.tensor([labels])}
    batch["mm_token_type_ids"] = (batch["input_ids"] == pad).long()
    ways = {
        "tower": {"pixel_values": pixels["pixel_values"], "image_grid_thw": pixels["image_grid_thw"]},
        "disk": {"pixel_values": torch.arange(images), "image_grid_thw": pixels["image_grid_thw"]},
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    losses = {}
    for _ in range(steps):  # in turns, so that what else the machine does falls on both
        for name, images_ in ways.items():
            model._features = table if name == "disk" else None
            began_s = time.perf_counter()
            loss = model(**batch, **images_).loss
            loss.backward()
            seconds[name].append(time.perf_counter() - began_s)
            model.zero_grad()
            losses[name] = float(loss.detach())
    sizes = Model.of(json.loads((base / "config.json").read_text()))
    tower = images * sizes.image_flops((image_px // 16) ** 2)
    text = 3 * sizes.text_flops(len(ids), len(ids))
    medians = {f"{name}_s": float(np.median(times)) for name, times in seconds.items()}
    return {
        "tokens": len(ids),
        "steps": steps,
        **medians,
        "saved": 1 - medians["disk_s"] / medians["tower_s"],
        "tower_share_of_operations": tower / (tower + text),
        "loss_difference": abs(losses["tower"] - losses["disk"]),
        "written_s": written_s,
    }


if __name__ == "__main__":
    main()
