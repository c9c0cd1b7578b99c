"""`predimem train planner`: from a folder of episodes to an exported S2, in stages that resume.

    vision   pretrain the tiny tower on frames (skipped for a pretrained base)
    base     tokenizer, config and initial weights, as a Hugging Face folder
    data     the SFT JSONL
    features the tower's features of its images (with `feature_table`)
    sft      `swift sft` with the project's plug-in
    export   the planner without its head, and `predimem.json`; one that was never trained is stored as its seed

A stage whose result exists is skipped, so that the same command goes on after Ctrl-C. The 8B model goes through the
same stages; by its config only the first two do something else.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from planner.checkpoint import PlannerSpec
from planner.continuing import claim_features, extended_tokenizer, take_weights
from planner.dataset import DatasetConfig, split_episodes, training_episodes
from planner.instructions import write_instructions
from planner.model import ObjectiveConfig, PrediMemForConditionalGeneration
from planner.prompt import PromptConfig, check_agreement, follow_memory
from planner.sft_run import libraries_write_to, run_swift
from planner.swift_command import SftConfig, last_checkpoint, swift_command, swift_environment
from planner.tiny.base import BaseConfig, link_pretrained_base, make_tiny_base, tiny_hf_config, tiny_processor
from planner.tiny.vision import VisionConfig, pretrain_tower, sample_frames
from planner.tiny.vision_readout import sample_steps
from planner.tiny.vision_scenes import Scenes, scenes_of
from planner.training_data import write_training_data
from predimem.core.config import ConfigError, in_todays_words, load_config, to_dict
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite
from predimem.core.weight_files import INSTRUCTIONS_FILE

LOG = "train.log"  # of ms-swift and its libraries


@dataclass(frozen=True)
class TrainConfig:
    """A whole training. The defaults are the paper's; the recipes are in `configs/planner/`.

    episodes: a folder of episodes, or several.
    out: the folder for everything that the training makes.
    seed: the seed of the data and of the weights that are drawn.
    prompt: how the memory is put into words and images.
    memory: which memory the planner has.
    predictive_weight, answer_weight, cache_features: see `ObjectiveConfig`; its other fields follow from the prompt and
        the tokenizer.
    feature_table: run the tower once over every image of the training set, and keep its features in `vision.directory`,
        with the images, for all trainings that share the tower. The tower is then exported as a file of its own.
    base: the checkpoint that training starts from.
    vision: the pretraining of a tiny tower; null leaves the tower as it is in the base.
    dataset: which samples are drawn from the episodes.
    sft: how ms-swift trains.
    max_new_tokens: the longest answer that is decoded.
    export_dtype: the number format of the exported weights.
    continue_from: the folder of an exported planner of the same size. A tiny base begins with its weights, those of the
        tower included: the tower is then not trained, and `vision.directory` holds features alone.
    """

    episodes: str | tuple[str, ...] = "runs/data/mikasa"
    out: str = "runs/train/planner"
    seed: int = 0
    prompt: PromptConfig = field(default_factory=PromptConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    predictive_weight: float = 0.1
    answer_weight: float = 1.0
    cache_features: bool = False
    feature_table: bool = False
    base: BaseConfig = field(default_factory=BaseConfig)
    vision: VisionConfig | None = None
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    max_new_tokens: int = 64
    export_dtype: str = "float16"
    continue_from: str | None = None

    complete_data = staticmethod(follow_memory)

    def __post_init__(self) -> None:
        check_agreement(self.prompt, self.memory)
        if self.base.pretrained is not None and self.vision is not None:
            raise ValueError("vision pretraining is for a tiny base: set vision: null for a pretrained one")
        if self.base.pretrained is not None and self.continue_from is not None:
            raise ValueError("base.pretrained and continue_from both say where to start from: give one of them")
        if self.feature_table and self.vision is None:
            raise ValueError("feature_table needs a tower of our own, and the folder that it lies in: set vision")
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
    episodes that cannot be used, and TrainingFailed if ms-swift fails.
    """
    config = load_config(TrainConfig, config_path)
    changes = {"episodes": episodes, "out": out, "seed": seed}
    config = replace(config, **{name: value for name, value in changes.items() if value is not None})
    run = _Run(config)
    if dry_run:
        variables = [f"{name}={value}" for name, value in run.environment().items()]
        print(shlex.join(["env", *variables, *run.swift_command()]))
        return run.exported
    run.set_threads()
    run.claim()
    with libraries_write_to(run.log):
        run.base()
        if config.sft.epochs > 0:
            run.data()
            run.features()
            run.sft()
        run.export()
    return run.exported


