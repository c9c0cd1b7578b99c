"""The training run of `configs/planner/qwen3vl_8b.yaml`, walked through on a CPU with a small model.

    python -m benchmarks.planner_walkthrough --episodes runs/data/arena --out runs/walkthrough

A Qwen3-VL folder of Qwen's vocabulary (`benchmarks.qwen3vl_folder`) stands for the download. Two processes train it for
ten steps with every option of the real run but those of `NOT_HERE`; then it is exported, evaluated on held-out
episodes, served behind HTTP, and asked through an endpoint, which compares the number of tokens. `--lora` and
`--features` walk through those variants.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks.qwen3vl_folder import make_qwen3vl_folder
from planner.train_config import TrainConfig
from predimem.core.config import load_config, read_yaml, to_dict
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode

RECIPE = "configs/planner/qwen3vl_8b.yaml"
STEPS = 10
# What of the real run cannot be had on a CPU: option -> (its value here, why).
NOT_HERE: dict[str, tuple[Any, str]] = {
    "deepspeed": (None, "DeepSpeed's ZeRO-3 needs GPUs; two processes share the work with DDP over gloo in its place"),
    "attention": ("sdpa", "flash-attn is a CUDA kernel"),
    "dtype": ("float32", "the CPU has no fast bfloat16"),
    "gpus": (0, "there are none"),
}
# What is smaller here: 10 steps of 2 processes.
SMALLER: dict[str, Any] = {
    "processes": 2, "batch_size": 1, "gradient_accumulation": 1, "epochs": 1, "dataloader_workers": 1,
    "save_steps": 5, "eval_steps": 5, "eval_samples": 4, "logging_steps": 1,
}  # fmt: skip


def walkthrough_config(
    folder: Path, episodes: str, out: Path, lora: bool = False, features: bool = False
) -> TrainConfig:
    """The real run's config with a small base, and without what needs GPUs."""
    config = load_config(TrainConfig, "configs/planner/qwen3vl_8b_lora.yaml" if lora else RECIPE)
    changes = {name: value for name, (value, _) in NOT_HERE.items()} | SMALLER
    return replace(
        config,
        episodes=episodes,
        out=str(out),
        feature_table=features,
        base=replace(config.base, pretrained=str(folder)),
        dataset=replace(config.dataset, samples=2 * STEPS, validation_fraction=0.25),
        sft=replace(config.sft, **changes),
    )


def walk(config: TrainConfig, held_out: Sequence[Episode]) -> dict[str, Any]:
    """Train, export, evaluate, serve and ask; the figures of it."""
    from planner.decoding import load_planner
    from planner.endpoint import EndpointConfig, EndpointPlanner
    from planner.evaluate import replay_planner
    from planner.swift_command import last_checkpoint
    from planner.train import train
    from predimem.serving.planner_server import PlannerServer, PlannerServerConfig

    out = Path(config.out)
    out.mkdir(parents=True, exist_ok=True)
    recipe = out.with_suffix(".yaml")
    recipe.write_text(yaml.safe_dump(to_dict(config)))
    began_s = time.perf_counter()
    exported = train(recipe)
    trained_s = time.perf_counter() - began_s
    last = last_checkpoint(out / "sft")
    assert last is not None
    state = json.loads((last / "trainer_state.json").read_text())
    planner = load_planner(exported)
    scores = replay_planner(planner, held_out, planner.spec.memory)
    server = PlannerServer(PlannerServerConfig(str(exported)))
    try:
        endpoint = EndpointPlanner(exported, EndpointConfig(server.url, timeout_s=300.0))
        served = replay_planner(endpoint, held_out[:1], planner.spec.memory)
    finally:
        server.close()
    return {
        "trained_s": round(trained_s, 1),
        "losses": [round(entry["loss"], 4) for entry in state["log_history"] if "loss" in entry],
        "validation": [entry for entry in state["log_history"] if "eval_loss" in entry],
        "lengths": json.loads((out / "data" / "lengths.json").read_text()),
        "export": sorted(path.name for path in exported.iterdir()),
        "answers": scores.answers,
        "answers_that_can_be_read": scores.answers - scores.invalid,
        "answers_through_http": served.answers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", default="runs/data/arena")
    parser.add_argument("--out", type=Path, default=Path("runs/walkthrough"))
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--features", action="store_true", help="keep the tower's features on the disk")
    args = parser.parse_args()
    from planner.split import split_episodes

    folder = args.out / "Qwen3-VL-small"
    if not folder.is_dir():
        make_qwen3vl_folder(folder)
    name = "lora" if args.lora else "full"
    config = walkthrough_config(folder, args.episodes, args.out / name, args.lora, args.features)
    _, held_out = split_episodes(load_episodes(args.episodes), config.dataset.validation_fraction)
    found = walk(config, held_out[:2])
    real = read_yaml(RECIPE)["sft"]
    for option, (value, why) in NOT_HERE.items():
        print(f"not here: {option} is {value!r} in place of {real[option]!r}: {why}")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
