"""The recall planner at inference: the frozen tower, the network, and the answer as the subtask."""

from __future__ import annotations

from pathlib import Path

import torch

from memory_bank import MemoryConfig
from planner.recall.examples import Shown, tokens_of
from planner.recall.model import batch_of, load_model
from planner.tower_embedding import ARENA_PLANNER, tower
from predimem.core.types import MemorySnapshot, Plan
from predimem.core.weight_files import weights_folder

SHIPPED = "interference-reader"


class RecallPlanner:
    """Implements `Planner`: it names the answer of the benchmark's vocabulary that the earlier sessions speak for.

    It sees the newest frame, the instruction and `MemorySnapshot.past_sessions`, and nothing else. Where no session is
    shown it still answers: with what it has learned to be likely.
    """

    memory = MemoryConfig(recent_window=1, keyframes=False)

    def __init__(self, weights: str = SHIPPED, tower_weights: str = ARENA_PLANNER, root: str | None = None):
        """weights: a folder below `root`, or below the shipped weights, made by `predimem train interference`."""
        self._model = load_model(weights_folder(root, weights))
        self._embed = tower(tower_weights)

    @staticmethod
    def weights_used(
        weights: str = SHIPPED, tower_weights: str = ARENA_PLANNER, root: str | None = None
    ) -> tuple[Path, Path]:
        """The folders that an evaluation's results name with their hashes."""
        return weights_folder(root, weights), weights_folder(None, tower_weights)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        view = self._embed([snapshot.recent[-1]])[0]
        shown = [Shown(session.instruction, self._embed(session.frames)) for session in snapshot.past_sessions]
        with torch.inference_mode():
            (logits,) = self._model(*batch_of([tokens_of(shown, view, snapshot.instruction)]))
        confidence, answer = logits.softmax(-1).max(-1)
        text = self._model.config.answers[int(answer)]
        return Plan(snapshot.episode_id, snapshot.step, text, text=text, confidence=round(float(confidence), 6))
