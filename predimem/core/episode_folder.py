"""Folders of episodes: how their files are named, which there are, and all of them loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from predimem.core.config import PACKAGE, read_yaml
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode
from predimem.core.frames import EpisodeError
from predimem.core.progress import watched

_VERIFIED: set[tuple[str, int, int]] = set()  # path, size and time of change


def episode_path(root: str | Path, task: str, seed: int) -> Path:
    return Path(root) / task / f"seed{seed:010d}.h5"


def list_episodes(root: str | Path) -> list[Path]:
    """All episode files below `root`, in a fixed order. Raises EpisodeError if there is none."""
    paths = sorted(Path(root).rglob("seed*.h5"))
    if not paths:
        raise EpisodeError(f"no episodes under {root}: {_who_makes(Path(root))}")
    return paths


def load_episodes(root: str | Path) -> list[Episode]:
    """All episodes below `root`, in the order of `list_episodes`; a progress bar if it takes long.

    Verified, unless this process has done so before and the file has not changed since: in threads, since unpacking
    and hashing, nearly all of the work (0.4 ms an image of 128 px), leave Python's lock.
    """

    def load(path: Path) -> Episode:
        status = path.stat()
        version = (str(path.resolve()), status.st_size, status.st_mtime_ns)
        episode = load_episode(path, verify=version not in _VERIFIED)
        _VERIFIED.add(version)
        return episode

    paths = list_episodes(root)
    pool = ThreadPoolExecutor()
    try:
        return list(watched(pool.map(load, paths), len(paths), "episodes", "verifying", delay_s=3.0))
    finally:
        pool.shutdown(cancel_futures=True)


def _who_makes(root: Path) -> str:
    """The command that makes the episodes of a folder: that of the shipped config whose folder it is."""
    commands = {"datagen*.yaml": "datagen", "train_arena.yaml": "train arena"}
    for pattern, command in commands.items():
        for path in sorted((PACKAGE / "configs").glob(pattern)):
            made = Path(read_yaml(path)["out"])
            if root.parts[: len(made.parts)] == made.parts:
                return f"make them with `predimem {command} --config configs/{path.name}`"
    return (
        f"make some of MIKASA with `predimem datagen --config configs/datagen_mikasa.yaml --out {root}`, or of the "
        f"arena with `predimem datagen --config configs/datagen.yaml --out {root}`"
    )