class _Run:
    def __init__(self, config: TrainConfig):
        self.config = config
        self.out = Path(config.out)
        self.exported = self.out / "export"
        self.log = self.out / LOG
        self._episodes: list[Episode] | None = None

    def swift_command(self) -> list[str]:
        out = self.out
        data = out / "data" / "train.jsonl"
        return swift_command(self.config.sft, out / "base", data, out / "sft", self.config.seed)

    def set_threads(self) -> None:
        """On a CPU all stages keep to `sft.threads`, whatever OMP_NUM_THREADS says: on busy cores more of them spin."""
        import torch

        if self.config.sft.gpus == 0:
            torch.set_num_threads(max(1, self.config.sft.threads))

    def claim(self) -> None:
        """Note the config in `out`, or check that it is the one noted there."""
        path, config = self.out / "config.json", to_dict(self.config)
        text = json.dumps(config, indent=1, sort_keys=True)
        if path.is_file():
            if in_todays_words(TrainConfig, json.loads(path.read_text())) != json.loads(text):
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
        with AtomicWrite(folder) as partial:
            partial.mkdir()
            if config.base.pretrained is not None:
                link_pretrained_base(partial, config.base.pretrained, config.objective)
            else:
                before, vision = None, None
                if config.continue_from is None:
                    vision = self._vision()
                else:
                    before = extended_tokenizer(Path(config.continue_from), config.base.tokenizer, config.prompt)
                make_tiny_base(partial, config.base, config.prompt, config.objective, vision, config.seed, before)
            if config.continue_from is not None:
                tower, new = take_weights(partial, Path(config.continue_from))
                if new:
                    print(f"{len(new)} tokens are new to {config.continue_from}, and begin anew: {new[:5]}")
                if config.vision is not None:
                    claim_features(Path(config.vision.directory), tower)

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
        scenes = None
        labels, frames, held_out = None, np.zeros((0, 0, 0, 3), np.uint8), np.zeros((0, 0, 0, 3), np.uint8)
        if not (folder / "vision.safetensors").is_file():
            training, validation = split_episodes(self.episodes, config.dataset.validation_fraction)
            rng = np.random.default_rng(config.vision.seed)
            cameras, limit = config.prompt.cameras, config.vision.max_frames
            if config.vision.step_weight > 0:
                frames, labels = sample_steps(training, cameras, limit // len(cameras), rng)
            else:
                frames = sample_frames(training, cameras, limit, rng)
            held_out = sample_frames(validation or training, cameras, 500, rng)
            scenes = self._scenes()
        return pretrain_tower(tower, processor.image_processor, frames, held_out, config.vision, folder, labels, scenes)

    def _scenes(self) -> tuple[Scenes, Scenes] | None:
        """Images of scenes for the tower: training, and held out."""
        config = self.config
        if config.vision is None or config.vision.scenes is None:
            return None
        episodes = training_episodes(config.vision.scenes)
        training, validation = split_episodes(episodes, config.dataset.validation_fraction)
        scenes = scenes_of(training, config.prompt.cameras)
        return scenes, scenes_of(validation or training, config.prompt.cameras, scenes.labels)

    @property
    def episodes(self) -> list[Episode]:
        if self._episodes is None:
            folders = self.config.episodes
            folders = [folders] if isinstance(folders, str) else folders
            self._episodes = [episode for folder in folders for episode in training_episodes(folder)]
        return self._episodes

    def data(self) -> None:
        folder, config = self.out / "data", self.config
        if (folder / "train.jsonl").is_file():
            return
        batch_size = config.sft.batch_size if config.sft.group_lengths else None
        images = self._shared("pictures")
        training, _ = split_episodes(self.episodes, config.dataset.validation_fraction)
        write_instructions(folder, (episode.instruction for episode in training))
        write_training_data(
            folder, self.episodes, config.prompt, config.memory, config.dataset, config.seed, images, batch_size
        )

    def features(self) -> None:
        folder = self._shared("features")
        if folder is None or (self.out / "sft" / "done").is_file():
            return
        from transformers import AutoProcessor

        from planner.tiny.feature_table import add_features, images_of

        model = PrediMemForConditionalGeneration.from_pretrained(self.out / "base")
        processor: Any = AutoProcessor.from_pretrained(self.out / "base")
        images = images_of(self.out / "data" / "train.jsonl")
        add_features(folder, images, model.model, processor.image_processor)

    def environment(self) -> dict[str, str]:
        return swift_environment(self.config.sft, self._shared("features"))

    def _shared(self, name: str) -> Path | None:
        """A folder that all trainings with this tower share, or None without a table of features."""
        vision = self.config.vision
        return Path(vision.directory).resolve() / name if self.config.feature_table and vision is not None else None

    def sft(self) -> None:
        done = self.out / "sft" / "done"
        if done.is_file():
            return
        environment = {**os.environ, **self.environment()}
        run_swift(self.swift_command(), environment, self.log)
        done.touch()

    def export(self) -> None:
        import torch

        from planner.export import export_planner

        if self.exported.is_dir():
            return
        config = self.config
        checkpoint, steps = self.out / "base", 0
        if config.sft.epochs > 0:
            last = last_checkpoint(self.out / "sft")
            assert last is not None, "swift sft ended without an error and without a checkpoint"
            checkpoint, steps = last, int(last.name.rsplit("-", 1)[1])
        record = {"config": to_dict(config), "steps": steps}
        fresh = config.base.pretrained is None and config.vision is None and config.continue_from is None
        drawn = config.seed if steps == 0 and fresh else None
        spec = PlannerSpec(config.prompt, config.memory, config.max_new_tokens, training=record, drawn_seed=drawn)
        dtype = getattr(torch, config.export_dtype)
        listed = self.out / "data" / INSTRUCTIONS_FILE
        instructions = json.loads(listed.read_text()) if listed.is_file() else []
        export_planner(checkpoint, self.exported, spec, dtype, config.feature_table, instructions)
