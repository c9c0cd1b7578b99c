"""The `swift sft` command line that trains S2; the same builder for a laptop and for four H100s."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

FEATURES = "PREDIMEM_FEATURES"  # names the folder of the table of features
PLUGIN = Path(__file__).with_name("sft.py")


@dataclass(frozen=True)
class SftConfig:
    """How ms-swift trains. Fields that are not explained here are options of ms-swift or transformers.

    epochs: 0 trains nothing; the base is exported as it is.
    warmup_ratio: the share of the steps in which the learning rate rises.
    save_steps: a checkpoint is written after every so many steps; training resumes from the last one.
    deepspeed: a preset of ms-swift ("zero2", "zero3"), or null.
    gpus: 0 trains on the CPU in float32.
    threads: on the CPU, the number of threads in all stages.
    group_lengths: the samples of a batch show about equally many images; they are then trained on in the order of the
        JSONL.
    """

    learning_rate: float = 1e-5
    epochs: float = 2.0
    batch_size: int = 1
    gradient_accumulation: int = 8
    warmup_ratio: float = 0.03
    weight_decay: float = 0.1
    beta2: float = 0.95
    scheduler: str = "cosine"
    max_length: int = 8192
    save_steps: int = 200
    logging_steps: int = 10
    gradient_checkpointing: bool = True
    attention: str = "flash_attn"
    dtype: str = "bfloat16"
    deepspeed: str | None = None
    gpus: int = 4
    threads: int = 1
    dataloader_workers: int = 4
    group_lengths: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise ValueError(f"epochs must not be negative, got {self.epochs}")
        if self.group_lengths and (self.gpus > 1 or self.epochs > 1):
            raise ValueError("group_lengths is for one process and one epoch: set gpus to 0 or 1, and epochs to 1")


def swift_command(config: SftConfig, base: Path, data: Path, output: Path, seed: int) -> list[str]:
    """The argument vector of one training: full parameters, vision tower and mergers frozen."""
    options: dict[str, object] = {
        "model": base,
        "model_type": "predimem_vl",
        "template": "predimem_vl",
        "external_plugins": PLUGIN,
        "dataset": data,
        "output_dir": output,
        "add_version": False,
        "tuner_type": "full",
        "freeze_llm": False,
        "freeze_vit": True,
        "freeze_aligner": True,
        "torch_dtype": config.dtype,
        "attn_impl": config.attention,
        "num_train_epochs": config.epochs,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.scheduler,
        "warmup_ratio": config.warmup_ratio,
        "weight_decay": config.weight_decay,
        "adam_beta2": config.beta2,
        "per_device_train_batch_size": config.batch_size,
        "gradient_accumulation_steps": config.gradient_accumulation,
        "gradient_checkpointing": config.gradient_checkpointing,
        "max_length": config.max_length,
        "logging_steps": config.logging_steps,
        "save_strategy": "steps",
        "save_steps": config.save_steps,
        "save_total_limit": 2,
        "dataloader_num_workers": config.dataloader_workers,
        "dataset_num_proc": 1,
        "split_dataset_ratio": 0,
        "report_to": "none",
        "check_model": False,  # it would ask a model hub about our local folder
        "seed": seed,
        "data_seed": seed,
    }
    if config.group_lengths:
        options |= {"dataset_shuffle": False, "train_dataloader_shuffle": False}
    if config.gpus == 0:
        options["use_cpu"] = True
    if config.deepspeed is not None:
        options["deepspeed"] = config.deepspeed
    last = last_checkpoint(output)
    if last is not None:
        options["resume_from_checkpoint"] = last
    command = [str(Path(sys.executable).with_name("swift")), "sft"]
    for name, value in options.items():
        command += [f"--{name}", str(value).lower() if isinstance(value, bool) else str(value)]
    return command


def swift_environment(config: SftConfig, features: Path | None = None) -> dict[str, str]:
    """Environment variables that ms-swift and the plug-in read. features: folder of a table of features."""
    root = str(PLUGIN.parent.parent)  # so that the plug-in finds our packages without an installation
    variables = {"USE_HF": "1", "PYTHONPATH": root, "TOKENIZERS_PARALLELISM": "false"}
    if features is not None:
        variables[FEATURES] = str(features)
    if config.gpus == 0:
        threads = {name: str(config.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        return variables | threads | {"HF_HUB_OFFLINE": "1"}
    return variables | {"NPROC_PER_NODE": str(config.gpus)}


def last_checkpoint(output: Path) -> Path | None:
    """The whole checkpoint with the most steps, or None. (trainer_state.json is written last.)"""
    whole = [p for p in output.glob("checkpoint-*") if (p / "trainer_state.json").is_file()]
    return max(whole, key=lambda p: int(p.name.rsplit("-", 1)[1]), default=None)
