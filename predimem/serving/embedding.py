"""Embeddings of kept keyframes, made beside the robots' requests, so that people find keyframes by image."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from memory_bank.store import MemoryStore, StoredKeyframe
from memory_bank.store.embedding import embed_missing, embeddable
from predimem.core.types import Frame
from predimem.core.weight_files import weights_folder
from predimem.serving.robot import RobotSpec

if TYPE_CHECKING:
    from planner.tower_embedding import TowerEmbedder

log = logging.getLogger(__name__)
PAUSE_S = 5.0  # between two looks for keyframes without an embedding
END_S = 10.0


class BackgroundEmbedding:
    """Embeds what the store keeps with the frozen vision tower of a planner, in a thread of its own, which sleeps until
    `wake` says that something was kept. The tower is a copy of its own, so that planning never waits for it.

    cameras: those that the tower looks at. Raises WeightsError for a folder that is not there, PlannerCheckpointError
    where it holds no planner, and ValueError for a planner whose cameras the robot lacks.
    """

    def __init__(self, store: MemoryStore, planner: str, weights: str | None, robot: RobotSpec):
        from planner.checkpoint import read_spec

        cameras = read_spec(weights_folder(weights, planner)).prompt.cameras
        if not set(cameras) <= set(robot.cameras):
            raise ValueError(
                f"state: embed: {planner} looks at {', '.join(cameras)}, and the robot has {', '.join(robot.cameras)}; "
                "name a planner that was trained with cameras of these names, or leave it out"
            )
        self.cameras = tuple(cameras)
        self._size = robot.image_size
        self._unfit = set[int]()  # keyframes with images of another size, as of the camera before
        self._store, self._place = store, (planner, weights)
        self._tower: TowerEmbedder | None = None
        self._work, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="embed-keyframes", daemon=True)

    def start(self) -> None:
        """Load the tower, and begin with what was kept before. Raises PlannerCheckpointError for weights that cannot be
        loaded."""
        from planner.tower_embedding import TowerEmbedder

        self._tower = TowerEmbedder(*self._place)
        self._work.set()
        self._thread.start()

    def wake(self) -> None:
        """Something was kept. Any thread may say so."""
        self._work.set()

    def close(self) -> None:
        self._stop.set()
        self._work.set()
        if self._thread.is_alive():
            self._thread.join(END_S)

    @property
    def tower(self) -> TowerEmbedder:
        """Raises RuntimeError before `start`."""
        if self._tower is None:
            raise RuntimeError("the tower is not loaded yet: call start() first")
        return self._tower

    def query(self, images: Mapping[str, np.ndarray]) -> tuple[str, np.ndarray]:
        """(the name of the embeddings, float32 [D]) for a search by images, uint8 [H, W, 3] of a camera each. Raises
        ValueError for an image of a camera that the tower does not know."""
        return self.tower.model, self.tower.query(images, self._size)

    def _run(self) -> None:
        while self._work.wait() and not self._stop.is_set():
            self._work.clear()
            try:
                self._embed_all()
            except Exception:  # this thread lives as long as the server, whatever one keyframe does
                log.exception("keyframes cannot be embedded; it is tried again when the next one was kept")
            self._stop.wait(PAUSE_S)

    def _embed_all(self) -> None:
        tower = self.tower
        missing, _ = embeddable(self._store, tower.model, tower.cameras)
        keyframes = [keyframe for keyframe in missing if keyframe.id not in self._unfit]
        for _ in embed_missing(
            self._store, keyframes, tower.model, tower.embed, self._fits, lambda keyframe: self._unfit.add(keyframe.id)
        ):
            if self._stop.is_set():
                return

    def _fits(self, keyframe: StoredKeyframe, frame: Frame) -> bool:
        """Whether a keyframe has the robot's image size: embeddings of another one cannot be compared."""
        fits = all(frame.images[camera].shape[:2] == tuple(self._size) for camera in self.cameras)
        if not fits:
            self._unfit.add(keyframe.id)
        return fits
