"""More scenes of RoboMME for planners, without rendering: its containers, or its cubes, stand elsewhere.

A few dozen rendered scenes are learned by heart, with the cell of each answer, even where cubes exchange their colours.
So the things of a scene move to other cells (`datagen.demos.robomme_scenes`). The episodes are for planners only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from datagen.demos.robomme_images import FromImagesWorker, jobs_of
from datagen.demos.robomme_scenes import TASKS, scene_of
from datagen.generation import check_at_least
from datagen.inputs import of_episodes
from predimem.core.episodes import Episode
from predimem.jobs.tasks import Job


@dataclass(frozen=True)
class MovedRobommeConfig:
    """Which scenes are made of which.

    sources: a folder of RoboMME's episodes. Those of `TASKS` are used in which what is moved can be told apart in the
        images.
    out: the folder of the new ones, laid out as that of `EditedRobommeConfig`.
    copies: at most so many are made of each; fewer where a crowded table leaves no room.
    uncovered: at most so many besides, in which all that was shown is still seen when it is due to choose, and which
        begin there. A planner learns from them which place is which before it has to remember one.
    """

    may_differ: ClassVar[tuple[str, ...]] = ("out",)

    kind: Literal["moved_robomme"] = "moved_robomme"
    sources: str = "runs/data/robomme/skills"
    out: str = "runs/data/robomme/moved"
    copies: int = 16
    uncovered: int = 0

    def __post_init__(self) -> None:
        check_at_least(self, 0, "copies", "uncovered")

    def jobs(self) -> list[Job]:
        """Raises EpisodeError where there is no episode."""
        return jobs_of(self.sources, TASKS)

    def inputs(self) -> dict[str, str]:
        return of_episodes([self.sources])

    def for_workers(self) -> MovedRobommeConfig:
        return replace(self, sources=str(Path(self.sources).resolve()))


class MovedRobommeWorker(FromImagesWorker):
    discarded_because = "things that cannot be told apart"

    def __init__(self, config: MovedRobommeConfig):
        super().__init__(config)
        self._copies, self._uncovered = config.copies, config.uncovered

    def made_of(self, source: Episode, rng: np.random.Generator) -> list[Episode]:
        scene = scene_of(source, self.table())
        if scene is None:
            return []
        uncovered = scene.uncovered()
        scenes = [scene] * self._copies + [uncovered] * self._uncovered
        return [episode for one in scenes if (episode := one.drawn(rng)) is not None]
