"""Asks a model behind an OpenAI-compatible endpoint (vLLM, SGLang, OpenAI): one request within one limit of time."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from datagen.decompose import advice
from datagen.decompose.config import VlmConfig
from datagen.decompose.replies import Reply, ReplyError, error_text, read_reply
from predimem.core.faults import SetupError

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

NO_KEY = "none"  # servers of one's own usually ask for none, but the client insists on one
TICK_S = 1.0
LIST_MODELS_S = 5.0
OF_THIS_REQUEST = (400, 413, 422)  # statuses that say nothing about the next request


class EndpointError(ConnectionError):
    """An endpoint gave no whole answer to this request; the message says which one and what to do."""


class EndpointDown(SetupError, EndpointError):
    """An endpoint that would not answer the next request either: it cannot be reached, or refuses all of them."""


class Endpoint:
    """One model of one endpoint. A request is sent once: what to do about a failure is the user's choice."""

    def __init__(self, config: VlmConfig):
        self.config = config
        self._client = _make_client(config)
        self._structured = True  # until the server refuses it

    @property
    def url(self) -> str:
        return str(self._client.base_url).rstrip("/")

    def ask(
        self, messages: list[dict[str, Any]], response_format: dict[str, Any], waiting: Callable[[float], None]
    ) -> str:
        """What the model says, "" if it says nothing.

        response_format: the JSON schema for servers with structured output; others are asked without it.
        waiting: called about once a second with the seconds since the request was sent.
        Raises EndpointError, which is an EndpointDown where the next request would fail as well.
        """
        reply = self._within_time(lambda: self._reply(messages, response_format), waiting)
        if reply.cut:
            written = f" after {reply.tokens} tokens" if reply.tokens is not None else ""
            raise EndpointError(
                f"{self.config.model} at {self.url} was cut off{written} before its answer was complete. Raise "
                "--max-tokens (max_tokens in a data config), or the server's own limit and the length of its context"
            )
        return reply.text

    def _within_time(self, ask: Callable[[], Reply], waiting: Callable[[float], None]) -> Reply:
        """The client's own timeout begins anew with every byte, so the request runs in a thread that is waited for."""
        results: queue.SimpleQueue[Reply | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put(ask())
            except Exception as error:
                results.put(error)

        began_s = time.monotonic()
        threading.Thread(target=run, name="ask-model", daemon=True).start()
        while (left_s := began_s + self.config.timeout_s - time.monotonic()) > 0:
            waiting(time.monotonic() - began_s)
            try:
                result = results.get(timeout=min(TICK_S, left_s))
            except queue.Empty:
                continue
            if isinstance(result, Exception):
                raise result
            return result
        self._client.close()  # ends the request
        self._client = _make_client(self.config)
        raise self._too_late()

    def _reply(self, messages: list[dict[str, Any]], response_format: dict[str, Any]) -> Reply:
        import openai

        try:
            if self._structured:
                try:
                    return self._request(messages, response_format=response_format)
                except (openai.BadRequestError, openai.UnprocessableEntityError):
                    pass  # it may know no schemas; if that was not it, it refuses again
            reply = self._request(messages)
            self._structured = False
            return reply
        except openai.APITimeoutError as error:
            raise self._too_late() from error
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            raise EndpointDown(
                f"the endpoint {self.url} cannot be reached ({cause}). {advice.unreachable(cause)}"
            ) from error
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except ReplyError as error:
            raise EndpointDown(
                f"the endpoint {self.url} answered with status 200, and what it sent is {error}. "
                f"{advice.no_model_answered(self.url)}"
            ) from error

    def _request(self, messages: list[dict[str, Any]], **options: Any) -> Reply:
        for name in ("temperature", "max_tokens"):
            if (value := getattr(self.config, name)) is not None:
                options[name] = value
        create: Any = (
            self._client.chat.completions.with_raw_response.create
        )  # its types are narrower than what it takes
        return read_reply(create(model=self.config.model, messages=messages, **options).text)

    def _refused(self, error: APIStatusError) -> EndpointError:
        body = error.body if error.body is not None else error.message
        said = error_text(body)
        hint = advice.refused(
            error.status_code,
            self.url,
            self.config.model,
            has_key=self._client.api_key != NO_KEY,
            retry_after=error.response.headers.get("retry-after", ""),
            served=self._served() if error.status_code == 404 else [],
            said=f"{said} {json.dumps(body)}".lower(),
        )
        kind = EndpointError if error.status_code in OF_THIS_REQUEST else EndpointDown
        return kind(
            f"the endpoint {self.url} refused the request for model {self.config.model!r} with status "
            f"{error.status_code}{f': {said}' if said else ''}. {hint}"
        )

    def _served(self) -> list[str]:
        """The names of the models that the endpoint lists; none where it cannot be asked."""
        import openai

        try:
            listed = json.loads(self._client.with_options(timeout=LIST_MODELS_S).models.with_raw_response.list().text)
            return [str(model["id"]) for model in listed["data"]]
        except (openai.OpenAIError, ValueError, KeyError, TypeError):
            return []

    def _too_late(self) -> EndpointError:
        return EndpointError(
            f"the endpoint {self.url} gave no answer within {self.config.timeout_s:g} s: raise --timeout (timeout_s in "
            "a data config), or take a smaller model"
        )


def _make_client(config: VlmConfig) -> OpenAI:
    try:
        import openai
    except ImportError:
        raise ValueError("asking a model needs the openai client: pip install 'predimem[vlm]'") from None
    settings: dict[str, Any] = {"base_url": config.base_url, "timeout": config.timeout_s, "max_retries": 0}
    try:
        return openai.OpenAI(api_key=config.api_key, **settings)
    except openai.OpenAIError:
        if config.base_url is None:
            raise ValueError(
                "OpenAI's own endpoint needs a key: set OPENAI_API_KEY, or name another endpoint (base_url)"
            ) from None
        return openai.OpenAI(api_key=NO_KEY, **settings)
