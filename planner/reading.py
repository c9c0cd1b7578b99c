"""Reads prompts: only what is not known of them yet, as far as that is possible before the question is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from planner.forward import Part, TextForward
from planner.image_features import ImageReader
from planner.inputs import Inputs
from planner.prefixes import Prefix


@dataclass(frozen=True, eq=False)
class Question:
    """What a robot's planner is asked, and what is known of the prompt already."""

    robot: str
    inputs: Inputs
    prefix: Prefix


class PromptReader:
    """Reads prompts, for logits or for later.

    On the CPU a prompt is read timestep by timestep and robot by robot. Which tokens share a pass there changes the
    last bits of the result, and an answer must not depend on what was known before, or on who else asks. Accelerators
    are too slow that way: they read all that is new in one pass.
    """

    def __init__(self, forward: TextForward, images: ImageReader):
        self.forward = forward
        self._images = images
        self._one_by_one = forward.device.type == "cpu"

    def prepare(self, question: Question, interrupted: Callable[[], bool]) -> None:
        """Read the prompt up to its last stop. Raises Interrupted."""
        known = question.prefix.agree_with(question.inputs)
        stops = [stop for stop in question.inputs.stops if stop > known]
        for stop in stops if self._one_by_one else stops[-1:]:
            self._read([self._part(question, known, stop, (), 0)], interrupted)
            question.prefix.extend(question.inputs, stop)
            known = stop

    def read(self, questions: Sequence[Question], drafts: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each question logits [1 + len(draft), V]: those of the answer's first token, and those after each token
        of its draft. Keys and values of prompt and draft are known afterwards."""
        if self._one_by_one:
            return [self._read_alone(question, draft) for question, draft in zip(questions, drafts, strict=True)]
        parts = []
        for question, draft in zip(questions, drafts, strict=True):
            known = question.prefix.agree_with(question.inputs)
            parts.append(self._part(question, known, len(question.inputs.content), draft, 1 + len(draft)))
        return self._read(parts)

    def keep(self, question: Question) -> None:
        """Let go of what follows the last stop: the newest timestep, the question and the answer."""
        inputs = question.inputs
        entries = inputs.stops[-1] if inputs.stops else 0
        question.prefix.extend(inputs, entries)
        question.prefix.cut(entries)

    def _read_alone(self, question: Question, draft: Sequence[int]) -> Tensor:
        self.prepare(question, lambda: False)
        known = len(question.prefix.content)
        return self._read([self._part(question, known, len(question.inputs.content), draft, 1 + len(draft))])[0]

    def _read(self, parts: list[Part], interrupted: Callable[[], bool] = lambda: False) -> list[Tensor]:
        return self.forward.read(parts, interrupted)

    def _part(self, question: Question, first: int, last: int, draft: Sequence[int], wanted: int) -> Part:
        """The entries `first` to `last` of the prompt and what follows them."""
        inputs = question.inputs
        start, end = (inputs.ends[entry - 1] if entry else 0 for entry in (first, last))
        pictures = inputs.pictures_between(first, last)
        features = self._images(pictures, question.robot) if pictures else []
        after = inputs.next_position + torch.arange(len(draft))
        return Part(
            ids=torch.cat((torch.from_numpy(inputs.tokens[start:end]), torch.tensor(draft, dtype=torch.long))),
            positions=torch.cat((torch.from_numpy(inputs.positions[:, start:end]), after.expand(3, -1)), 1),
            is_image=torch.cat(
                (torch.from_numpy(inputs.is_image[start:end]), torch.zeros(len(draft), dtype=torch.bool))
            ),
            merged=[image.merged for image in features],
            deepstack=[image.deepstack for image in features],
            known=question.prefix.known,
            wanted=wanted,
        )
