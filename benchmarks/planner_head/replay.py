"""Replays held-out episodes to every trained planner with its own memory, as `predimem verify planner` does."""

from __future__ import annotations

import functools
from typing import Any

from benchmarks.planner_head.config import HeadStudy, Training
from benchmarks.planner_head.episodes import Reader, go_through
from planner.tracking import TrackingConfig, score, track_planner
from predimem.core.config import to_dict
from predimem.core.episodes import Episode

PIECE = "replay"


def replay_all(study: HeadStudy, workers: int) -> None:
    """Note the scores of each held-out episode with each planner."""
    reader = functools.partial(ReplayReader, study)
    go_through(study, PIECE, reader, {"replay": to_dict(study.tracking)}, workers)


class ReplayReader(Reader):
    """Gives the `scores` of an episode (`planner.tracking.TrackingScores`)."""

    def __init__(self, study: HeadStudy):
        super().__init__()
        self._study = study
        self._tracking: TrackingConfig = study.tracking

    def load(self, training: Training) -> None:
        from planner.decoding import load_planner

        self._planner = load_planner(self._study.weights / training.name)

    def read(self, episode: Episode) -> dict[str, Any]:
        tracks = track_planner(self._planner, [episode], self._planner.spec.memory, self._tracking)
        return {"scores": score(tracks, self._tracking).to_dict()}
