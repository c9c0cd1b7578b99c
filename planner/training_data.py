"""Writes S2's training data: the SFT JSONL of RoboMemArena (arXiv:2605.10921), §8, and the images that it names."""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memory_bank import MemoryConfig
from planner.crop import cropped
from planner.dataset import DatasetConfig, DatasetError, SampleMaker
from planner.growing_file import GrowingFile
from planner.image_store import ImageStore
from planner.prompt import PromptConfig, render_answer, render_prompt
from planner.replay import Sample
from planner.split import split_episodes
from predimem.core.config import to_dict
from predimem.core.episodes import Episode
from predimem.core.progress import Bar, say, stage

POOL_BATCHES = 32  # batches of equally long samples are cut from so many batches' worth of samples


def write_training_data(
    folder: Path,
    episodes: Sequence[Episode],
    prompt: PromptConfig,
    memory: MemoryConfig,
    config: DatasetConfig,
    seed: int,
    images: Path | None = None,
    batch_size: int | None = None,
) -> Path:
    """The JSONL of the episodes that are for training, as `write_jsonl` writes it, with a progress bar.

    After Ctrl-C (KeyboardInterrupt) or a crash the same call goes on, to the same files as without.

    images: see `write_jsonl`. batch_size: every so many lines are a batch of about equally long samples.
    Raises DatasetError for episodes kept for evaluation, ValueError for frames that lack a camera.
    """
    training, held_out = split_episodes(episodes, config.validation_fraction, config.training_share)
    samples = SampleMaker(training, memory, config).draw(config.samples, random.Random(seed))
    if batch_size is not None:
        samples = equally_long(samples, batch_size, random.Random(seed))
    say(f"{config.samples} samples of {len(training)} episodes go to {folder} ({len(held_out)} held out)")
    follows_from = {
        "prompt": to_dict(prompt),
        "memory": to_dict(memory),
        "dataset": to_dict(config),
        "seed": seed,
        "batch_size": batch_size,
        "images": None if images is None else str(images),
        "episodes": _digest(training),
    }
    return write_jsonl(folder, samples, prompt, config, images, follows_from)


def write_validation_data(
    folder: Path,
    episodes: Sequence[Episode],
    prompt: PromptConfig,
    memory: MemoryConfig,
    config: DatasetConfig,
    seed: int,
    samples: int,
    images: Path | None = None,
) -> Path:
    """The JSONL of `samples` samples of the episodes that are held out, each with its own memory.

    Raises DatasetError if no episodes are held out.
    """
    _, held_out = split_episodes(episodes, config.validation_fraction)
    if not held_out:
        raise DatasetError(
            f"sft.eval_samples is {samples}, and no episode is held out: raise dataset.validation_fraction, "
            f"{config.validation_fraction}, or record more episodes of a task"
        )
    config = replace(config, samples=samples, counterfactual_probability=0.0)
    return write_jsonl(
        folder, SampleMaker(held_out, memory, config).draw(samples, random.Random(seed)), prompt, config, images
    )


def equally_long(samples: Iterator[Sample], batch_size: int, rng: random.Random) -> Iterator[Sample]:
    """The samples in batches of about equally many images, which need little padding; batches in random order."""
    while pool := list(itertools.islice(samples, POOL_BATCHES * batch_size)):
        pool.sort(key=lambda sample: (len(sample.snapshot.keyframes) + len(sample.snapshot.recent), rng.random()))
        batches = [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
        rng.shuffle(batches)
        yield from itertools.chain.from_iterable(batches)


def write_jsonl(
    folder: Path,
    samples: Iterator[Sample],
    prompt: PromptConfig,
    config: DatasetConfig,
    images: Path | None = None,
    follows_from: Any = None,
) -> Path:
    """Write `train.jsonl` and, as PNG, its images atomically; the path of the JSONL.

    The samples that an interrupted call has written are drawn again, which is quick, and not written again.

    images: a folder that several data sets share; else the images lie beside the JSONL. follows_from: what the samples
    follow from, as JSON data; an interrupted call is gone on with only where it is the same.
    """
    path = folder / "train.jsonl"
    with GrowingFile(path, follows_from) as file:
        place = images.resolve() if images is not None else folder.resolve() / "images"
        store = ImageStore(place, config.image_format, prompt.crop)
        if images is None:
            for torn in place.rglob("*.partial"):
                torn.unlink()
        if file.lines:
            with stage(f"{file.lines} samples are there from an earlier run: going on behind them"):
                collections.deque(itertools.islice(samples, file.lines), maxlen=0)
        with Bar(config.samples, "samples", done=file.lines) as bar:
            try:
                for number, sample in enumerate(samples, start=file.lines):
                    file.write(json.dumps(_record(number, sample, prompt, store)))
                    bar.add()
            except KeyboardInterrupt:
                bar.note(f"interrupted: {bar.done} of {config.samples} samples are written; the same command goes on")
                raise
    return path


def _digest(episodes: Sequence[Episode]) -> str:
    """Of everything in the episodes but the images, which are large, and follow from the actions."""
    digest = hashlib.sha256()
    for episode in episodes:
        digest.update(f"{episode.task} {episode.seed} {episode.instruction} {episode.goal}".encode())
        digest.update(f"{episode.subtasks} {episode.keyframes} {json.dumps(episode.metadata, sort_keys=True)}".encode())
        digest.update(np.ascontiguousarray(episode.state).data)
        digest.update(np.ascontiguousarray(episode.actions).data)
    return digest.hexdigest()


def _record(number: int, sample: Sample, prompt: PromptConfig, store: ImageStore) -> dict[str, Any]:
    episode, snapshot = sample.episode, sample.snapshot
    recent = tuple(store.named(episode, frame, prompt.cameras) for frame in snapshot.recent)
    shown = zip(sample.sources, snapshot.keyframes, strict=True) if prompt.keyframes else ()
    keyframes = tuple(store.named(source, frame, prompt.cameras) for source, frame in shown)
    rendered = render_prompt(replace(snapshot, recent=recent, keyframes=keyframes), prompt)
    answer = render_answer(sample.subtask, sample.positions)
    return {
        "qid": f"{episode.task}_seed{episode.seed}_step{snapshot.step}_n{number}",
        "messages": [*rendered.messages, {"role": "assistant", "content": answer}],
        "images": rendered.images,
        "metadata": {
            "task": episode.task,
            "seed": episode.seed,
            "step": snapshot.step,
            "current_primitive": sample.subtask,
            "keyframe_positions": list(sample.positions),
            "camera_keys": list(prompt.cameras),
            "history_keyframe_count": len(keyframes),
            "num_context_frames": len(snapshot.recent),
            "num_context_images": len(snapshot.recent) * len(prompt.cameras),
            "image_sizes": [_image_size(episode, camera, prompt) for camera in prompt.cameras],
            "counterfactual": sample.counterfactual,
        },
    }


def _image_size(episode: Episode, camera: str, prompt: PromptConfig) -> tuple[int, int]:
    """(width, height) in pixels of what the JSONL has of a camera's images. No image is read."""
    outline = np.empty((*episode.images[camera].shape[1:3], 0), np.uint8)
    height, width = cropped(outline, camera, prompt.crop).shape[:2]
    return width, height
