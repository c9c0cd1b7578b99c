"""S2 at inference: a stock Qwen3-VL checkpoint behind the `Planner` interface.

An answer depends on the snapshot and on greedy decoding alone. Three things are remembered because they save time, as
`python -m benchmarks.planner_stream` measures: the features that the vision tower gave of images, the keys and values
of the part of the prompt that stays the same, and each episode's last answer, which is checked as a guess at the next
one. The forward pass is in `planner.forward`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import TemplateError

from planner.caches import MB, CacheConfig
from planner.chat import Chat, ChatAnswer
from planner.checkpoint import PlannerCheckpointError, PlannerSpec, draw_model, read_spec
from planner.constraint import AnswerGrammar, AnswerMatcher
from planner.crop import cropped
from planner.feature_memory import FeatureMemory
from planner.forward import Interrupted, TextForward
from planner.greedy import Decoded, greedy_decode
from planner.image_features import ImageReader
from planner.inputs import InputReader, Inputs
from planner.key_values import KeyValues
from planner.parsing import parse_plan, subtask_probability
from planner.prefixes import PrefixMemory
from planner.reading import PromptReader, Question
from predimem.core.progress import stage
from predimem.core.types import Frame, MemorySnapshot, Plan

_END = "<|im_end|>"


@dataclass(frozen=True)
class _LastAnswer:
    step: int
    tokens: list[int]


class QwenPlanner:
    """Implements `StreamingPlanner` with greedy decoding. It serves one call at a time.

    caches: how much it remembers between answers.
    constrained: answers are kept to the JSON asked for, and to the subtasks that the planner was trained to name.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        spec: PlannerSpec,
        caches: CacheConfig | None = None,
        constrained: bool = False,
    ):
        self.spec, self.constrained = spec, constrained
        self._model, self._processor, self.caches = model.eval(), processor, caches or CacheConfig()
        self._tokenizer = processor.tokenizer
        self._end = processor.tokenizer.convert_tokens_to_ids(_END)
        features = FeatureMemory(
            self.caches.features_mb * MB, self.caches.spill_mb * MB, half=self.caches.half_features
        )
        self._images = ImageReader(model, processor.image_processor, spec.prompt, features)
        self._inputs = InputReader(processor, spec.prompt, self._images, model.config.image_token_id)
        self._forward = TextForward(model)
        self._prefixes = PrefixMemory(self.caches.prefix_mb * MB, lambda: KeyValues.of(model))
        self._reader = PromptReader(self._forward, self._images)
        self._grammar: AnswerGrammar | None = self._make_grammar() if constrained else None
        self._last: dict[str, _LastAnswer] = {}
        self._episodes: OrderedDict[str, None] = OrderedDict()  # the last one that was asked about comes last

    def with_spec(self, spec: PlannerSpec) -> QwenPlanner:
        """A planner of the same weights with another prompt (`planner.checkpoint.changed_spec`)."""
        return QwenPlanner(self._model, self._processor, spec, self.caches, self.constrained)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        """The plan for a snapshot. An answer that is not the JSON asked for becomes `Plan.error`."""
        return self.plan_batch([snapshot])[0]

    def plan_batch(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan]:
        """A plan for each of the snapshots, each of another episode, in one batch."""
        if not snapshots:
            return []
        if len({snapshot.episode_id for snapshot in snapshots}) < len(snapshots):
            return [self.plan(snapshot) for snapshot in snapshots]
        with torch.inference_mode():
            questions = [self._question(snapshot) for snapshot in snapshots]
            guesses = [self._guess(snapshot) for snapshot in snapshots]
            matchers = [self._grammar and self._grammar(len(snapshot.recent)) for snapshot in snapshots]
            answers = self._decode(questions, self.spec.max_new_tokens, guesses, matchers)
        for snapshot, answer in zip(snapshots, answers, strict=True):
            self._last[snapshot.episode_id] = _LastAnswer(snapshot.step, answer.tokens)
        return [self._plan(answer, snapshot) for answer, snapshot in zip(answers, snapshots, strict=True)]

    def embed(self, frames: Sequence[Frame]) -> np.ndarray:
        """float32 [F, D]: what the frozen vision tower makes of each frame, the merged features of all its cameras one
        after the other. Raises KeyError for a frame without one of the prompt's cameras."""
        cameras = self.spec.prompt.cameras
        crop = self.spec.prompt.crop
        shown = [cropped(frame.images[camera], camera, crop) for frame in frames for camera in cameras]
        pictures = self._images.pictures(shown)
        with torch.inference_mode():
            images = self._images(pictures, robot="")
        return np.stack([image.merged.float().cpu().numpy().ravel() for image in images]).reshape(len(frames), -1)

    def answer(self, chats: Sequence[Chat]) -> list[ChatAnswer]:
        """Answers prompts that were rendered elsewhere, in one batch, by greedy decoding.

        Raises ValueError where a prompt has another number of images than of places for them, or a schema that cannot
        be kept to.
        """
        if len({chat.robot for chat in chats}) < len(chats):
            return [answer for chat in chats for answer in self.answer([chat])]
        with torch.inference_mode():
            inputs = [self._inputs.read(chat.messages, chat.images) for chat in chats]
            questions = [self._asked(chat.robot, read) for chat, read in zip(chats, inputs, strict=True)]
            longest = max(chat.max_new_tokens for chat in chats)
            guesses = [last.tokens if (last := self._last.get(chat.robot)) else [] for chat in chats]
            answers = self._decode(questions, longest, guesses, [self._matcher(chat.schema) for chat in chats])
        for chat, decoded in zip(chats, answers, strict=True):
            self._last[chat.robot] = _LastAnswer(0, decoded.tokens)
        return [
            self._chat_answer(decoded, chat.max_new_tokens, len(read.tokens))
            for chat, read, decoded in zip(chats, inputs, answers, strict=True)
        ]

    def prepare(self, snapshot: MemorySnapshot, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Read what the next prompt begins with: all but the newest timestep, the question and the answer.

        snapshot: the next one without its newest frame. interrupted: asked between two layers whether there is
        something more urgent. Returns False where it was interrupted, or where a prompt says nothing of the next one.
        """
        if not self.spec.prompt.grows_at_the_end or not self.caches.prefix_mb:
            return False
        with torch.inference_mode():
            try:
                self._reader.prepare(self._question(snapshot, newest_is_missing=True), interrupted)
            except Interrupted:
                return False
            self._tidy()
        return True

    def forget(self, episode_id: str) -> None:
        """Let go of everything that was remembered of an episode."""
        self._episodes.pop(episode_id, None)
        self._last.pop(episode_id, None)
        self._prefixes.forget(episode_id)
        self._images.memory.forget(episode_id)

    def _tidy(self) -> None:
        while len(self._episodes) > self.caches.episodes:
            self.forget(next(iter(self._episodes)))
        self._prefixes.trim()

    def _question(self, snapshot: MemorySnapshot, newest_is_missing: bool = False) -> Question:
        return self._asked(snapshot.episode_id, self._inputs(snapshot, newest_is_missing))

    def _asked(self, robot: str, inputs: Inputs) -> Question:
        self._episodes[robot] = None
        self._episodes.move_to_end(robot)
        return Question(robot, inputs, self._prefixes.of(robot))

    def _decode(
        self,
        questions: Sequence[Question],
        max_new_tokens: int,
        guesses: Sequence[Sequence[int]],
        matchers: Sequence[AnswerMatcher | None],
    ) -> list[Decoded]:
        answers = greedy_decode(self._reader, questions, self._end, max_new_tokens, guesses, matchers)
        for question in questions:
            self._reader.keep(question)
        self._tidy()
        return answers

    def _matcher(self, schema: dict[str, Any] | None) -> AnswerMatcher | None:
        if schema is None:
            return None
        if self._grammar is None:
            self._grammar = self._make_grammar()
        return self._grammar.matching(schema)

    def _make_grammar(self) -> AnswerGrammar:
        vocabulary = self._model.config.text_config.vocab_size
        return AnswerGrammar(self._tokenizer, vocabulary, self._end, self.spec.known_subtasks)

    def _chat_answer(self, decoded: Decoded, limit: int, prompt_tokens: int) -> ChatAnswer:
        tokens = decoded.tokens[:limit]
        texts = [self._text(tokens[:count]) for count in range(1 + len(tokens))]
        pieces = tuple(after[len(before) :] for before, after in pairwise(texts))
        finished = len(decoded.tokens) < limit
        return ChatAnswer(texts[-1], pieces, tuple(decoded.probabilities[:limit]), prompt_tokens, finished)

    def _guess(self, snapshot: MemorySnapshot) -> list[int]:
        """The tokens of this episode's last answer; none if the episode is played anew, which has to go as before."""
        last = self._last.get(snapshot.episode_id)
        return last.tokens if last is not None and last.step < snapshot.step else []

    def _plan(self, answer: Decoded, snapshot: MemorySnapshot) -> Plan:
        plan = parse_plan(self._text(answer.tokens), snapshot)
        return plan if plan.subtask is None else replace(plan, confidence=self._confidence(answer, plan.text))

    def _confidence(self, answer: Decoded, text: str) -> float:
        ends = [len(self._text(answer.tokens[:count])) for count in range(1, 1 + len(answer.tokens))]
        return subtask_probability(text, ends, answer.probabilities)

    def _text(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=True)


def load_planner(
    path: str | Path,
    device: str = "cpu",
    caches: CacheConfig | None = None,
    threads: int | None = None,
    spec: PlannerSpec | None = None,
    dtype: str | None = None,
    constrained: bool = False,
) -> QwenPlanner:
    """Loads a planner from an exported folder.

    device, dtype: where it runs, and in which number format (`predimem.core.placement.Placement`).
    caches: how much it remembers between answers.
    threads: torch keeps to so many threads in this process from then on; None leaves them as they are.
    spec: in place of the folder's (`planner.checkpoint.changed_spec`).
    constrained: see `QwenPlanner`.

    Raises PlannerCheckpointError if the folder, a file or a weight is missing, or a file is truncated.
    """
    with _ONE_AT_A_TIME, stage("loading the planner"):
        model, processor, spec = _load(Path(path), device, dtype, threads, spec)
        return QwenPlanner(model, processor, spec, caches, constrained)


_ONE_AT_A_TIME = threading.Lock()  # transformers cannot load two models in two threads at once


def _load(
    folder: Path, device: str, dtype: str | None, threads: int | None, spec: PlannerSpec | None
) -> tuple[Any, Any, PlannerSpec]:
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
    chosen = getattr(torch, dtype or ("float32" if device == "cpu" else "bfloat16"))
    try:
        if spec.drawn_seed is not None:
            drawn = draw_model(AutoConfig.from_pretrained(folder, local_files_only=True), spec.drawn_seed)
            loaded: Any = drawn.to(chosen), {"missing_keys": [], "mismatched_keys": []}
        else:
            loaded = Qwen3VLForConditionalGeneration.from_pretrained(
                folder, dtype=chosen, local_files_only=True, output_loading_info=True
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
    return model.to(device), processor, spec


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
