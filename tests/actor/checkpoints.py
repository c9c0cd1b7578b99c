"""Tiny π0.5 checkpoints with the key sets that openpi and LeRobot write, and a sentencepiece tokenizer for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from actor.gemma import GemmaConfig
from actor.names import EMBEDDING, EXPERT_HEAD, TIED_EMBEDDING, to_openpi
from actor.pi05 import Pi05, Pi05Config
from actor.siglip import SiglipConfig

GOLDEN = Path(__file__).parents[1] / "golden" / "pi05_a"
SIZES = {"depth": 2, "num_heads": 4, "num_kv_heads": 1, "head_dim": 8}
MODEL = Pi05Config(
    siglip=SiglipConfig(32, 48, 2, 16, 28, 14),
    paligemma=GemmaConfig(width=32, mlp_dim=64, **SIZES),
    action_expert=GemmaConfig(width=16, mlp_dim=32, **SIZES),
    num_cameras=3,
    vocab_size=400,
    action_dim=32,
    action_horizon=50,
)
KEEP_FLOAT32 = ("patch_embedding", "position_embedding", "norm")  # as openpi's mixed precision does
ARMS = 14
STATS_WIDTH = 32
CAMERAS = ("cam_high", "cam_left_wrist", "cam_right_wrist")
RELATIVE = (0, 1, 2, 3, 4, 5, None, 7, 8, 9, 10, 11, 12, None)  # openpi's delta mask 6, -1, 6, -1
SUBTASKS = ("pick up the cup", "hand the cup over", "open the left drawer")


def tensors(seed: int = 0) -> dict[str, Tensor]:
    """Under openpi's names, both language heads included, in bfloat16 but for what openpi keeps in float32."""
    torch.manual_seed(seed)
    made = {to_openpi(name): value for name, value in Pi05(MODEL).state_dict().items()}
    made[TIED_EMBEDDING] = made[EMBEDDING].clone()
    made[EXPERT_HEAD] = torch.randn(MODEL.vocab_size, MODEL.action_expert.width)
    return {
        name: (v if any(part in name for part in KEEP_FLOAT32) else v.bfloat16()).contiguous()
        for name, v in made.items()
    }


def statistics(width: int = STATS_WIDTH) -> dict[str, dict[str, list[float]]]:
    """As openpi computes them: beyond the robot's own dimensions there are only zeros."""
    rng = np.random.default_rng(0)
    made = {}
    for name in ("state", "actions"):
        low, high = -1 - rng.random(STATS_WIDTH), 1 + rng.random(STATS_WIDTH)
        low[ARMS:], high[ARMS:] = 0, 0
        made[name] = {"mean": (low + high) / 2, "std": (high - low) / 4, "q01": low, "q99": high}
    return {name: {field: value[:width].tolist() for field, value in stats.items()} for name, stats in made.items()}


def write_tokenizer(path: Path) -> Path:
    from sentencepiece import SentencePieceTrainer

    numbers = " ".join(map(str, range(256)))
    lines = [f"Task: {subtask}, State: {numbers};\nAction: " for subtask in SUBTASKS]
    with path.open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines * 20),
            model_writer=file,
            vocab_size=80,
            hard_vocab_limit=False,
            split_digits=True,
            bos_id=2,
            eos_id=1,
            pad_id=0,
            unk_id=3,
            minloglevel=2,
        )
    return path


def write_openpi(folder: Path, described: bool = True) -> Path:
    """described: whether there is a config.json, which openpi's converter writes and its training does not."""
    folder.mkdir(parents=True)
    save_file(tensors(), folder / "model.safetensors")
    stats = folder / "assets" / "trossen" / "norm_stats.json"
    stats.parent.mkdir(parents=True)
    stats.write_text(json.dumps({"norm_stats": statistics()}))
    if described:
        config = {"action_dim": 32, "action_horizon": 50, "paligemma_variant": "gemma_2b"}
        config |= {"action_expert_variant": "gemma_300m", "precision": "bfloat16"}
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def write_lerobot(folder: Path, modes: str = "QUANTILES") -> Path:
    """LeRobot keeps the embedding under the language head's name alone, as safetensors does with tied tensors."""
    folder.mkdir(parents=True)
    made = tensors()
    del made[EMBEDDING]
    save_file({f"model.{name}": value for name, value in made.items()}, folder / "model.safetensors")
    stats = statistics(ARMS)
    stored = {
        f"{feature}.{field}": torch.tensor(value)
        for feature, name in (("observation.state", "state"), ("action", "actions"))
        for field, value in stats[name].items()
    }
    norm_map = {"VISUAL": "IDENTITY", "STATE": modes, "ACTION": modes}
    images = {f"observation.images.{name}": {"type": "VISUAL", "shape": [3, 48, 64]} for name in CAMERAS}
    images["observation.images.empty_camera_0"] = {"type": "VISUAL", "shape": [3, 28, 28]}
    names = [f"{side}_{joint}" for side in ("left", "right") for joint in (*map(str, range(6)), "gripper")]
    config: dict[str, Any] = {
        "type": "pi05",
        "input_features": {**images, "observation.state": {"type": "STATE", "shape": [ARMS]}},
        "output_features": {"action": {"type": "ACTION", "shape": [ARMS]}},
        "chunk_size": 50,
        "n_action_steps": 50,
        "num_inference_steps": 10,
        "tokenizer_max_length": 200,
        "normalization_mapping": norm_map,
        "use_relative_actions": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    relative = {"enabled": True, "exclude_joints": ["gripper"], "action_names": names}
    file = "policy_preprocessor_step_3_normalizer_processor.safetensors"
    save_file(stored, folder / file)
    steps = [
        {"registry_name": "rename_observations_processor", "config": {"rename_map": {}}},
        {"registry_name": "to_batch_processor", "config": {}},
        {"registry_name": "relative_actions_processor", "config": relative},
        {"registry_name": "normalizer_processor", "config": {"norm_map": norm_map}, "state_file": file},
    ]
    (folder / "policy_preprocessor.json").write_text(json.dumps({"name": "policy_preprocessor", "steps": steps}))
    return folder
