"""What can be said before PyTorch is imported: that files are missing which a command needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predimem.core.config import read_yaml
from predimem.core.episode_folder import list_episodes
from predimem.core.weight_files import WeightsError


def check_planner_recipe(config: Path, episodes: str | None, out: str | None) -> None:
    """Raises EpisodeError or WeightsError if a training of S2 lacks the episodes or the weights that it needs next."""
    recipe = read_yaml(config)
    if _part(recipe, "sft").get("epochs") == 0:
        return
    folder = Path(str(out or recipe.get("out", "")))
    if not (folder / "data" / "train.jsonl").is_file():
        _check_episodes(episodes or recipe.get("episodes"))
    if not (folder / "base").is_dir():
        vision = _part(recipe, "vision")
        tower = vision.get("from_planner")
        if tower is None:
            _check_episodes(vision.get("scenes"))
        else:
            _check_place("vision.from_planner", tower)
        _check_start(recipe)


def check_actor_recipe(config: Path, episodes: str | None) -> None:
    """Raises EpisodeError or WeightsError if a training of S1 lacks episodes or the weights to start from."""
    recipe = read_yaml(config)
    _check_episodes(episodes or recipe.get("episodes"))
    _check_episodes(recipe.get("more_episodes"))
    _check_start(recipe)


def _part(recipe: dict[str, Any], name: str) -> dict[str, Any]:
    part = recipe.get(name)
    return part if isinstance(part, dict) else {}


def _check_episodes(folders: Any) -> None:
    """Anything but one folder or several is left to the config's own check."""
    for folder in folders if isinstance(folders, list) else [folders]:
        if isinstance(folder, str):
            list_episodes(folder)


def _check_start(recipe: dict[str, Any]) -> None:
    for name in ("continue_from", "init_from"):
        _check_place(name, recipe.get(name))


def _check_place(name: str, place: Any) -> None:
    if isinstance(place, str) and not Path(place).exists():
        raise WeightsError(f"{name}: there is nothing at {place}, where the weights to start from should be")
