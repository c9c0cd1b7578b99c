"""S2 behind an OpenAI-compatible server (vLLM, SGLang, `predimem serve-planner`): the same `Planner`, another backend.

The prompt is that of training. Images are sized here as in training and sent as PNG, so that the server has nothing to
resize, and the number of tokens that it counted is compared with ours: a server that resizes after all would show the
planner something that it was never trained on. What changes least comes first in the prompt, and the same image is the
same bytes each time, so that the server's prefix cache and its cache of encoded images hit.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image

from planner.answer_schema import answer_schema
from planner.breaker import CircuitBreaker
from planner.checkpoint import PlannerSpec, read_spec
from planner.parsing import parse_plan, subtask_probability
from planner.prompt import chat_messages, render_prompt, size_images
from planner.prompt_tokens import PromptCounter
from predimem.core.faults import SetupError
from predimem.core.types import MemorySnapshot, Plan

NO_KEY = "none"  # servers of one's own usually ask for none, but the client insists on one
IMAGES_KEPT = 1024


class EndpointError(SetupError, ConnectionError):
    """A server that gives no answers, or sees other images than those sent; says which, why, and how to mend it."""


@dataclass(frozen=True)
class EndpointConfig:
    """How a server is asked.

    url: where its OpenAI-compatible interface begins, such as `http://localhost:8000/v1`.
    model: the name by which it serves the planner; null: the only one that it lists.
    api_key_file: a file with the key that it asks for.
    timeout_s: how long an answer may take; a request that takes longer, or meets a fault of the server, is sent again
        `retries` times.
    failures, pause_s: after so many requests in a row have failed, further ones fail at once for `pause_s`, and for
        twice as long each time that the next one fails, too.
    logprobs: ask for probabilities, from which `Plan.confidence` follows. A server that refuses is asked without.
    check_tokens: compare the number of prompt tokens that the server counted with ours.
    constrained: let the server keep the answer to the JSON schema, and to the subtasks that the planner was trained to
        name. Leave it off in evaluation, where a planner that has lost its format should be seen.
    concurrency: how many requests of one batch are sent at once.
    extra_body: further fields of a request, such as `{mm_processor_kwargs: {...}}`.
    """

    url: str
    model: str | None = None
    api_key_file: str | None = None
    timeout_s: float = 8.0
    retries: int = 1
    failures: int = 3
    pause_s: float = 2.0
    logprobs: bool = True
    check_tokens: bool = True
    constrained: bool = False
    concurrency: int = 8
    extra_body: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url: expected http://host:port/v1 or https://..., got {self.url!r}")
        if self.retries < 0 or min(self.failures, self.concurrency) < 1 or min(self.timeout_s, self.pause_s) <= 0:
            raise ValueError(
                "retries must not be negative, failures and concurrency at least 1, timeout_s and pause_s positive; "
                f"got {self.retries}, {self.failures}, {self.concurrency}, {self.timeout_s}, {self.pause_s}"
            )


class EndpointPlanner:
    """Implements `Planner`. Thread-safe.

    folder: the exported planner that the server serves. Its `predimem.json`, tokenizer and `config.json` are read here;
        the weights may be missing.
    spec: in place of the folder's.
    """

    def __init__(self, folder: str | Path, config: EndpointConfig, spec: PlannerSpec | None = None):
        self.spec = read_spec(folder) if spec is None else spec
        self._folder, self._config = Path(folder), config
        self._count = PromptCounter(folder, self.spec.prompt) if config.check_tokens else None
        self._client, self._model = _client(config), config.model
        self._breaker = CircuitBreaker(config.failures, config.pause_s)
        self._urls = ImageUrls()
        self._logprobs = config.logprobs
        self._threads = ThreadPoolExecutor(config.concurrency, thread_name_prefix="endpoint")

    def with_spec(self, spec: PlannerSpec) -> EndpointPlanner:
        """The same server, asked with another prompt (`planner.checkpoint.changed_spec`)."""
        return EndpointPlanner(self._folder, self._config, spec)

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        """The plan for a snapshot. An answer that is not the JSON asked for becomes `Plan.error`.

        Raises EndpointError where there is no answer, and where the server saw another prompt than the one sent.
        """
        if why := self._breaker.admit():
            raise EndpointError(f"the planner at {self._config.url} is not asked: {why}")
        try:
            plan = self._ask(snapshot)
        except EndpointError as error:
            self._breaker.failed(str(error))
            raise
        self._breaker.succeeded()
        return plan

    def plan_batch(self, snapshots: Sequence[MemorySnapshot]) -> list[Plan | Exception]:
        """A plan, or why there is none, for each of the snapshots, which are asked at the same time."""
        return list(self._threads.map(self._plan_or_error, snapshots))

    def _plan_or_error(self, snapshot: MemorySnapshot) -> Plan | Exception:
        try:
            return self.plan(snapshot)
        except Exception as error:
            return error

    def _ask(self, snapshot: MemorySnapshot) -> Plan:
        prompt = render_prompt(snapshot, self.spec.prompt)
        images = size_images(prompt.images, self.spec.prompt)
        reply = self._reply(self._messages(prompt.messages, images), snapshot)
        try:
            counted = reply.usage.prompt_tokens if reply.usage is not None else None
            choice = reply.choices[0]
            text = choice.message.content or ""
        except (AttributeError, IndexError, TypeError) as error:
            raise self._not_openai(error) from error
        if self._count is not None and counted is not None:
            self._check(counted, self._count(prompt, [image.size for image in images]), images)
        plan = parse_plan(text, snapshot)
        return plan if plan.subtask is None else replace(plan, confidence=_confidence(choice.logprobs, text))

    def _messages(self, messages: Sequence[dict[str, str]], images: Sequence[Image]) -> list[dict[str, Any]]:
        """As OpenAI's interface wants them: a text alone is a string, and images are data URLs."""
        rest = iter(images)
        sent = []
        for message in chat_messages(messages):
            parts = [
                {"type": "image_url", "image_url": {"url": self._urls(next(rest))}} if part["type"] == "image" else part
                for part in message["content"]
            ]
            alone = len(parts) == 1 and parts[0]["type"] == "text"
            sent.append({"role": message["role"], "content": parts[0]["text"] if alone else parts})
        return sent

    def _reply(self, messages: list[dict[str, Any]], snapshot: MemorySnapshot) -> Any:
        import openai

        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": self.spec.max_new_tokens}
        options |= {"user": snapshot.episode_id, "extra_body": self._config.extra_body}
        if self._config.constrained:
            schema = answer_schema(len(snapshot.recent), self.spec.known_subtasks)
            asked = {"name": "plan", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": asked}
        create: Any = self._client.chat.completions.create
        where = f"the planner {self._model or ''} at {self._config.url}".replace("  ", " ")
        try:
            model = self._name()
            if self._logprobs:
                try:
                    return create(model=model, messages=messages, logprobs=True, **options)
                except (openai.BadRequestError, openai.UnprocessableEntityError):
                    reply = create(model=model, messages=messages, **options)
                    self._logprobs = False  # that was what it refused
                    return reply
            return create(model=model, messages=messages, **options)
        except openai.APITimeoutError as error:
            tries = 1 + self._config.retries
            raise EndpointError(
                f"{where} gave no answer within {self._config.timeout_s:g} s, {tries} times: raise timeout_s of its "
                "endpoint, or let fewer robots share it"
            ) from error
        except openai.APIConnectionError as error:
            raise EndpointError(
                f"{where} cannot be reached ({error.__cause__ or error}): start the server, or correct the endpoint's "
                "url (docs/guides/planner-backends.md)"
            ) from error
        except openai.APIStatusError as error:
            raise EndpointError(f"{where} refused with status {error.status_code}: {error.message}") from error
        except (openai.APIError, ValueError) as error:
            raise EndpointError(f"{where} sent no answer that can be read: {error}") from error

    def _name(self) -> str:
        """By which the server calls the model. Raises EndpointError where it serves several."""
        if self._model is None:
            try:
                listed = sorted(model.id for model in self._client.models.list())
            except (AttributeError, TypeError) as error:
                raise self._not_openai(error) from error
            if len(listed) != 1:
                raise EndpointError(
                    f"{self._config.url} serves {len(listed)} models ({', '.join(listed) or 'none'}): name one of them "
                    "as the endpoint's model"
                )
            (self._model,) = listed
        return self._model

    def _not_openai(self, error: Exception) -> EndpointError:
        return EndpointError(
            f"{self._config.url} answers, but not as an OpenAI-compatible server does: check its url, which usually "
            f"ends with /v1 ({error!r})"
        )

    def _check(self, counted: int, expected: int, images: Sequence[Image]) -> None:
        if counted == expected:
            return
        cell = self.spec.prompt.image_patch_size**2
        raise EndpointError(
            f"{self._config.url} read {counted} prompt tokens where training has {expected}, with {len(images)} images "
            f"of {images[0].width} x {images[0].height} px: its processor resizes images, or its chat template is "
            "another one. Let it serve the folder that `predimem train planner` exported, whose processor leaves such "
            "images as they are, or start vLLM with --mm-processor-kwargs "
            f'\'{{"size": {{"shortest_edge": {16 * cell}, "longest_edge": {65536 * cell}}}}}\' '
            "(docs/guides/planner-backends.md)"
        )


class ImageUrls:
    """Images as data URLs with a PNG; the same image is written once. Not more than `IMAGES_KEPT` are kept."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, str] = OrderedDict()

    def __call__(self, image: Image) -> str:
        pixels = np.asarray(image)
        key = hashlib.blake2b(pixels.tobytes(), digest_size=16, person=b"%d,%d" % pixels.shape[:2]).digest()
        url = self._known.get(key) or _data_url(image)
        self._known[key] = url
        if len(self._known) > IMAGES_KEPT:
            self._known.popitem(last=False)
        return url


def _data_url(image: Image) -> str:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _confidence(logprobs: Any, text: str) -> float | None:
    """The probability of the subtask, where the server gave those of the tokens that the text is made of."""
    tokens = getattr(logprobs, "content", None)
    if not tokens:
        return None
    ends, written = [], b""
    for token in tokens:
        written += bytes(token.bytes) if token.bytes is not None else token.token.encode()
        ends.append(len(written.decode(errors="ignore")))
    if not written.decode(errors="ignore").startswith(text):
        return None
    return subtask_probability(text, ends, [math.exp(token.logprob) for token in tokens])


def _client(config: EndpointConfig) -> Any:
    try:
        import openai
    except ImportError:
        raise ValueError("a planner behind an endpoint needs the openai client: pip install 'predimem[vlm]'") from None
    key = NO_KEY
    if config.api_key_file is not None:
        path = Path(config.api_key_file).expanduser()
        if not path.is_file():
            raise ValueError(f"api_key_file: there is no file {path}")
        key = path.read_text().strip()
    return openai.OpenAI(base_url=config.url, api_key=key, timeout=config.timeout_s, max_retries=config.retries)
