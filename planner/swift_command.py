"""The `swift sft` command line that trains S2; the same builder for a laptop and for four H100s."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

METRIC = "predimem"  # what the plug-in calls `planner.answer_metrics`
# As ms-swift's preset `fsdp2`, but with whole checkpoints, which can be exported.
FSDP2 = {
    "fsdp": "full_shard auto_wrap",
    "fsdp_config": {
        "fsdp_version": 2,
        "reshard_after_forward": True,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_ram_efficient_loading": True,
        "state_dict_type": "FULL_STATE_DICT",
        "activation_checkpointing": True,
    },
}
FEATURES = "PREDIMEM_FEATURES"  # names the folder of the table of features
PLUGIN = Path(__file__).with_name("sft.py")


@dataclass(frozen=True)
class SftConfig:
    """How ms-swift trains. Fields that are not explained here are options of ms-swift or transformers.

    epochs: 0 trains nothing; the base is exported as it is.
    warmup_ratio: the share of the steps in which the learning rate rises.
    save_steps: a checkpoint is written after every so many steps; training resumes from the last one.
    deepspeed: a preset of ms-swift ("zero2", "zero3"), or null.
    gpus: of each node; 0 trains on the CPU in float32.
    threads: on the CPU, the number of threads in all stages.
    group_lengths: the samples of a batch show about equally many images; they are then trained on in the order of the
        JSONL.
    tuner_type: "full" trains all weights of the language model, "lora" adapters of rank `lora_rank`, which the export
        merges. The predictive head is trained whole in either case, the vision tower never.
    fsdp: "fsdp2" shards the weights with PyTorch's own FSDP2, in place of DeepSpeed.
    nodes: the machines that train together, each with `gpus`; each runs the same command with its own --node.
    processes: on the CPU, the number of processes (gloo), to try out what several GPUs would do.
    eval_samples: samples of the held-out episodes for validation; 0: none. Their loss, subtask accuracy and keyframe
        scores (`planner.answer_metrics`) are logged every `eval_steps`.
    report_to: "tensorboard" and "wandb"; TensorBoard's files go to `sft/runs` in the output folder.
    keep_checkpoints: the last so many stay on the disk.
    extra_args: further options of `swift sft` by their names, which replace those that are made here.
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
    tuner_type: Literal["full", "lora"] = "full"
    lora_rank: int = 64
    fsdp: Literal["fsdp2"] | None = None
    nodes: int = 1
    processes: int = 1
    eval_samples: int = 0
    eval_steps: int = 200
    report_to: tuple[str, ...] = ()
    keep_checkpoints: int = 2
    extra_args: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise ValueError(f"epochs must not be negative, got {self.epochs}")
        if self.deepspeed is not None and self.fsdp is not None:
            raise ValueError("deepspeed and fsdp both say how the weights are sharded: give one of them")
        if min(self.nodes, self.processes, self.lora_rank, self.eval_steps, self.keep_checkpoints) < 1:
            raise ValueError("nodes, processes, lora_rank, eval_steps and keep_checkpoints must be at least 1")
        if self.processes > 1 and self.gpus > 0:
            raise ValueError("processes are for a training on the CPU: on GPUs there is one for each; set gpus to 0")
        if unknown := set(self.report_to) - {"tensorboard", "wandb"}:
            raise ValueError(f"report_to: expected tensorboard and wandb, got {sorted(unknown)[0]!r}")
        if self.group_lengths and (self.gpus > 1 or self.processes > 1 or self.nodes > 1 or self.epochs > 1):
            raise ValueError("group_lengths is for one process and one epoch: set gpus to 0 or 1, and epochs to 1")


@dataclass(frozen=True)
class Node:
    """One of several machines that train together. rank: 0 makes the data and the export; master, port: of node 0."""

    rank: int
    master: str
    port: int = 29500

    @classmethod
    def read(cls, rank: int, master: str) -> Node:
        """master: HOST or HOST:PORT. Raises ValueError."""
        host, _, port = master.partition(":")
        if not host or not (port.isdigit() or not port):
            raise ValueError(f"--master: expected HOST:PORT of node 0, got {master!r}")
        return cls(rank, host, int(port or 29500))


