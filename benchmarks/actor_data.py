"""How many training samples one core prepares, from HDF5 episodes, JPEG and MP4, beside what a GPU would eat.

    python benchmarks/actor_data.py [--cameras 3] [--px 224] [--samples 200] [--workers 2]

A sample is one frame: images of all cameras are read and decoded, shifted, brightened and put into a batch, with state,
prompt and an action chunk, by the code that training uses. The images are crops that wander over a rendered scene, as
a moving camera sees it, with a sensor's noise.
Times are CPU times of one process, so that others on the machine do not count; with --workers, wall times as well.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from PIL import Image

from actor.dataset import FrameSet, SamplingConfig
from actor.training.batches import read_ahead
from actor.training.config import ActorTrainConfig, ComputeConfig
from actor.training.plan import flops_of_a_frame
from predimem.core.config import load_config
from predimem.core.episode_reader import load_episode
from predimem.core.episode_writer import save_episode
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames

SCENE = Path(__file__).parents[1] / "docs" / "images" / "arena.jpg"
RECIPE = "configs/actor/pi05_dual_arm.yaml"
STEPS, DIMENSIONS, NOISE = 300, 14, 3.0
H100_FLOPS, UTILISATION = 989e12, 0.4


class Jpegs:
    """Images of one camera, each compressed by itself."""

    def __init__(self, images: np.ndarray, quality: int = 90) -> None:
        self.shape = images.shape
        self._files = [_jpeg(image, quality) for image in images]
        self.size = sum(map(len, self._files)) / len(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, row: int) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(self._files[row])))

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))


class Video:
    """Images of one camera in an MP4, each found by seeking, as a loader of a LeRobotDataset does."""

    fps = 30

    def __init__(self, path: Path, images: np.ndarray, codec: str, key_every: int = 2) -> None:
        self.path, self.shape = path, images.shape
        with av.open(str(path), "w") as container:
            options = {"g": str(key_every), "crf": "30"} | ({"preset": "8"} if codec == "libsvtav1" else {})
            stream: Any = container.add_stream(codec, rate=self.fps, options=options)
            stream.height, stream.width, stream.pix_fmt = images.shape[1], images.shape[2], "yuv420p"
            for image in images:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            container.mux(stream.encode(None))
        self.size = path.stat().st_size / len(images)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> np.ndarray:
        container = _opened(str(self.path), os.getpid())
        stream = container.streams.video[0]
        container.seek(round(row / self.fps / stream.time_base), stream=stream)
        for frame in container.decode(stream):
            if round(frame.time * self.fps) == row:
                return frame.to_ndarray(format="rgb24")
        raise ValueError(f"{self.path} has no frame {row}")

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))


@lru_cache(maxsize=16)
def _opened(path: str, process: int) -> Any:
    container = av.open(path)
    container.streams.video[0].codec_context.thread_count = 1
    return container


def _jpeg(image: np.ndarray, quality: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return file.getvalue()


def scene(cameras: int, px: int) -> Episode:
    picture = np.asarray(Image.open(SCENE).convert("RGB").resize((1400, 1000)))
    rng, images = np.random.default_rng(0), {}
    for camera in range(cameras):
        way = np.cumsum(rng.normal(0, 2.5, (STEPS, 2)), 0) + rng.uniform(300, 500, 2)
        corners = np.clip(way, 0, (1000 - px, 1400 - px)).astype(int)
        crops = np.stack([picture[y : y + px, x : x + px] for y, x in corners])
        noise = rng.normal(0, NOISE, crops.shape[1:]).astype(np.float32)
        shown = [crop + np.roll(noise, rng.integers(px, size=2), (0, 1)) for crop in crops]
        images[f"camera{camera}"] = np.clip(shown, 0, 255).astype(np.uint8)
    state = rng.normal(size=(STEPS, DIMENSIONS)).astype(np.float32)
    spans = (SubtaskSpan(0, STEPS, "pick up the cup"),)
    return Episode("mine", "Benchmark", 1000, "Pick up the cup.", 30.0, True, images, state, state, spans, (0,))


def recipe(cameras: int, px: int, samples: int, workers: int) -> ActorTrainConfig:
    config = load_config(ActorTrainConfig, RECIPE)
    siglip = dataclasses.replace(config.actor.model.siglip, image_size=px)
    model = dataclasses.replace(config.actor.model, siglip=siglip, num_cameras=cameras)
    names = tuple(f"camera{number}" for number in range(cameras))
    actor = dataclasses.replace(config.actor, model=model, cameras=names, optional_cameras=(), camera_shape=(px, px))
    sampling = SamplingConfig(8, 1, instruction_share=0.0, hold_share=0.0, idle_share=0.0)
    compute = ComputeConfig(workers=workers)
    return dataclasses.replace(config, actor=actor, sampling=sampling, compute=compute, steps=max(1, samples // 8))


def rate(episode: Episode, config: ActorTrainConfig) -> tuple[float, float]:
    """Samples for each second of CPU time of this process, and of wall time."""
    frames = FrameSet([episode], config.actor.cameras, 50, config.actor.model.image_size, in_memory=False)
    batches = read_ahead(frames, config, 0)
    next(batches)  # starts the workers, opens files
    began, began_cpu, samples = time.perf_counter(), time.process_time(), 0
    for batch, _ in batches:
        samples += len(batch.images)
    return samples / (time.process_time() - began_cpu), samples / (time.perf_counter() - began)


def kinds(whole: Episode, folder: Path) -> Iterator[tuple[str, Episode, float]]:
    """Name, the episode with images kept that way, and kB an image."""

    def kept(make: Any) -> tuple[Episode, float]:
        made = {name: make(name, frames[:]) for name, frames in whole.images.items()}
        size = float(np.mean([images.size for images in made.values()]))
        return dataclasses.replace(whole, images={n: Frames(i) for n, i in made.items()}), size / 1e3

    path = folder / "seed0000001000.h5"
    save_episode(path, whole)
    count = sum(len(frames.images) for frames in whole.images.values())
    yield "HDF5 (gzip 4), our episodes", load_episode(path), path.stat().st_size / count / 1e3
    yield "JPEG, quality 90", *kept(lambda name, images: Jpegs(images))
    for codec, label in (("libx264", "H.264"), ("libsvtav1", "AV1")):
        if codec in av.codecs_available:
            make = lambda name, images, codec=codec: Video(folder / f"{codec}-{name}.mp4", images, codec)  # noqa: E731
            yield f"MP4, {label}, a key frame every 2", *kept(make)
    yield "in memory, decoded", whole, whole.images["camera0"].images[0].nbytes / 1e3


def main() -> None:
    os.environ["SVT_LOG"] = "1"  # errors only
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--px", type=int, default=224)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2, help="also with so many worker processes; 0: not")
    given = parser.parse_args()
    torch.set_num_threads(1)
    config = recipe(given.cameras, given.px, given.samples, 0)
    again = ComputeConfig(gradient_checkpointing=True)
    eaten = {
        name: H100_FLOPS * UTILISATION / flops_of_a_frame(dataclasses.replace(config, compute=compute))
        for name, compute in (("", ComputeConfig()), ("again", again))
    }
    print(f"{given.cameras} x {given.px} px, {given.samples} samples, {platform.machine()}, {os.cpu_count()} cores\n")
    print(
        f"| images | kB an image | samples/s a core | cores for one H100 | samples/s, {given.workers} workers (wall) |"
    )
    print("| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for name, episode, size_kb in kinds(scene(given.cameras, given.px), Path(folder)):
            alone, _ = rate(episode, config)
            ahead = dataclasses.replace(config, compute=ComputeConfig(workers=given.workers))
            wall = f"{rate(episode, ahead)[1]:.0f}" if given.workers else ""
            print(f"| {name} | {size_kb:.1f} | {alone:.0f} | {eaten[''] / alone:.2f} | {wall} |", flush=True)
    print(
        f"\nAn H100 at {UTILISATION:.0%} of its {H100_FLOPS / 1e12:.0f} TFLOP/s (bfloat16) would train on "
        f"{eaten['']:.0f} samples/s, with gradient checkpointing {eaten['again']:.0f}: computed, not measured."
    )


if __name__ == "__main__":
    main()
