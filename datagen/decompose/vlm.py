"""Decomposition by a vision-language model behind any OpenAI-compatible endpoint (vLLM, SGLang, OpenAI)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datagen.decompose.check import check
from datagen.decompose.prompt import correction, first_messages, response_format
from datagen.decompose.steps import AnswerError, Step, parse_steps
from datagen.decompose.vocabulary import Vocabulary
from predimem.core.faults import SetupError

if TYPE_CHECKING:
    from openai import OpenAI

NO_KEY = "none"  # servers of one's own usually ask for none, but the client insists on one


class DecompositionError(ValueError):
    """A model gave no usable steps.

    exchange: the JSON file with the whole conversation.
    """

    def __init__(self, message: str, exchange: Path):
        super().__init__(message)
        self.exchange = exchange


class EndpointError(SetupError, ConnectionError):
    """An endpoint cannot be reached or refuses the request; the message says which one and what to do."""


@dataclass(frozen=True)
class VlmConfig:
    """Which model is asked, and how.

    model: the name under which the endpoint serves the model.
    base_url: the address of the endpoint; None leaves it to the client, which reads OPENAI_BASE_URL.
    api_key: the key for the endpoint; None leaves it to the client, which reads OPENAI_API_KEY.
    corrections: how many times a faulty answer is sent back to be corrected.
    timeout_s: how long an answer may take.
    temperature: the sampling temperature; None leaves it to the server.
    exchanges: the folder in which conversations without a usable answer are saved.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None
    corrections: int = 3
    timeout_s: float = 120.0
    temperature: float | None = None
    exchanges: str = "runs/decompose"

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model is empty: give the name under which the endpoint serves the model")
        if self.corrections < 0 or self.timeout_s <= 0:
            raise ValueError(
                f"expected corrections >= 0 and timeout_s > 0, got {self.corrections} and {self.timeout_s}"
            )


class VlmDecomposer:
    """Asks a model and sends faulty answers back to it. It returns only steps in which `check` finds no fault."""

    def __init__(self, config: VlmConfig):
        self.config = config
        self._client = _make_client(config)
        self._structured = True  # until the server refuses it

    def decompose(self, instruction: str, image: np.ndarray, vocabulary: Vocabulary) -> tuple[Step, ...]:
        """The steps of an instruction in the scene that `image`, uint8 [H, W, 3], shows.

        Raises DecompositionError if the last correction is still faulty, and EndpointError if the endpoint does not
        answer or refuses the request.
        """
        messages = first_messages(instruction, image, vocabulary)
        problems: list[str] = []
        for attempt in range(self.config.corrections + 1):
            if attempt:
                messages.append(correction(problems))
            answer = self._ask(messages, vocabulary)
            messages.append({"role": "assistant", "content": answer})
            try:
                steps = parse_steps(answer)
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

    def _ask(self, messages: list[dict[str, Any]], vocabulary: Vocabulary) -> str:
        import openai

        try:
            if self._structured:
                try:
                    return self._request(messages, response_format=response_format(vocabulary))
                except openai.BadRequestError:
                    self._structured = False  # it may know no schemas; if that was not it, it refuses again
            return self._request(messages)
        except openai.APITimeoutError as error:
            raise EndpointError(
                f"{self._where} gave no answer within {self.config.timeout_s:g} s: raise timeout_s, or take "
                "a smaller model"
            ) from error
        except openai.APIConnectionError as error:
            raise EndpointError(
                f"{self._where} cannot be reached ({error.__cause__ or error}). Start a server there, for example "
                "`vllm serve Qwen/Qwen3-VL-4B-Instruct --port 8000`, and give its address, http://localhost:8000/v1; "
                "choose another endpoint; or leave it out to decompose by rules"
            ) from error
        except openai.APIStatusError as error:
            raise EndpointError(
                f"{self._where} refused the request for model {self.config.model!r} with status {error.status_code}: "
                f"{error.message}. Check the model's name, that it takes images, and the key (OPENAI_API_KEY)"
            ) from error

    def _request(self, messages: list[dict[str, Any]], **options: Any) -> str:
        if self.config.temperature is not None:
            options["temperature"] = self.config.temperature
        create: Any = self._client.chat.completions.create  # its types are narrower than what it takes
        answer = create(model=self.config.model, messages=messages, **options)
        return (answer.choices[0].message.content if answer.choices else None) or ""

    @property
    def _where(self) -> str:
        return f"the endpoint {self._client.base_url}"

    def _save(self, instruction: str, messages: list[dict[str, Any]], problems: list[str]) -> Path:
        """Write the conversation with its images, and what was wrong with the last answer, to a new file."""
        config = {key: value for key, value in asdict(self.config).items() if key != "api_key"}
        exchange = {
            "instruction": instruction,
            "config": config | {"base_url": str(self._client.base_url)},
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


def _make_client(config: VlmConfig) -> OpenAI:
    try:
        import openai
    except ImportError:
        raise ValueError("asking a model needs the openai client: pip install 'predimem[vlm]'") from None
    try:
        return openai.OpenAI(base_url=config.base_url, api_key=config.api_key, timeout=config.timeout_s)
    except openai.OpenAIError:
        if config.base_url is None:
            raise ValueError(
                "OpenAI's own endpoint needs a key: set OPENAI_API_KEY, or name another endpoint (base_url)"
            ) from None
        return openai.OpenAI(base_url=config.base_url, api_key=NO_KEY, timeout=config.timeout_s)
