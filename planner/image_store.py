"""The images of S2's training data: files that are written once each, or base64 strings."""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.crop import Crop, cropped
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite
from predimem.core.frames import StepImages
from predimem.core.types import Frame

REMADE = "remade"  # the folder of images that a memory made itself


class ImageStore:
    """Images of the JSONL: PNG files below `folder`, or base64 strings.

    shared: several data sets share the folder, where images are named by what they show. Otherwise they are named by
    episode, step and camera, except those that a memory of one's own made itself.

    crop: the part of each camera's image that is kept.

    keep: the files that are there are right, since this run goes on with the one that wrote them.
    """

    def __init__(self, folder: Path, image_format: str, shared: bool, crop: Crop, keep: bool = False):
        self._keep = keep or shared
        if keep and not shared:
            for torn in folder.rglob("*.partial"):
                torn.unlink()
        self._folder = folder
        self._format = image_format
        self._shared = shared
        self._crop = crop
        self._written: dict[tuple[int, int, str], str] = {}

    def named(self, episode: Episode, frame: Frame, cameras: Sequence[str]) -> Frame:
        """The frame with what stands for its images in the JSONL; they are read only if that is not known yet."""
        images: Any = {camera: self._put(episode, frame, camera) for camera in cameras if camera in frame.images}
        return replace(frame, images=images)

    def _put(self, episode: Episode, frame: Frame, camera: str) -> str:
        """A path, or the image itself."""
        if self._format == "base64":
            return "data:image/png;base64," + base64.b64encode(_png(self._image(frame, camera))).decode()
        if not isinstance(frame.images, StepImages):
            folder, image = self._folder if self._shared else self._folder / REMADE, self._image(frame, camera)
            return _write(_by_content(folder, image), image, anew=False)
        key = (id(episode), frame.step, camera)
        if key not in self._written:
            image = self._image(frame, camera)
            path = self._path(episode, frame, camera, image)
            self._written[key] = _write(path, image, anew=not self._keep)
        return self._written[key]

    def _image(self, frame: Frame, camera: str) -> np.ndarray:
        return cropped(frame.images[camera], camera, self._crop)

    def _path(self, episode: Episode, frame: Frame, camera: str, image: np.ndarray) -> Path:
        if self._shared:
            return _by_content(self._folder, image)
        return self._folder / episode.task / f"seed{episode.seed:010d}" / f"{frame.step:06d}_{camera}.png"


def _write(path: Path, image: np.ndarray, anew: bool) -> str:
    """anew: whatever lies there by this name, it may show something else."""
    if anew or not path.is_file():
        with AtomicWrite(path, f".{os.getpid()}.partial") as partial:  # another training may write the same one
            partial.write_bytes(_png(image))
    return str(path)


def _by_content(folder: Path, image: np.ndarray) -> Path:
    name = hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=12).hexdigest()
    return folder / name[:2] / f"{name[2:]}.png"


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
