"""Keyframes for the measurement: images of demonstrations, and what the planner's vision tower makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memory_bank.store import NewKeyframe
from predimem.core.types import Frame

SMALL_PX = 32  # of the images that are stored
SHIFT_PX, BRIGHTNESS = 6, 0.1  # by which an image is changed before the tower sees it
BETWEEN, NOISE = (
    0.5,
    0.05,
)  # by which an embedding is changed: towards that of another view of the episode, and at random
MODEL = "arena-planner"


@dataclass(frozen=True, eq=False)
class Views:
    """Different views, in the order of their episodes.

    small: uint8 [n, SMALL_PX, SMALL_PX, 3]. embeddings: float32 [n, D] of length 1. episodes: int [n].
    """

    small: np.ndarray
    embeddings: np.ndarray
    episodes: np.ndarray


def read_views(folder: Path, planner: Path, copies: int, seed: int = 0) -> Views:
    """The views of all demonstrations below a folder that have the planner's cameras, each `copies` times, shifted and
    brightened at random. An embedding is the mean of the tower's tokens, camera after camera."""
    from PIL import Image

    from planner.decoding import load_planner
    from planner.feature_memory import FeatureMemory
    from planner.image_features import ImageReader
    from predimem.core.episode_reader import load_episode

    loaded, rng = load_planner(planner, threads=1), np.random.default_rng(seed)
    prompt = loaded.spec.prompt
    reader = ImageReader(loaded._model, loaded._processor.image_processor, prompt, FeatureMemory(0))
    small, embeddings, episodes = [], [], []
    for number, path in enumerate(sorted(folder.rglob("*.h5"))):
        episode = load_episode(path)
        if not set(prompt.cameras) <= set(episode.images):
            continue
        for _ in range(copies):
            for step in np.flatnonzero(episode.image_steps):
                seen = [_changed(np.asarray(episode.images[camera][step]), rng) for camera in prompt.cameras]
                told = reader(reader.pictures(seen), str(path))
                features = [image.merged.detach().float().mean(0).numpy() for image in told]
                vector = np.concatenate(features)
                embeddings.append(vector / np.linalg.norm(vector))
                small.append(np.asarray(Image.fromarray(seen[0]).resize((SMALL_PX, SMALL_PX))))
                episodes.append(number)
    if not small:
        raise ValueError(
            f"{folder} has no demonstrations with {', '.join(prompt.cameras)}: `predimem datagen` makes some"
        )
    return Views(np.stack(small), np.stack(embeddings).astype(np.float32), np.array(episodes))


def episode_of(views: Views, length: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(images, embeddings) of an episode of `length` keyframes: views that follow each other, changed a little."""
    first = int(rng.integers(len(views.small)))
    places = (first + np.arange(length)) % len(views.small)
    images = views.small[places].astype(np.int16) + rng.integers(-6, 7, (length, 1, 1, 3))
    return np.clip(images, 0, 255).astype(np.uint8), perturbed(views, places, rng)


def perturbed(views: Views, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """float32 [n, D] of length 1: embeddings that no two keyframes share."""
    first = np.searchsorted(views.episodes, views.episodes[places], "left")
    last = np.searchsorted(views.episodes, views.episodes[places], "right")
    others = views.embeddings[rng.integers(first, last)]
    share = BETWEEN * rng.random((len(places), 1), np.float32)
    mixed = (1 - share) * views.embeddings[places] + share * others
    noise = rng.normal(size=mixed.shape).astype(np.float32)
    mixed += NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def batches(images: np.ndarray, embeddings: np.ndarray, size: int) -> Iterator[list[NewKeyframe]]:
    for first in range(0, len(images), size):
        yield [
            NewKeyframe(
                Frame(20 * step, float(step), {"agentview_rgb": images[step]}),
                f"subtask {step // 10}",
                True,
                {MODEL: embeddings[step]},
            )
            for step in range(first, min(first + size, len(images)))
        ]


def _changed(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    dx, dy = rng.integers(-SHIFT_PX, SHIFT_PX + 1, 2)
    padded = np.pad(image, ((SHIFT_PX, SHIFT_PX), (SHIFT_PX, SHIFT_PX), (0, 0)), "edge")
    height, width = image.shape[:2]
    moved = padded[SHIFT_PX + dy : SHIFT_PX + dy + height, SHIFT_PX + dx : SHIFT_PX + dx + width]
    light = 1 + rng.uniform(-BRIGHTNESS, BRIGHTNESS)
    return np.clip(moved * light, 0, 255).astype(np.uint8)
