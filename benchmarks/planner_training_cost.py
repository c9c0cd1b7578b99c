"""What a training of S2 costs: GPU hours, memory of each GPU, and disk, computed from its config.

    python -m benchmarks.planner_training_cost --config configs/planner/qwen3vl_8b.yaml --timesteps 15

The floating-point operations are counted, layer by layer (`tests/planner/test_training_at_size.py` compares them with
PyTorch's own count on a small model); the share of the GPUs' peak that a training reaches is an assumption. Nothing is
trained here, and no weights are needed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.sample_length import FILE_NAME
from planner.train_config import TrainConfig
from predimem.core.config import load_config

H100_FLOPS = 989e12  # bfloat16, dense
GB = 1e9
# https://huggingface.co/Qwen/Qwen3-VL-8B-Instruct, config.json
QWEN3_VL_8B: dict[str, Any] = {
    "text_config": {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False,
    },
    "vision_config": {
        "hidden_size": 1152, "intermediate_size": 4304, "depth": 27, "patch_size": 16, "temporal_patch_size": 2,
        "spatial_merge_size": 2, "out_hidden_size": 4096, "num_position_embeddings": 2304, "in_channels": 3,
        "deepstack_visual_indexes": [8, 16, 24],
    },
    "tie_word_embeddings": False,
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """The sizes of a Qwen3-VL, from its config.json."""

    text: dict[str, Any]
    vision: dict[str, Any]
    tied: bool

    @classmethod
    def of(cls, config: dict[str, Any]) -> Model:
        text = config["text_config"]
        tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))
        return cls(text, config["vision_config"], tied)

    @property
    def matrices(self) -> int:
        """Weights of the language model that every token is multiplied with, without the head."""
        t = self.text
        width, heads, size = t["hidden_size"], t["num_attention_heads"], t["head_dim"]
        attention = width * size * (2 * heads + 2 * t["num_key_value_heads"])
        return t["num_hidden_layers"] * (attention + 3 * width * t["intermediate_size"])

    @property
    def head(self) -> int:
        return self.text["hidden_size"] * self.text["vocab_size"]

    @property
    def text_parameters(self) -> int:
        t = self.text
        norms = t["num_hidden_layers"] * (2 * t["hidden_size"] + 2 * t["head_dim"]) + t["hidden_size"]
        return self.matrices + norms + self.head * (1 if self.tied else 2)

    @property
    def vision_parameters(self) -> int:
        v = self.vision
        width, merged = v["hidden_size"], v["hidden_size"] * v["spatial_merge_size"] ** 2
        block = 4 * width * width + 4 * width + 2 * width * v["intermediate_size"] + v["intermediate_size"] + width
        patches = width * (v["in_channels"] * v["temporal_patch_size"] * v["patch_size"] ** 2 + 1)
        merger = merged * merged + merged + merged * v["out_hidden_size"] + v["out_hidden_size"]
        levels = len(v["deepstack_visual_indexes"])
        norms = v["depth"] * 4 * width + 2 * width + levels * 2 * merged
        return v["depth"] * block + patches + v["num_position_embeddings"] * width + (1 + levels) * merger + norms

    def text_flops(self, tokens: int, answer_tokens: int) -> float:
        """Of one forward pass over a sample. Attention is counted in full, as the kernels are measured."""
        t = self.text
        attention = 4 * t["num_hidden_layers"] * t["num_attention_heads"] * t["head_dim"] * tokens * tokens
        return 2.0 * self.matrices * tokens + attention + 2.0 * self.head * answer_tokens

    def image_flops(self, patches: int) -> float:
        """Of the tower's forward pass over one image."""
        v = self.vision
        width, merged = v["hidden_size"], v["hidden_size"] * v["spatial_merge_size"] ** 2
        block = 4 * width * width + 2 * width * v["intermediate_size"]
        first = width * v["in_channels"] * v["temporal_patch_size"] * v["patch_size"] ** 2
        attention = 4 * v["depth"] * width * patches * patches
        mergers = (1 + len(v["deepstack_visual_indexes"])) * (merged * merged + merged * v["out_hidden_size"])
        return (
            2.0 * patches * (v["depth"] * block + first)
            + attention
            + 2.0 * mergers * patches / v["spatial_merge_size"] ** 2
        )


@dataclass(frozen=True)
class Sample:
    """An average training sample. tokens: prompt and answer; images: how many, of `patches` patches each."""

    tokens: int
    images: float
    patches: int
    answer_tokens: int = 40


@dataclass(frozen=True)
class Cost:
    """hours: on all GPUs together working at the same time. gpu_hours: of one GPU. memory_gb: of each GPU.
    tower_share: of the operations. checkpoint_gb: one checkpoint; disk_gb: all that the training keeps."""

    steps: int
    hours: float
    gpu_hours: float
    tower_share: float
    memory_gb: float
    checkpoint_gb: float
    export_gb: float
    features_gb: float
    disk_gb: float


