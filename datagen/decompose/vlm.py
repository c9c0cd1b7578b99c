"""Decomposition by a vision-language model behind any OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from datagen.decompose.answers import read_answer
from datagen.decompose.check import check
from datagen.decompose.config import VlmConfig
from datagen.decompose.endpoint import Endpoint
from datagen.decompose.prompt import correction, first_messages, response_format
from datagen.decompose.steps import AnswerError, Step
from datagen.decompose.vocabulary import Vocabulary
from datagen.decompose.waiting import Waiting, silent

NOTHING_SAID = "(nothing)"  # some servers take no message without a text


class DecompositionError(ValueError):
    """A model gave no usable steps.

    exchange: the JSON file with the whole conversation.
    """

    def __init__(self, message: str, exchange: Path):
        super().__init__(message)
        self.exchange = exchange


class VlmDecomposer:
    """Asks a model and sends faulty answers back to it. It returns only steps in which `check` finds no fault.

    waiting: told about once a second what is being asked, and for how long already.
    """

    def __init__(self, config: VlmConfig, waiting: Waiting = silent):
        self.config = config
        self._endpoint = Endpoint(config)
        self._waiting = waiting

    def decompose(self, instruction: str, image: np.ndarray, vocabulary: Vocabulary) -> tuple[Step, ...]:
        """The steps of an instruction in the scene that `image`, uint8 [H, W, 3], shows.

        Raises DecompositionError if the last correction is still faulty, and EndpointError if the endpoint does not
        answer in time or refuses the request.
        """
        messages = first_messages(instruction, image, vocabulary)
        schema = response_format(vocabulary)
        problems: list[str] = []
        for attempt in range(self.config.corrections + 1):
            what = f"asking {self.config.model}"
            if attempt:
                messages.append(correction(problems))
                what += f" again, correction {attempt} of at most {self.config.corrections}"
            answer = self._endpoint.ask(messages, schema, lambda elapsed_s, what=what: self._waiting(what, elapsed_s))
            messages.append({"role": "assistant", "content": answer or NOTHING_SAID})
            try:
                steps = read_answer(answer)
            except AnswerError as error:
                problems = list(error.problems)
                continue
            problems = check(steps, vocabulary)
            if not problems:
                return steps
        path = self._save(instruction, messages, problems)
        raise DecompositionError(
            f"{self.config.model} gave no usable steps for {instruction!r} in {self.config.corrections + 1} answers; "
            f"the last: {'; '.join(problems)}. The whole exchange: {path}. Raise corrections, choose another model, or "
            "decompose by rules (leave the endpoint out)",
            path,
        )

    def _save(self, instruction: str, messages: list[dict[str, Any]], problems: list[str]) -> Path:
        """Write the conversation with its images, and what was wrong with the last answer, to a new file."""
        config = {key: value for key, value in asdict(self.config).items() if key != "api_key"}
        exchange = {
            "instruction": instruction,
            "config": config | {"base_url": self._endpoint.url},
            "problems": problems,
            "messages": messages,
        }
        folder = Path(self.config.exchanges)
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            path = folder / f"exchange-{number:04d}.json"
            try:
                with path.open("x") as file:
                    file.write(json.dumps(exchange, indent=1, ensure_ascii=False))
                return path
            except FileExistsError:
                number += 1
