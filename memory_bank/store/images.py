"""Where the images lie: PNG files beside a database in a folder, rows of a database that many machines share.

Files are written before the transaction that names them, so that the database never names an image that is not there.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from memory_bank.store.database import Database, Link
from memory_bank.store.records import DamagedImage

Pngs = Mapping[tuple[int, int], bytes]  # (step, camera) -> file


class Images(ABC):
    in_database: bool

    @abstractmethod
    def write(self, key: int, pngs: Pngs) -> None:
        """Before the transaction. Raises OSError."""

    @abstractmethod
    def add(self, link: Link, key: int, pngs: Pngs) -> None:
        """Within the transaction that names them."""

    @abstractmethod
    def read(self, key: int, step: int, camera: int) -> bytes:
        """The PNG file. Raises KeyError where there is none."""

    @abstractmethod
    def size(self, key: int, step: int, camera: int) -> int:
        """In bytes; 0 where there is none."""

    @abstractmethod
    def remove(self, key: int) -> bool:
        """All images of an episode; whether none is left."""


class FolderImages(Images):
    """`pictures/<episode>/<step>-<camera>.png`. sync: wait for the disk."""

    in_database = False

    def __init__(self, folder: Path, sync: bool):
        self._folder, self._sync = folder, sync
        self._mark = secrets.token_hex(4)

    def file(self, key: int, step: int, camera: int) -> Path:
        return self._of(key) / f"{step}-{camera}.png"

    def write(self, key: int, pngs: Pngs) -> None:
        if not pngs:
            return
        folder = self._of(key)
        self._make(folder)
        parts = {}  # a file that a kill cut short has another name
        for (step, camera), png in pngs.items():
            path = self.file(key, step, camera)
            if not path.exists():
                part = path.with_suffix(f".{self._mark}.part")
                part.write_bytes(png)
                parts[part] = path
        for part, path in parts.items():
            if self._sync:
                _sync(part)
            part.replace(path)
        if self._sync:
            _sync(folder)

    def add(self, link: Link, key: int, pngs: Pngs) -> None:
        pass

    def read(self, key: int, step: int, camera: int) -> bytes:
        try:
            return self.file(key, step, camera).read_bytes()
        except FileNotFoundError:
            raise KeyError((key, step, camera)) from None

    def size(self, key: int, step: int, camera: int) -> int:
        try:
            return self.file(key, step, camera).stat().st_size
        except FileNotFoundError:
            return 0

    def remove(self, key: int) -> bool:
        shutil.rmtree(self._of(key), ignore_errors=True)
        return not self._of(key).exists()

    def _of(self, key: int) -> Path:
        return self._folder / "pictures" / str(key)

    def _make(self, folder: Path) -> None:
        """The folder of an episode's images, and its name on the disk."""
        if folder.is_dir():
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self._sync:
            for above in (folder.parent, self._folder):
                _sync(above)


class TableImages(Images):
    """Rows of the database, which go with their episode."""

    in_database = True

    def __init__(self, database: Database):
        self._database = database

    def write(self, key: int, pngs: Pngs) -> None:
        pass

    def add(self, link: Link, key: int, pngs: Pngs) -> None:
        rows = [(key, step, camera, png) for (step, camera), png in pngs.items()]
        link.many("INSERT INTO images VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def read(self, key: int, step: int, camera: int) -> bytes:
        with self._database.reading() as read:
            rows = read("SELECT png FROM images WHERE episode = ? AND step = ? AND camera = ?", (key, step, camera))
        if not rows:
            raise KeyError((key, step, camera))
        return bytes(rows[0][0])

    def size(self, key: int, step: int, camera: int) -> int:
        with self._database.reading() as read:
            rows = read(
                "SELECT length(png) FROM images WHERE episode = ? AND step = ? AND camera = ?", (key, step, camera)
            )
        return rows[0][0] if rows else 0

    def remove(self, key: int) -> bool:
        return True


def to_png(image: np.ndarray) -> bytes:
    """uint8 [H, W, 3] as a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def from_png(png: bytes) -> np.ndarray:
    """uint8 [H, W, 3] of a PNG file. Raises DamagedImage where it is none."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
            return np.array(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise DamagedImage(f"an image of the memory store cannot be read: {error}") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
