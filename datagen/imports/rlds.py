"""Data sets of TensorFlow Datasets whose examples are episodes (RLDS), read without TensorFlow.

A folder has `dataset_info.json`, `features.json` and files `<name>-<split>.tfrecord-00000-of-00004`. A record is an
episode: `steps/<feature>` holds the values of all steps in a row, images as PNG or JPEG.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datagen.imports.tfrecord import parse_example, read_record
from predimem.core.frames import EpisodeError

FIRST = "steps/is_first"  # every RLDS data set has it


@dataclass(frozen=True)
class RldsDataset:
    """shards: file -> how many episodes it has."""

    root: Path
    shards: Mapping[Path, int]

    def __len__(self) -> int:
        return sum(self.shards.values())

    def read(self, episode: int) -> RldsEpisode:
        """Raises EpisodeError, naming the file, where it is damaged."""
        path, number = self._place(episode)
        try:
            values = parse_example(read_record(path, number))
        except ValueError as error:
            raise error if isinstance(error, EpisodeError) else EpisodeError(f"{path}: {error}") from error
        return RldsEpisode(f"{path}, record {number}", values)

    def _place(self, episode: int) -> tuple[Path, int]:
        """File and record."""
        before = 0
        for path, count in self.shards.items():
            if episode < before + count:
                return path, episode - before
            before += count
        raise IndexError(f"{self.root} has {before} episodes, there is no {episode}")


@dataclass(frozen=True)
class RldsEpisode:
    """values: feature -> those of all steps. name: what error messages call it."""

    name: str
    values: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self._of(FIRST))

    def vectors(self, feature: str, dim: int) -> np.ndarray:
        """float32 [T, dim]."""
        found = np.array(self._of(feature), np.float32)
        if len(found) != len(self) * dim:
            raise EpisodeError(f"{self.name}: {feature} has {len(found)} numbers, not {dim} for {len(self)} steps")
        return found.reshape(-1, dim)

    def text(self, feature: str) -> str:
        """The words of a feature, which are the same in all steps."""
        found = {words.decode() for words in self._of(feature)}
        if len(found) != 1:
            raise EpisodeError(f"{self.name}: expected one {feature} for all steps, got {sorted(found)}")
        return found.pop()

    def images(self, feature: str) -> Iterator[np.ndarray]:
        """uint8 [H, W, 3] of each step."""
        found = self._of(feature)
        if len(found) != len(self):
            raise EpisodeError(f"{self.name}: {feature} has {len(found)} images for {len(self)} steps")
        for step, data in enumerate(found):
            try:
                yield np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            except OSError as error:
                raise EpisodeError(f"{self.name}: {feature} of step {step} is no image: {error}") from error

    def _of(self, feature: str) -> Sequence[Any]:
        if feature not in self.values:
            raise EpisodeError(f"{self.name} has no {feature}; it has {', '.join(sorted(self.values))}")
        return self.values[feature]


def open_rlds(root: str | Path) -> RldsDataset:
    """All splits, in their order. Raises EpisodeError, naming the file, for what is missing or of another format."""
    root = Path(root)
    path = root / "dataset_info.json"
    try:
        info = json.loads(path.read_text())
        splits = {split["name"]: [int(count) for count in split["shardLengths"]] for split in info["splits"]}
        name, kind = info["name"], info.get("fileFormat", "tfrecord")
    except FileNotFoundError as error:
        raise EpisodeError(f"{root} is no data set of TensorFlow Datasets: it has no dataset_info.json") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EpisodeError(f"{path} cannot be read: {error!r}") from error
    if kind != "tfrecord":
        raise EpisodeError(f"{root} has files of the format {kind!r}; this reads tfrecord, the usual one")
    shards = {
        root / f"{name}-{split}.tfrecord-{number:05d}-of-{len(counts):05d}": count
        for split, counts in splits.items()
        for number, count in enumerate(counts)
    }
    missing = [file.name for file in shards if not file.exists()]
    if missing:
        raise EpisodeError(
            f"{root} lacks {len(missing)} of {len(shards)} files, such as {missing[0]}: get them as well"
        )
    return RldsDataset(root, shards)
