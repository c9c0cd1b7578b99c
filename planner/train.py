"""`predimem train planner`: from a folder of episodes to an exported S2, in stages that resume.

    vision   pretrain the tiny tower on frames (skipped for a pretrained base)
    base     tokenizer, config and initial weights, as a Hugging Face folder
    data     the SFT JSONL, and that of the validation
    lengths  how long their samples are; too long ones are refused
    features the tower's features of their images (with `feature_table`)
    sft      `swift sft` with the project's plug-in
    export   the planner without its head, and `predimem.json`; one that was never trained is stored as its seed

A stage whose result exists is skipped, so that the same command goes on after Ctrl-C. The 8B model goes through the
same stages; by its config only the first two do something else.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.checkpoint import PlannerSpec
from planner.continuing import claim_features, extended_tokenizer, take_tower, take_weights
from planner.dataset import told_instructions, training_episodes
from planner.instructions import write_instructions
from planner.model import PrediMemForConditionalGeneration
from planner.sample_length import FILE_NAME as LENGTHS
from planner.sample_length import check_lengths
from planner.sft_run import libraries_write_to, run_swift
from planner.split import split_episodes
from planner.swift_command import Node, last_checkpoint, swift_command, swift_environment
from planner.tiny.base import link_pretrained_base, make_tiny_base, tiny_hf_config, tiny_processor
from planner.tiny.vision import pretrain_tower
from planner.tiny.vision_readout import sample_steps
from planner.tiny.vision_scenes import Scenes, scenes_of
from planner.tiny.vision_targets import sample_frames
from planner.train_config import TrainConfig
from planner.training_data import write_training_data, write_validation_data
from predimem.core.config import ConfigError, in_todays_words, load_config, to_dict
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite, one_at_a_time
from predimem.core.progress import stage
from predimem.core.weight_files import INSTRUCTIONS_FILE

LOG = "train.log"  # of ms-swift and its libraries


def train(
    config_path: str | Path,
    episodes: str | None = None,
    out: str | None = None,
    seed: int | None = None,
    dry_run: bool = False,
    node: Node | None = None,
) -> Path:
    """Train a planner by a YAML config; the folder of the exported planner.

    node: with `sft.nodes`, which one this is. They share the output folder; all but the first wait for its data, and
    leave the export to it.

    With `dry_run` nothing is written and nothing trained: the `swift sft` command line is printed.
    Raises ConfigError if `out` holds a training by another config, EpisodeError or DatasetError for
    episodes that cannot be used, and TrainingFailed if ms-swift fails.
    """
    config = load_config(TrainConfig, config_path)
    changes = {"episodes": episodes, "out": out, "seed": seed}
    config = replace(config, **{name: value for name, value in changes.items() if value is not None})
    run = _Run(config, node)
    if dry_run:
        variables = [f"{name}={value}" for name, value in run.environment().items()]
        print(shlex.join(["env", *variables, *run.swift_command()]))
        return run.exported
    run.set_threads()
    run.claim()
    if node is not None and node.rank > 0:
        run.follow()
        return run.exported
    with libraries_write_to(run.log):
        with run.alone_with_tower():
            run.base()
        if config.sft.epochs > 0:
            run.data()
            run.lengths()
            with run.alone_with_tower():
                run.features()
            run.sft()
        run.export()
    return run.exported


class _Run:
    def __init__(self, config: TrainConfig, node: Node | None = None):
        self.config, self.node = config, node
        self.out = Path(config.out)
        self.exported = self.out / "export"
        self.log = self.out / (LOG if node is None or node.rank == 0 else f"train-node{node.rank}.log")
        self._episodes: list[Episode] | None = None

    def swift_command(self) -> list[str]:
        out, jsonls = self.out, self._jsonls()
        validation = jsonls[1] if len(jsonls) > 1 else None
        return swift_command(self.config.sft, out / "base", jsonls[0], out / "sft", self.config.seed, validation)

    def _jsonls(self) -> list[Path]:
        """The training's samples, and those of the validation where there is one."""
        folder = self.out / "data"
        return [folder / "train.jsonl", *([folder / "validation" / "train.jsonl"] * (self.config.sft.eval_samples > 0))]

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

    def alone_with_tower(self) -> AbstractContextManager[None]:
        """Trainings side by side share a tower and its features: one makes them, the others wait."""
        vision = self.config.vision
        return nullcontext() if vision is None else one_at_a_time(vision.directory)

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
        if config.vision.from_planner is not None:
            taken = take_tower(tower, Path(config.vision.from_planner))
            claim_features(folder, taken)
            return taken
        scenes = None
        labels, frames, held_out = None, np.zeros((0, 0, 0, 3), np.uint8), np.zeros((0, 0, 0, 3), np.uint8)
        if not (folder / "vision.safetensors").is_file():
            training, validation = self._split()
            rng = np.random.default_rng(config.vision.seed)
            cameras, crop, limit = config.prompt.cameras, config.prompt.crop, config.vision.max_frames
            if config.vision.step_weight > 0:
                frames, labels = sample_steps(training, cameras, limit // len(cameras), rng, crop)
            else:
                frames = sample_frames(training, cameras, limit, rng, crop)
            held_out = sample_frames(validation or training, cameras, 500, rng, crop)
            scenes = self._scenes()

        def benchmarks() -> set[str]:
            return {episode.benchmark for episode in self.episodes}

        return pretrain_tower(
            tower, processor.image_processor, frames, held_out, config.vision, folder, labels, scenes, benchmarks
        )

    def _scenes(self) -> tuple[Scenes, Scenes] | None:
        """Images of scenes for the tower: training, and held out."""
        config = self.config
        if config.vision is None or config.vision.scenes is None:
            return None
        episodes = training_episodes(config.vision.scenes)
        training, validation = split_episodes(episodes, config.dataset.validation_fraction)
        cameras, crop = config.prompt.cameras, config.prompt.crop
        scenes = scenes_of(training, cameras, crop=crop)
        return scenes, scenes_of(validation or training, cameras, scenes.labels, crop)

    @property
    def episodes(self) -> list[Episode]:
        if self._episodes is None:
            folders = self.config.episodes
            folders = [folders] if isinstance(folders, str) else folders
            self._episodes = [episode for folder in folders for episode in training_episodes(folder)]
        return self._episodes

    def _split(self) -> tuple[list[Episode], list[Episode]]:
        dataset = self.config.dataset
        return split_episodes(self.episodes, dataset.validation_fraction, dataset.training_share)

    def data(self) -> None:
        folder, config = self.out / "data", self.config
        batch_size = config.sft.batch_size if config.sft.group_lengths else None
        images = self._shared("pictures")
        about = (config.prompt, config.memory, config.dataset, config.seed)
        if not (folder / "train.jsonl").is_file():
            training, _ = self._split()
            write_instructions(folder, told_instructions(training, config.dataset))
            write_training_data(folder, self.episodes, *about, images, batch_size)
        for jsonl in self._jsonls():
            if not jsonl.is_file():
                write_validation_data(jsonl.parent, self.episodes, *about, config.sft.eval_samples, images)

    def lengths(self) -> None:
        for jsonl in self._jsonls():
            if not jsonl.with_name(LENGTHS).is_file():
                check_lengths(jsonl, self.out / "base", self.config.prompt, self.config.sft.max_length)

    def features(self) -> None:
        folder = self._features
        if folder is None or (self.out / "sft" / "done").is_file():
            return
        import torch
        from transformers import AutoProcessor

        from planner.feature_shards import write_shards
        from planner.tiny.feature_table import add_features, images_of

        processor: Any = AutoProcessor.from_pretrained(self.out / "base")
        images = [image for jsonl in self._jsonls() for image in images_of(jsonl)]
        if self.config.vision is not None:
            model = PrediMemForConditionalGeneration.from_pretrained(self.out / "base")
            add_features(folder, images, model.model, processor.image_processor)
            return
        on_gpu = self.config.sft.gpus > 0 and torch.cuda.is_available()
        dtype = getattr(torch, self.config.sft.dtype)
        model = PrediMemForConditionalGeneration.from_pretrained(self.out / "base", dtype=dtype)
        model.model.to("cuda" if on_gpu else "cpu")  # type: ignore[arg-type]
        write_shards(folder, images, model.model, processor.image_processor, self.config.prompt)

    def follow(self) -> None:
        """What a node does that is not the first: wait for the data on the shared disk, and train."""
        done = self.out / "data" / "ready"
        with stage("waiting for node 0, which makes the data"):
            while not done.is_file():
                time.sleep(2.0)
        run_swift(self.swift_command(), {**os.environ, **self.environment()}, self.log)

    def environment(self) -> dict[str, str]:
        return swift_environment(self.config.sft, self._features, self.node)

    @property
    def _features(self) -> Path | None:
        """The folder of the features of images, or None without `feature_table`."""
        own = self.config.feature_table and self.config.vision is None
        return (self.out / "features").resolve() if own else self._shared("features")

    def _shared(self, name: str) -> Path | None:
        """A folder that all trainings with this tower share, or None without a table of features."""
        vision = self.config.vision
        return Path(vision.directory).resolve() / name if self.config.feature_table and vision is not None else None

    def sft(self) -> None:
        done = self.out / "sft" / "done"
        if done.is_file():
            return
        environment = {**os.environ, **self.environment()}
        (self.out / "data" / "ready").touch()
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
        shard = config.feature_table and config.vision is not None
        export_planner(checkpoint, self.exported, spec, dtype, shard, instructions, self.out / "base")
