"""One episode read from its file, and compared with its checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from predimem.core.episode_format import FORMAT, READABLE, checksum_of, header
from predimem.core.episodes import Alternatives, Episode, SubtaskSpan
from predimem.core.frames import EpisodeError, Frames, StoredImages


def load_episode(path: str | Path, *, verify: bool = True, in_memory: bool = False) -> Episode:
    """Load one episode, whose images are read from the file when they are asked for.

    verify: read everything once, an image at a time, and compare it with the checksum. Leave this out only where this
    file has been verified already.
    in_memory: keep all images; the file is then no longer needed.
    Raises EpisodeError if the file is truncated, altered or too new.
    """
    import h5py

    if not Path(path).is_file():
        raise EpisodeError(f"there is no episode {path}: expected a file such as .../seed0000001000.h5")
    try:
        with h5py.File(path, "r") as file:
            attributes: Any = file.attrs
            if attributes.get("format") != FORMAT:
                raise EpisodeError(f"{path} is not a PrediMem episode")
            version = int(attributes["version"])
            if version not in READABLE:
                readable = " and ".join(map(str, READABLE))
                raise EpisodeError(f"{path} has episode version {version}; this code reads {readable}")
            meta, checksum = str(attributes["meta"]), str(attributes["checksum"])
            data: dict[str, np.ndarray | StoredImages] = {}
            headers: dict[str, str] = {}
            file.visititems(lambda name, item: _collect(data, headers, name, item))
        if verify and checksum_of(version, meta, headers, data) != checksum:
            raise EpisodeError(f"{path} does not match its checksum: it was altered or damaged; make it again")
        return _episode(json.loads(meta), data, in_memory)
    except EpisodeError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:  # h5py raises any of these
        raise EpisodeError(f"{path} cannot be read (truncated or damaged?): {error}") from error


def episode_checksum(path: str | Path) -> str:
    """The checksum noted in an episode file, by which what was derived from it names its source.

    Only noted, not verified: `load_episode` does that. Raises EpisodeError if there is none.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return str(file.attrs["checksum"])
    except (OSError, RuntimeError, KeyError) as error:
        raise EpisodeError(f"{path} is not a PrediMem episode, or damaged: {error}") from error


def _collect(data: dict[str, np.ndarray | StoredImages], headers: dict[str, str], name: str, item: Any) -> None:
    if hasattr(item, "shape"):
        data[name] = StoredImages(item) if name.startswith("images/") else item[()]
        headers[name] = header(name, item)


def _episode(meta: dict[str, Any], data: dict[str, Any], in_memory: bool) -> Episode:
    alternatives = None
    if meta["alternative_subtasks"] is not None:
        parts = {k: data[f"alternatives/{k}"] for k in ("chunks", "valid", "targets_m", "pixels")}
        alternatives = Alternatives(subtasks=tuple(meta["alternative_subtasks"]), **parts)
    images = {name: data[f"images/{name}"] for name in meta["cameras"]}
    if in_memory:
        images = {name: np.asarray(Frames(stored)) for name, stored in images.items()}
    return Episode(
        benchmark=meta["suite"],
        task=meta["task"],
        seed=meta["seed"],
        instruction=meta["instruction"],
        control_hz=meta["control_hz"],
        success=meta["success"],
        images={name: Frames(stored, data.get("image_rows")) for name, stored in images.items()},
        state=data["state"],
        actions=data["actions"],
        subtasks=tuple(SubtaskSpan(**span) for span in meta["subtasks"]),
        keyframes=tuple(meta["keyframes"]),
        goal=meta["goal"],
        alternatives=alternatives,
        metadata=meta["metadata"],
    )