def swift_command(
    config: SftConfig, base: Path, data: Path, output: Path, seed: int, validation: Path | None = None
) -> list[str]:
    """The argument vector of one training; vision tower and mergers are frozen.

    validation: the JSONL of held-out samples, with `eval_samples`.
    """
    options: dict[str, object] = {
        "model": base,
        "model_type": "predimem_vl",
        "template": "predimem_vl",
        "external_plugins": PLUGIN,
        "dataset": data,
        "output_dir": output,
        "add_version": False,
        "tuner_type": config.tuner_type,
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
        "save_total_limit": config.keep_checkpoints,
        "dataloader_num_workers": config.dataloader_workers,
        "dataset_num_proc": 1,
        "split_dataset_ratio": 0,
        "report_to": config.report_to or "none",
        "check_model": False,  # it would ask a model hub about our local folder
        "seed": seed,
        "data_seed": seed,
    }
    if config.group_lengths:
        options |= {"dataset_shuffle": False, "train_dataloader_shuffle": False}
    if config.tuner_type == "lora":
        # Adapters of the language model alone: ms-swift leaves out what is frozen.
        options |= {"lora_rank": config.lora_rank, "lora_alpha": 2 * config.lora_rank}
        options |= {"target_modules": "all-linear", "modules_to_save": "predictive_head"}
    if config.eval_samples and validation is not None:
        options |= {"val_dataset": validation, "eval_strategy": "steps", "eval_steps": config.eval_steps}
        options |= {"per_device_eval_batch_size": config.batch_size, "eval_metric": METRIC}
    if config.fsdp is not None:
        options["fsdp"] = json.dumps(FSDP2)
        options["gradient_checkpointing"] = False  # FSDP2 has its own, and refuses this one
    if config.gpus == 0:
        options["use_cpu"] = True
    if config.deepspeed is not None:
        options["deepspeed"] = config.deepspeed
    last = last_checkpoint(output)
    if last is not None:
        options["resume_from_checkpoint"] = last
    command = [str(Path(sys.executable).with_name("swift")), "sft"]
    for name, value in (options | config.extra_args).items():
        values = value if isinstance(value, list | tuple) else [value]
        command += [f"--{name}", *map(_word, values)]
    return command


def _word(value: object) -> str:
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def swift_environment(config: SftConfig, features: Path | None = None, node: Node | None = None) -> dict[str, str]:
    """Environment variables that ms-swift and the plug-in read.

    features: folder of a table of features. node: with several nodes, which one this is.
    """
    root = str(PLUGIN.parent.parent)  # so that the plug-in finds our packages without an installation
    variables = {"USE_HF": "1", "PYTHONPATH": root, "TOKENIZERS_PARALLELISM": "false"}
    if features is not None:
        variables[FEATURES] = str(features)
    if config.gpus == 0:
        threads = {name: str(config.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        several = {"NPROC_PER_NODE": str(config.processes)} if config.processes > 1 else {}
        return variables | threads | several | {"HF_HUB_OFFLINE": "1"} | _of_nodes(config, node)
    return variables | {"NPROC_PER_NODE": str(config.gpus)} | _of_nodes(config, node)


def _of_nodes(config: SftConfig, node: Node | None) -> dict[str, str]:
    if config.nodes == 1:
        return {}
    if node is None:
        raise ValueError(f"sft.nodes is {config.nodes}: say which one this is with --node 0 and --master HOST:PORT")
    if not 0 <= node.rank < config.nodes:
        raise ValueError(f"--node: expected 0 to {config.nodes - 1}, got {node.rank}")
    ranks = {"NNODES": str(config.nodes), "NODE_RANK": str(node.rank)}
    return ranks | {"MASTER_ADDR": node.master, "MASTER_PORT": str(node.port)}


def last_checkpoint(output: Path) -> Path | None:
    """The whole checkpoint with the most steps, or None. (trainer_state.json is written last.)"""
    whole = [p for p in output.glob("checkpoint-*") if (p / "trainer_state.json").is_file()]
    return max(whole, key=lambda p: int(p.name.rsplit("-", 1)[1]), default=None)
