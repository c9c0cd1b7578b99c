"""S2 at inference: a stock Qwen3-VL checkpoint behind the `Planner` interface.

An answer depends on the snapshot and on greedy decoding alone. Two things are remembered because they save time
(docs/benchmarks/planner_latency.md): the features that the vision tower gave of images, and each episode's last
answer, which is checked as a guess at the next one. The forward pass is in `planner.forward`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError

from planner.checkpoint import PlannerCheckpointError, PlannerSpec, draw_model, read_spec
from planner.forward import TextForward
from planner.greedy import Decoded, greedy_decode
from planner.image_features import ImageReader
from planner.inputs import InputReader
from planner.parsing import parse_plan, subtask_characters
from predimem.core.progress import stage
from predimem.core.types import MemorySnapshot, Plan

_END = "<|im_end|>"
_EPISODES = 256  # whose last answers are remembered


@dataclass(frozen=True)
class _LastAnswer:
    step: int
    tokens: list[int]


class QwenPlanner:
    """Implements `Planner` with greedy decoding. It serves one call at a time.

    timesteps: the features of the images of so many timesteps, the last used ones, are kept. An arena prompt shows up
        to 12 of them for each robot. One of two images takes 0.13 MB with the tiny model (128 px) and 4 MB with the
        8B model (256 px).
    """

    def __init__(self, model: Any, processor: Any, spec: PlannerSpec, timesteps: int = 128):
        self.spec = spec
        self._model, self._processor, self._timesteps = model.eval(), processor, timesteps
        self._tokenizer = processor.tokenizer
        self._end = processor.tokenizer.convert_tokens_to_ids(_END)
        self._reader = ImageReader(model, processor.image_processor, spec.prompt, timesteps)
        self._inputs = InputReader(processor, spec.prompt, self._reader, model.config.image_token_id)
        self._forward = TextForward(model)
        self._last: OrderedDict[str, _LastAnswer] = OrderedDict()

    def with_spec(self, spec: PlannerSpec) -> QwenPlanner:
        """A planner of the same weights with another prompt (`planner.checkpoint.changed_spec`)."""
        return QwenPlanner(self._model, self._processor, spec, self._timesteps)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        """The plan for a snapshot. An answer that is not the JSON asked for becomes `Plan.error`."""
        return self.plan_batch([snapshot])[0]

    def plan_batch(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan]:
        """A plan for each of the snapshots, of one episode or of several, in one batch."""
        if not snapshots:
            return []
        with torch.inference_mode():
            inputs = [self._inputs(snapshot) for snapshot in snapshots]
            guesses = [self._guess(snapshot) for snapshot in snapshots]
            answers = greedy_decode(self._forward, inputs, self._end, self.spec.max_new_tokens, guesses)
        for snapshot, answer in zip(snapshots, answers, strict=True):
            self._last[snapshot.episode_id] = _LastAnswer(snapshot.step, answer.tokens)
            self._last.move_to_end(snapshot.episode_id)
        while len(self._last) > _EPISODES:
            self._last.popitem(last=False)
        return [self._plan(answer, snapshot) for answer, snapshot in zip(answers, snapshots, strict=True)]

    def _guess(self, snapshot: MemorySnapshot) -> list[int]:
        """The tokens of this episode's last answer; none if the episode is played anew, which has to go as before."""
        last = self._last.get(snapshot.episode_id)
        return last.tokens if last is not None and last.step < snapshot.step else []

    def _plan(self, answer: Decoded, snapshot: MemorySnapshot) -> Plan:
        plan = parse_plan(self._text(answer.tokens), snapshot)
        return plan if plan.subtask is None else replace(plan, confidence=self._confidence(answer, plan.text))

    def _confidence(self, answer: Decoded, text: str) -> float:
        """The probability of the subtask: that of all tokens that hold a part of it or the quote that ends it."""
        start, end = subtask_characters(text)
        confidence, before = 1.0, 0
        for count, probability in enumerate(answer.probabilities, start=1):
            after = len(self._text(answer.tokens[:count]))
            if before < end and after > start:
                confidence *= probability
            before = after
        return round(confidence, 6)  # the digits that do not depend on the machine

    def _text(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


def load_planner(
    path: str | Path,
    device: str = "cpu",
    timesteps: int = 128,
    threads: int | None = None,
    spec: PlannerSpec | None = None,
) -> QwenPlanner:
    """Loads a planner from an exported folder, in float32 on the CPU and in bfloat16 elsewhere.

    timesteps: see `QwenPlanner`.
    threads: torch keeps to so many threads in this process from then on; None leaves them as they are.
    spec: in place of the folder's (`planner.checkpoint.changed_spec`).

    Raises PlannerCheckpointError if the folder, a file or a weight is missing, or a file is truncated.
    """
    with stage("loading the planner"):
        return _load_planner(Path(path), device, timesteps, threads, spec)


def _load_planner(
    folder: Path, device: str, timesteps: int, threads: int | None, spec: PlannerSpec | None
) -> QwenPlanner:
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoProcessor, Qwen3VLForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)
    if not folder.is_dir():
        raise PlannerCheckpointError(
            f"planner weights not found: {folder} is no folder. Train one with `predimem train planner`"
        )
    spec = spec or read_spec(folder)
    if not (folder / "config.json").is_file():  # the library would draw a model of 8 billion weights
        raise PlannerCheckpointError(f"{folder / 'config.json'} not found: restore it, or export the planner again")
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    try:
        if spec.drawn_seed is not None:
            drawn = draw_model(AutoConfig.from_pretrained(folder, local_files_only=True), spec.drawn_seed)
            loaded: Any = drawn.to(dtype), {"missing_keys": [], "mismatched_keys": []}
        else:
            loaded = Qwen3VLForConditionalGeneration.from_pretrained(
                folder, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        model, info = loaded
        processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    except (OSError, SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise PlannerCheckpointError(
            f"the planner in {folder} cannot be loaded ({error}): a file is missing or truncated; restore it "
            "(`git checkout` for the shipped weights) or export the planner again"
        ) from error
    broken = [*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])]
    if broken:
        raise PlannerCheckpointError(
            f"the planner in {folder} lacks {len(broken)} weights, first {broken[0]}: export it again"
        )
    _check_processor(folder, processor, model.config.image_token_id)
    return QwenPlanner(model.to(device), processor, spec, timesteps)


def _check_processor(folder: Path, processor: Any, image_token: int) -> None:
    """Raises PlannerCheckpointError unless a prompt comes out as it should. Where a file is missing the library does
    not complain: it makes up a tokenizer of a few tokens."""
    content = [{"type": "image"}, {"type": "text", "text": "open the drawer"}]
    try:
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
        tokens = processor.tokenizer(text).input_ids
        told = processor.tokenizer.decode(tokens)
    except (ValueError, TypeError, KeyError, TemplateError) as error:
        told, tokens = f"{error}", []
    if tokens.count(image_token) != 1 or "open the drawer" not in told or not told.rstrip().endswith("assistant"):
        raise PlannerCheckpointError(
            f"the tokenizer or the chat template in {folder} does not belong to its model: tokenizer.json, "
            "tokenizer_config.json or chat_template.jinja is missing or damaged; restore it (`git checkout` for the "
            f"shipped weights) or export the planner again (a trial prompt gave {told[:60]!r})"
        )
