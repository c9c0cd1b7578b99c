"""Fingerprints of what data are made with besides their config: weights, task files, and other episodes.

A config names them by their paths, and a path says nothing of what was trained or written anew there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from predimem.core.own_code import SUFFIX
from predimem.core.weight_files import model_folder, weights_hash
from predimem.envs.arena.tasks import task_of


def of_models(models: Mapping[str, str]) -> dict[str, str]:
    """models: what they do -> folder of weights, or name of shipped ones. Raises WeightsError where there are none."""
    return {f"weights of {role}": weights_hash(model_folder(name)) for role, name in models.items()}


def of_task_files(tasks: Sequence[str]) -> dict[str, str]:
    """Of those of the arena's tasks that are files, by the names of the tasks."""
    files = (key for key in tasks if key.endswith(SUFFIX))
    return {f"task {task_of(key).name}": sha256(Path(key).read_bytes()).hexdigest()[:16] for key in files}


def of_episodes(folders: Sequence[str]) -> dict[str, str]:
    """Of the episodes below each folder, by their names and sizes."""
    found = {}
    for folder in folders:
        paths = sorted(Path(folder).rglob("seed*.h5"))
        listed = "\n".join(f"{path.relative_to(folder)} {path.stat().st_size}" for path in paths)
        found[f"episodes of {folder}"] = sha256(listed.encode()).hexdigest()[:16]
    return found
