"""`predimem train planner`: from a folder of episodes to an exported S2, in stages that resume.

    vision   pretrain the tiny tower on frames (skipped for a pretrained base)
    base     tokenizer, config and initial weights, as a Hugging Face folder
    data     the SFT JSONL
    sft      `swift sft` with the project's plug-in
    export   the head dropped, `predimem.json` written

A stage whose result exists is skipped, so that after Ctrl-C the same command goes on. The 8B model
takes the same way; only the first two stages differ, by the config.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from planner.base import BaseConfig, link_pretrained_base, make_tiny_base, tiny_hf_config, tiny_processor
from planner.checkpoint import PlannerSpec
from planner.dataset import DatasetConfig, split_episodes, write_training_data
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.prompt import PromptConfig
from planner.swift_command import SftConfig, last_checkpoint, swift_command, swift_environment
from planner.vision import VisionConfig, pretrain_tower, sample_frames
from predimem.config import ConfigError, load_config, to_dict
from predimem.episodes import Episode, load_episodes


@dataclass(frozen=True)
class TrainConfig:
    """A whole training. The defaults are the paper's; `configs/planner/` holds the runs.

    episodes: a folder of episodes. out: where everything goes. predictive_weight, answer_weight,
    cache_features: see `ObjectiveConfig`, whose other fields follow from prompt and tokenizer.
    vision: pretraining of a tiny tower; null leaves it as the base has it. export_dtype: of the weights.
    """

    episodes: str = "runs/data/mikasa"
    out: str = "runs/train/planner"
    seed: int = 0
    prompt: PromptConfig = field(default_factory=PromptConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    predictive_weight: float = 0.1
    answer_weight: float = 1.0
    cache_features: bool = False
    base: BaseConfig = field(default_factory=BaseConfig)
    vision: VisionConfig | None = None
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    max_new_tokens: int = 64
    export_dtype: str = "float16"

    def __post_init__(self) -> None:
        PlannerSpec(self.prompt, self.memory, self.max_new_tokens)  # checks that they agree
        if self.base.pretrained is not None and self.vision is not None:
            raise ValueError("vision pretraining is for a tiny base: set vision: null for a pretrained one")
        if self.export_dtype not in ("float16", "bfloat16", "float32"):
            raise ValueError(f"export_dtype must be float16, bfloat16 or float32, got {self.export_dtype!r}")

    @property
    def objective(self) -> ObjectiveConfig:
        return ObjectiveConfig(
            cameras=len(self.prompt.cameras),
            window=self.prompt.recent_window,
            predictive_weight=self.predictive_weight,
            answer_weight=self.answer_weight,
            cache_features=self.cache_features,
        )


def train(
    config_path: str | Path,
    episodes: str | None = None,
    out: str | None = None,
    seed: int | None = None,
    dry_run: bool = False,
) -> Path:
    """Train a planner by a YAML config; the folder of the exported planner.

    With `dry_run` nothing is written and nothing trained: the `swift sft` command line is printed.
    Raises ConfigError if `out` holds a training by another config, EpisodeError or DatasetError for
    episodes that cannot be used, and subprocess.CalledProcessError if ms-swift fails.
    """
    config = load_config(TrainConfig, config_path)
    changes = {"episodes": episodes, "out": out, "seed": seed}
    config = replace(config, **{name: value for name, value in changes.items() if value is not None})
    run = _Run(config)
    if dry_run:
        variables = [f"{name}={value}" for name, value in swift_environment(config.sft).items()]
        print(shlex.join(["env", *variables, *run.swift_command()]))
        return run.exported
    run.claim()
    run.base()
    run.data()
    run.sft()
    run.export()
    return run.exported


class _Run:
    def __init__(self, config: TrainConfig):
        self.config = config
        self.out = Path(config.out)
        self.exported = self.out / "export"
        self._episodes: list[Episode] | None = None

    def swift_command(self) -> list[str]:
        out = self.out
        data = out / "data" / "train.jsonl"
        return swift_command(self.config.sft, out / "base", data, out / "sft", self.config.seed)

    def claim(self) -> None:
        """Note the config in `out`, or check that it is the one noted there."""
        path, config = self.out / "config.json", to_dict(self.config)
        text = json.dumps(config, indent=1, sort_keys=True)
        if path.is_file():
            if path.read_text() != text:
                raise ConfigError(
                    f"{self.out} holds a training by another config ({path}): choose another --out, or delete "
                    "that folder to train anew"
                )
            return
        self.out.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def base(self) -> None:
        folder, config = self.out / "base", self.config
        if folder.is_dir():
            return
        partial = folder.with_name("base.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        if config.base.pretrained is not None:
            link_pretrained_base(partial, config.base.pretrained, config.objective)
        else:
            vision = self._vision()
            make_tiny_base(partial, config.base, config.prompt, config.objective, vision, config.seed)
        partial.rename(folder)

    def _vision(self) -> dict[str, Any] | None:
        import numpy as np
        import torch

        config = self.config
        if config.vision is None:
            return None
        processor = tiny_processor(config.base, config.prompt)
        torch.manual_seed(config.vision.seed)
        hf_config = tiny_hf_config(config.base.tiny, processor.tokenizer, config.objective)
        tower: Any = PrediMemForConditionalGeneration(hf_config).visual
        folder = Path(config.vision.directory)
        frames = held_out = np.zeros((0, 0, 0, 3), np.uint8)
        if not (folder / "vision.safetensors").is_file():
            torch.set_num_threads(max(1, config.sft.threads))
            training, validation = split_episodes(self.episodes, config.dataset.validation_fraction)
            rng = np.random.default_rng(config.vision.seed)
            frames = sample_frames(training, config.prompt.cameras, config.vision.max_frames, rng)
            held_out = sample_frames(validation or training, config.prompt.cameras, 500, rng)
        return pretrain_tower(tower, processor.image_processor, frames, held_out, config.vision, folder)

    @property
    def episodes(self) -> list[Episode]:
        if self._episodes is None:
            self._episodes = load_episodes(self.config.episodes)
        return self._episodes

    def data(self) -> None:
        folder, config = self.out / "data", self.config
        if (folder / "train.jsonl").is_file():
            return
        write_training_data(folder, self.episodes, config.prompt, config.memory, config.dataset, config.seed)

    def sft(self) -> None:
        done = self.out / "sft" / "done"
        if done.is_file():
            return
        environment = {**os.environ, **swift_environment(self.config.sft)}
        subprocess.run(self.swift_command(), env=environment, check=True)
        done.touch()

    def export(self) -> None:
        import torch

        from planner.export import export_planner

        if self.exported.is_dir():
            return
        checkpoint = last_checkpoint(self.out / "sft")
        assert checkpoint is not None, "swift sft ended without an error and without a checkpoint"
        config = self.config
        record = {"config": to_dict(config), "steps": int(checkpoint.name.rsplit("-", 1)[1])}
        spec = PlannerSpec(config.prompt, config.memory, config.max_new_tokens, training=record)
        export_planner(checkpoint, self.exported, spec, getattr(torch, config.export_dtype))
