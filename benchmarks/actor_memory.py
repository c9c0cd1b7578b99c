"""Checks the memory that `predimem train actor --plan` computes, on models that a CPU can train.

    python benchmarks/actor_memory.py

For each model a process of its own takes a few steps, as the training does, and says by how much its resident memory
grew at the peak since before the model was made. It has trained a far smaller model before, so that the code of PyTorch
and PEFT, which is loaded when it is first used, does not count. The C library is told to give every large block back to
the system when it is freed: else its heap keeps holes, which is memory that the process has and does not use.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from actor.training.config import ActorTrainConfig, ComputeConfig, LoraConfig, OptimiserConfig
from actor.training.plan import activation_memory, memory_needed, take_step
from predimem.core.config import from_dict

SIZES = {"depth": 4, "num_heads": 8, "num_kv_heads": 1, "head_dim": 64}
MODEL = {
    "vision": "siglip",
    "siglip": {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8},
    "paligemma": {"width": 768, "mlp_dim": 3072, **SIZES},
    "action_expert": {"width": 384, "mlp_dim": 1536, **SIZES},
    "vocab_size": 8192,
    "max_token_len": 64,
}
SMALL = MODEL | {
    "siglip": {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1},
    "paligemma": {"width": 64, "mlp_dim": 64, **SIZES},
    "action_expert": {"width": 64, "mlp_dim": 64, **SIZES},
    "vocab_size": 384,
}
CASES = {
    "full": {},
    "full, gradient checkpointing": {"compute": ComputeConfig(gradient_checkpointing=True)},
    "full, with an average": {"optimiser": OptimiserConfig(ema_decay=0.99)},
    "LoRA 16/32": {"lora": LoraConfig(16, expert_rank=32)},
}
FRAMES, MIB = 2, 2**20
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}  # mallopt(3)


def config_of(case: str, sizes: dict[str, Any] = MODEL) -> ActorTrainConfig:
    recipe = {
        "actor": {"model": sizes},
        "sampling": {"frames_per_batch": FRAMES, "prompts_per_frame": 1},
        "auxiliary": {"pointing": 0.0, "position": 0.0},
        "flow_samples": 1,
        "optimiser": {"ema_decay": 0.0},
    }
    return dataclasses.replace(from_dict(ActorTrainConfig, recipe), **CASES[case])


def compare(case: str) -> tuple[int, int]:
    """Bytes, computed and measured."""
    config = config_of(case)
    computed = memory_needed(config, 1, activation_memory(config, FRAMES)).total
    command = [sys.executable, __file__, "--measure", case]
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | GIVE_BACK)
    return computed, json.loads(output.stdout)


def measure(case: str) -> None:
    """Prints by how many bytes the peak of this process grew."""
    import torch

    torch.set_num_threads(1)
    take_step(config_of(case, SMALL), 1, 1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: proc(5)
    before = status("VmRSS")
    take_step(config_of(case), FRAMES, 2)
    print(json.dumps(status("VmHWM") - before))


def status(name: str) -> int:
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    case = parser.parse_args().measure
    if case:
        measure(case)
        return
    print("| training | computed, MiB | measured, MiB | ratio |\n| --- | ---: | ---: | ---: |")
    for case in CASES:
        computed, measured = compare(case)
        print(f"| {case} | {computed / MIB:,.0f} | {measured / MIB:,.0f} | {measured / computed:.2f} |", flush=True)


if __name__ == "__main__":
    main()
