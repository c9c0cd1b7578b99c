"""More cues for MIKASA's planner, without rendering: objects are erased from images of the choice.

A few hundred rendered cues can be learned by heart, with the answer of each. An image of the choice shows all objects,
and an image of the empty table what is behind them. From the two of one episode come cues that show any of the objects,
such as all but one for each of them. Such cues differ in nothing but what has to be remembered.

An edited episode has the cue, the empty table and the beginning of the choice of another episode, whose label follows
from the cue. It ends there, so that it is for the planner only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from datagen.demos.edits import EditConfig, EditWorker
from datagen.demos.erasing import owners, showing
from predimem.core.config import ConfigError
from predimem.core.episode_folder import load_episodes
from predimem.core.episodes import Episode, SubtaskSpan
from predimem.core.frames import Frames
from predimem.core.scene_facts import KEY, SceneFacts
from predimem.envs.mikasa.families.touch_one import WAIT, WATCH, touch


@dataclass(frozen=True)
class EditedCuesConfig(EditConfig):
    """For tasks of the families Remember, FindImposter and BunchOfColors."""

    kind: Literal["edited_cues"] = "edited_cues"
    sources: tuple[str, ...] = ("runs/data/mikasa_families",)
    out: str = "runs/data/mikasa_edited"

    @staticmethod
    def check_task(task: str) -> None:
        _family(task)


def edited_cues_worker(config: EditedCuesConfig) -> EditWorker[Scene]:
    return EditWorker(config, scenes_of, edited)


@dataclass(frozen=True, eq=False)
class Scene:
    """An episode's empty table and the first image of its choice.

    empty, choice: camera -> uint8 [H, W, 3]. facts: those of the two, in this order. own: camera -> int64 [H, W], the
    object of `facts.objects` whose pixel it is, or -1. sensed: float32 [D], the state at the choice. due: how many
    objects the episode asks for.
    """

    episode: Episode
    empty: dict[str, np.ndarray]
    choice: dict[str, np.ndarray]
    facts: SceneFacts
    own: dict[str, np.ndarray]
    sensed: np.ndarray
    due: int

    @property
    def objects(self) -> tuple[str, ...]:
        """Those that can be chosen."""
        labels = self.episode.alternatives.subtasks if self.episode.alternatives else ()
        return tuple(name for name in self.facts.objects if touch(name) in labels)

    def showing(self, shown: Sequence[str]) -> dict[str, np.ndarray]:
        """The images of a cue with these objects, by camera."""
        numbers = [self.facts.objects.index(name) for name in shown]
        return {
            camera: showing(self.choice[camera], self.empty[camera], self.own[camera], numbers)
            for camera in self.choice
        }


def scenes_of(sources: Sequence[str], task: str, left_out: float) -> list[Scene]:
    """The scenes of a task's successful episodes, without those with the highest seeds. Raises ValueError if there are
    not two."""
    episodes = [e for source in sources if (folder := Path(source) / task).is_dir() for e in load_episodes(folder)]
    episodes.sort(key=lambda episode: episode.seed)
    scenes = [_scene(episode) for episode in episodes[: round(len(episodes) * (1 - left_out))] if episode.success]
    if len(scenes) < 2:
        raise ValueError(
            f"expected at least two successful episodes of {task} in {', '.join(sources)}, got {len(scenes)}"
        )
    return scenes


def edited(scenes: Sequence[Scene], task: str, seed: int, rng: np.random.Generator) -> Episode:
    """An episode whose cue is made from one scene, and whose choice is another's with the same objects."""
    own = scenes[rng.integers(len(scenes))]
    others = [scene for scene in scenes if scene is not own and set(scene.objects) == set(own.objects)]
    if not others:
        raise ValueError(f"{task}: no two episodes have the same objects to choose from")
    other = others[rng.integers(len(others))]
    drawn = [str(name) for name in rng.choice(own.objects, own.due, replace=False)]
    shown = [name for name in own.objects if name not in drawn] if _family(task) == "FindImposter" else drawn
    order = own.episode.alternatives.subtasks if own.episode.alternatives else ()
    target = min(map(touch, drawn), key=order.index)
    cue = other.showing(shown)
    images = {camera: np.stack([cue[camera], own.empty[camera], own.choice[camera]]) for camera in cue}
    rows = np.array([0, 1, 2, 2])
    return replace(
        own.episode,
        seed=seed,
        success=True,
        images={camera: Frames(stack, rows) for camera, stack in images.items()},
        state=np.stack([own.sensed] * 4),
        actions=np.zeros((4, own.episode.actions.shape[1]), np.float32),
        subtasks=(SubtaskSpan(0, 1, WATCH), SubtaskSpan(1, 2, WAIT), SubtaskSpan(2, 4, target)),
        keyframes=(0,),
        goal=target,
        alternatives=None,
        metadata={KEY: _facts(own, other, shown).as_json(), "edited_from": [own.episode.seed, other.episode.seed]},
    )


def _scene(episode: Episode) -> Scene:
    starts = {span.label: span.start for span in reversed(episode.subtasks)}
    choice_step = min(step for label, step in starts.items() if label.startswith(touch("")))
    facts = SceneFacts.of_metadata(episode.metadata, f"{episode.task} seed {episode.seed}")
    taken = np.flatnonzero(episode.image_steps).tolist()
    rows = [taken.index(starts[WAIT]), taken.index(choice_step)]
    empty = {camera: frames[starts[WAIT]] for camera, frames in episode.images.items()}
    choice = {camera: frames[choice_step] for camera, frames in episode.images.items()}
    own = {
        camera: owners(choice[camera], empty[camera], facts.pixels[rows[1], :, column])
        for column, camera in enumerate(episode.images)
    }
    due = sum(span.label.startswith(touch("")) for span in episode.subtasks)
    return Scene(episode, empty, choice, _rows(facts, rows), own, episode.state[choice_step], due)


def _facts(own: Scene, other: Scene, shown: Sequence[str]) -> SceneFacts:
    """Those of the cue, the empty table and the choice."""
    names = own.facts.objects
    pixels = np.full((3, *own.facts.pixels.shape[1:]), np.nan, np.float32)
    for name in shown:
        pixels[0, names.index(name)] = other.facts.pixels[1, other.facts.objects.index(name)]
    pixels[1:] = own.facts.pixels
    return replace(_rows(own.facts, [0, 0, 1]), pixels=pixels)


def _rows(facts: SceneFacts, rows: Sequence[int]) -> SceneFacts:
    """The facts of these frames."""
    changed: dict[str, Any] = {
        name: tuple(getattr(facts, name)[row] for row in rows) for name in ("places", "mats", "held")
    }
    changed |= {name: getattr(facts, name)[list(rows)] for name in ("pixels", "mat_pixels", "openings")}
    return replace(facts, **changed)


def _family(task: str) -> str:
    """Raises ConfigError for tasks whose cue is not a selection of the objects to choose from."""
    for name in ("Remember", "FindImposter", "BunchOfColors"):
        if task.startswith(name):
            return name
    raise ConfigError(f"expected a task of Remember, FindImposter or BunchOfColors, got {task}")
