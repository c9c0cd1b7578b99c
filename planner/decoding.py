"""S2 at inference: a stock Qwen3-VL checkpoint behind the `Planner` interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from planner.checkpoint import PlannerCheckpointError, PlannerSpec, read_spec
from planner.parsing import parse_plan
from planner.prompt import chat_messages, render_prompt, size_images
from predimem.types import MemorySnapshot, Plan

_END = "<|im_end|>"


class QwenPlanner:
    """Implements `Planner` with greedy decoding. Stateless between calls; one call at a time."""

    def __init__(self, model: Any, processor: Any, spec: PlannerSpec):
        self.spec = spec
        self._model = model.eval()
        self._processor = processor
        self._end = processor.tokenizer.convert_tokens_to_ids(_END)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        """The plan for a snapshot. An answer that is not the JSON asked for becomes `Plan.error`."""
        return parse_plan(self.answer(snapshot), snapshot)

    def answer(self, snapshot: MemorySnapshot) -> str:
        """The raw text that the model answers."""
        inputs = self.encode(snapshot)
        with torch.inference_mode():
            tokens = greedy_decode(self._model, inputs, self._end, self.spec.max_new_tokens)
        return self._processor.tokenizer.decode(tokens, skip_special_tokens=True)

    def encode(self, snapshot: MemorySnapshot) -> dict[str, torch.Tensor]:
        """The model's inputs for one snapshot: a batch of one, ready for the answer's first token."""
        prompt = render_prompt(snapshot, self.spec.prompt)
        text = self._processor.apply_chat_template(
            chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        images = size_images(prompt.images, self.spec.prompt)
        inputs = self._processor(text=[text], images=images, do_resize=False, return_tensors="pt")
        return {name: tensor.to(self._model.device) for name, tensor in inputs.items()}


def greedy_decode(model: Any, inputs: dict[str, torch.Tensor], end: int, max_new_tokens: int) -> list[int]:
    """The most likely token each time, until `end`; a plain loop, since `generate` costs several times
    a tiny model's step. Equal to `generate(do_sample=False)` (tested)."""
    outputs = model(**inputs, use_cache=True, logits_to_keep=1)
    position = inputs["input_ids"].shape[1] + int(outputs.rope_deltas[0])
    tokens: list[int] = []
    while True:
        token = int(outputs.logits[0, -1].argmax())
        if token == end:
            return tokens
        tokens.append(token)
        if len(tokens) >= max_new_tokens:
            return tokens
        positions = torch.full((3, 1, 1), position, device=outputs.logits.device)
        position += 1
        outputs = model(
            input_ids=torch.tensor([[token]], device=outputs.logits.device),
            past_key_values=outputs.past_key_values,
            position_ids=positions,
            use_cache=True,
        )


def load_planner(path: str | Path, device: str = "cpu") -> QwenPlanner:
    """A planner from an exported folder, in float32 on the CPU and bfloat16 elsewhere.

    Raises PlannerCheckpointError if the folder, a file or a weight is missing, or a file is truncated.
    """
    from safetensors import SafetensorError
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = Path(path)
    if not folder.is_dir():
        raise PlannerCheckpointError(
            f"planner weights not found: {folder} is no folder. Train one with `predimem train planner`"
        )
    spec = read_spec(folder)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    try:
        loaded: Any = Qwen3VLForConditionalGeneration.from_pretrained(
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
    return QwenPlanner(model.to(device), processor, spec)
