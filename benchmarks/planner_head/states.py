"""Looks into trained planners: their states at keyframes, and how well their heads foresee each frame.

The frame of step t is foreseen from the frame before it in the window, as in training; the memory shows no keyframe
that is later than that frame, so that nobody sees what is to be foreseen. For each frame there are two errors, both
L_Pre (`planner.model.predictive_coding_loss`): that of the head, and that of saying that nothing changes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.planner_head.config import HeadStudy, Training
from benchmarks.planner_head.episodes import Reader, go_through
from planner.checkpoint import read_spec
from planner.nominations import keyframe_positions, keyframe_targets
from planner.prompt import PromptConfig
from planner.replay import Replay, on_grid
from predimem.core.episodes import Episode
from predimem.core.types import MemorySnapshot

PIECE = "states"
FEATURES_BYTES = 512 << 20
DIGITS = 5


def look_into_all(study: HeadStudy, workers: int) -> None:
    """Note states and errors of each held-out episode with each planner."""
    go_through(study, PIECE, functools.partial(StatesReader, study), {}, workers)


@dataclass(frozen=True)
class Foreseen:
    """What a planner made of the newest timestep of a snapshot.

    state: [D], the mean of the last hidden states at the tokens of its images.
    error: L_Pre of the head's prediction of it; None without a head.
    unchanged: L_Pre of the timestep before it, taken as the prediction.
    """

    state: list[float]
    error: float | None
    unchanged: float


class FrameReader:
    """Runs a training checkpoint, with its head where it has one, on snapshots of two timesteps or more."""

    def __init__(self, model: Any, processor: Any, prompt: PromptConfig):
        from planner.feature_memory import FeatureMemory
        from planner.image_features import ImageReader
        from planner.inputs import InputReader

        self._model, self._cameras = model.eval(), len(prompt.cameras)
        self._head = getattr(model, "predictive_head", None)
        self._images = ImageReader(model, processor.image_processor, prompt, FeatureMemory(FEATURES_BYTES))
        self._inputs = InputReader(processor, prompt, self._images, model.config.image_token_id)

    def __call__(self, snapshot: MemorySnapshot) -> Foreseen:
        import torch
        from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

        from planner.model import predictive_coding_loss

        inputs = self._inputs(snapshot)
        with torch.inference_mode():
            images = self._images(inputs.pictures, robot="")
            merged = [image.merged for image in images]
            levels: Any = [list(level) for level in zip(*(image.deepstack for image in images), strict=True)]
            given: Any = {"pooler_output": merged, "deepstack_features": levels}
            hidden = self._model.model(
                input_ids=torch.from_numpy(inputs.tokens)[None],
                position_ids=torch.from_numpy(inputs.positions)[:, None],
                mm_encoder_outputs={"image": BaseModelOutputWithDeepstackFeatures(**given)},
            ).last_hidden_state[0]
            states = hidden[torch.from_numpy(inputs.is_image)].split([len(image) for image in merged])
            newest, before = slice(-self._cameras, None), slice(-2 * self._cameras, -self._cameras)
            target = torch.cat(merged[newest])
            error = None
            if self._head is not None:
                error = round(float(predictive_coding_loss(self._head(torch.cat(states[before])), target)), DIGITS)
            unchanged = round(float(predictive_coding_loss(torch.cat(merged[before]), target)), DIGITS)
            state = torch.cat(states[newest]).mean(0)
        return Foreseen([round(float(x), DIGITS) for x in state], error, unchanged)


class StatesReader(Reader):
    """Gives `frames` of an episode, each as [step, whether it is to be nominated, error, unchanged], and those to be
    nominated as `keyframes`, each as [step, subtask, state]."""

    def __init__(self, study: HeadStudy):
        super().__init__()
        self._study = study

    def load(self, training: Training) -> None:
        from transformers import AutoProcessor

        from planner.model import PrediMemForConditionalGeneration
        from planner.swift_command import last_checkpoint

        folder = Path(self._study.recipe_of(training)["out"])
        checkpoint = last_checkpoint(folder / "sft")
        if checkpoint is None:
            raise ValueError(f"{folder / 'sft'} has no checkpoint: the head is in none of the exported weights")
        model: Any = PrediMemForConditionalGeneration.from_pretrained(checkpoint)
        self._spec = read_spec(self._study.weights / training.name)
        self._frames = FrameReader(model, AutoProcessor.from_pretrained(folder / "base"), self._spec.prompt)
        self._dataset = self._study.train_config(training).dataset

    def read(self, episode: Episode) -> dict[str, Any]:
        memory = self._spec.memory
        targets, stride = keyframe_targets(episode, self._dataset.nominate), memory.recent_stride_steps
        replay = Replay(episode, memory, on_grid(targets, self._dataset.step_grid, episode))
        shown = episode.image_steps
        frames, keyframes = [], []
        for step in range(stride, len(episode), stride):
            snapshot = replay[step]
            before = snapshot.recent[-2].step if len(snapshot.recent) > 1 else None
            if before is None or not (shown[step] and shown[before]):  # an image that was not stored never changes
                continue
            known = tuple(frame for frame in snapshot.keyframes if frame.step <= before)
            found = self._frames(replace(snapshot, keyframes=known))
            nominated = len(snapshot.recent) in keyframe_positions(snapshot, targets, stride)
            frames.append([step, nominated, found.error, found.unchanged])
            if nominated:
                keyframes.append([step, episode.subtask_at(step), found.state])
        return {"frames": frames, "keyframes": keyframes}
