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


class ImageStore:
    """Images of the JSONL: PNG files below `folder`, which are named by what they show, or base64 strings.

    So several data sets may share the folder, and two episodes of the same task and seed, such as a recording and an
    edited copy of it, have files of their own.

    crop: the part of each camera's image that is kept.
    """

    def __init__(self, folder: Path, image_format: str, crop: Crop):
        self._folder = folder
        self._format = image_format
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
        if not isinstance(frame.images, StepImages):  # an image that a memory made itself: nothing says which it is
            return self._write(self._image(frame, camera))
        key = (id(episode), frame.step, camera)
        if key not in self._written:
            self._written[key] = self._write(self._image(frame, camera))
        return self._written[key]

    def _image(self, frame: Frame, camera: str) -> np.ndarray:
        return cropped(frame.images[camera], camera, self._crop)

    def _write(self, image: np.ndarray) -> str:
        name = hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=12).hexdigest()
        path = self._folder / name[:2] / f"{name[2:]}.png"
        if not path.is_file():
            with AtomicWrite(path, f".{os.getpid()}.partial") as partial:  # another training may write the same one
                partial.write_bytes(_png(image))
        return str(path)


def _png(image: np.ndarray) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