def training_flops(config: TrainConfig, model: Model, sample: Sample) -> tuple[float, float]:
    """(language model, tower) of one sample: forward, backward and the second forward of checkpointing."""
    lora = config.sft.tuner_type == "lora"
    # The backward pass takes as much for the inputs' gradients as for the weights'; with LoRA there are hardly any of
    # the latter.
    passes = 1 + (1 if lora else 2) + config.sft.gradient_checkpointing
    tower = 0.0 if config.feature_table else sample.images * model.image_flops(sample.patches)
    return passes * model.text_flops(sample.tokens, sample.answer_tokens), tower


def cost(config: TrainConfig, model: Model, sample: Sample, utilisation: float, images: int, peak: float) -> Cost:
    """images: how many different ones the training set shows, for the disk."""
    sft = config.sft
    gpus = max(1, sft.gpus) * sft.nodes
    text, tower = training_flops(config, model, sample)
    total = config.dataset.samples * sft.epochs * (text + tower)
    hours = total / (gpus * peak * utilisation) / 3600
    merged, levels = model.vision["out_hidden_size"], len(model.vision["deepstack_visual_indexes"])
    per_image = sample.patches // model.vision["spatial_merge_size"] ** 2 * merged * (1 + levels) * 2
    features = images * per_image / GB if config.feature_table else 0.0
    everything = model.text_parameters + model.vision_parameters
    trained = model.text_parameters if sft.tuner_type == "full" else _lora_parameters(model, sft.lora_rank)
    sharded = gpus if sft.deepspeed == "zero3" or sft.fsdp else 1
    # bfloat16 weights; of what is trained also gradients (2), float32 weights (4) and Adam's two averages (8).
    state = (2 * everything + 14 * trained) / sharded
    t = model.text
    kept = t["num_hidden_layers"] if sft.gradient_checkpointing else 18 * t["num_hidden_layers"]
    activations = sft.batch_size * sample.tokens * t["hidden_size"] * 2 * (kept + 20)
    logits = sft.batch_size * sample.answer_tokens * t["vocab_size"] * (2 + 4 + 4)
    whole = 2 * everything if sft.tuner_type == "full" else 0
    checkpoint = (whole + 12 * trained + (0 if sft.tuner_type == "full" else 2 * trained)) / GB
    export = 2 * everything / GB
    return Cost(
        steps=round(config.dataset.samples * sft.epochs / (gpus * sft.batch_size * sft.gradient_accumulation)),
        hours=round(hours, 1),
        gpu_hours=round(hours * gpus, 1),
        tower_share=round(tower / (text + tower), 3),
        memory_gb=round((state + activations + logits) / GB, 1),
        checkpoint_gb=round(checkpoint, 1),
        export_gb=round(export, 1),
        features_gb=round(features, 1),
        disk_gb=round(export + features + checkpoint * (sft.keep_checkpoints + 1), 1),
    )


def _lora_parameters(model: Model, rank: int) -> int:
    t = model.text
    width, inner = t["hidden_size"], t["intermediate_size"]
    queries, shared = t["num_attention_heads"] * t["head_dim"], t["num_key_value_heads"] * t["head_dim"]
    pairs = [(width, queries), (width, shared), (width, shared), (queries, width)]
    pairs += [(width, inner), (width, inner), (inner, width)]
    return t["num_hidden_layers"] * rank * sum(a + b for a, b in pairs)


def sample_of(config: TrainConfig, model: Model, timesteps: int, image_px: int, text_tokens: int = 330) -> Sample:
    """A sample whose prompt shows so many timesteps (keyframes and window) in square images."""
    vision = model.vision
    patches = (image_px // vision["patch_size"]) ** 2
    images = timesteps * len(config.prompt.cameras)
    tokens = images * (patches // vision["spatial_merge_size"] ** 2 + 2) + timesteps * 8 + text_tokens
    return Sample(tokens, images, patches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/planner/qwen3vl_8b.yaml")
    parser.add_argument("--base", help="folder with the config.json of the base; default: that of Qwen3-VL-8B")
    parser.add_argument("--timesteps", type=int, default=15, help="keyframes and window that a prompt shows on average")
    parser.add_argument("--image-px", type=int, default=256)
    parser.add_argument("--images", type=int, default=300_000, help="different images that the samples show")
    parser.add_argument("--utilisation", type=float, default=0.35, help="of the GPU's peak; an assumption")
    parser.add_argument("--peak", type=float, default=H100_FLOPS, help="operations a second of one GPU")
    args = parser.parse_args()
    config = load_config(TrainConfig, args.config)
    data = json.loads((Path(args.base) / "config.json").read_text()) if args.base else QWEN3_VL_8B
    model = Model.of(data)
    sample = sample_of(config, model, args.timesteps, args.image_px)
    measured = Path(config.out) / "data" / FILE_NAME
    if measured.is_file():
        lengths = json.loads(measured.read_text())
        sample = Sample(round(lengths["mean"]), lengths["images"], sample.patches)
    found = cost(config, model, sample, args.utilisation, args.images, args.peak)
    print(f"{args.config}: {config.dataset.samples} samples of {sample.tokens} tokens, {sample.images:.0f} images each")
    print(
        f"parameters: language model {model.text_parameters / 1e9:.2f} G, tower {model.vision_parameters / 1e9:.2f} G"
    )
    for name, value in vars(found).items():
        print(f"{name}: {value:g}")


if __name__ == "__main__":
    main()
