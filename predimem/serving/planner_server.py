"""A planner behind OpenAI's chat-completions interface: one process with one copy of the weights, for many askers.

It keeps what the in-process planner keeps (features of images, keys and values of the unchanged beginning of a
prompt, the last answer) for each `user` of a request, which `planner.endpoint` sets to the episode. Requests that come
while it is busy are answered in one batch.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.caches import CacheConfig
from planner.chat import Chat, ChatAnswer
from predimem.core.config import from_dict, merged, read_yaml
from predimem.core.placement import Placement
from predimem.serving.access import read_key
from predimem.serving.batches import Batches, QueueFull, Stopped, TooLate
from predimem.serving.config import BatchConfig, is_loopback
from predimem.serving.openai_chat import ChatError, completion, error_reply, models_reply, read_chat

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI, Request

    from planner.decoding import QwenPlanner


@dataclass(frozen=True)
class PlannerServerConfig:
    """folder: the exported planner; its name is what the model is called.
    host, port: where to listen; port 0 is any free one.
    placement: the device and the precision. caches: what the planner remembers between answers. torch_threads: CPU
    threads of its passes. batches: how requests of several robots are put together.
    waiting: requests that may wait; more are refused with status 429.
    timeout_s: a request that waits for longer is refused with status 503.
    body_mb: of a request, in MiB.
    stall_s: a request of which no byte comes for so long is refused with status 408.
    api_key_file: a file with the key that clients have to send; needed unless `host` is this machine alone.
    """

    folder: str
    host: str = "127.0.0.1"
    port: int = 0
    placement: Placement = field(default_factory=Placement)
    caches: CacheConfig = field(default_factory=CacheConfig)
    torch_threads: int = 1
    batches: BatchConfig = field(default_factory=BatchConfig)
    waiting: int = 256
    timeout_s: float = 60.0
    body_mb: int = 256
    stall_s: float = 10.0
    api_key_file: str | None = None

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and self.api_key_file is None:
            raise ValueError(f"host: {self.host} can be reached from other machines; that needs a key (api_key_file)")

    @property
    def model(self) -> str:
        return Path(self.folder).resolve().name


def planner_server_config(path: str | Path | None, folder: str, given: Mapping[str, Any]) -> PlannerServerConfig:
    """A file's settings (None: the defaults, and port 8100) with what is given in their place (None: not given).

    Raises ConfigError, and ValueError for settings that contradict each other.
    """
    changes = {"folder": folder, **{name: value for name, value in given.items() if value is not None}}
    data = merged({"port": 8100} | ({} if path is None else read_yaml(path)), changes)
    return from_dict(PlannerServerConfig, data, "options" if path is None else str(path))


class PlannerServer:
    """A started server. Raises PlannerCheckpointError for a folder that holds no planner, and OSError where the address
    cannot be listened on."""

    def __init__(self, config: PlannerServerConfig):
        from planner.decoding import load_planner

        place = config.placement
        planner = load_planner(config.folder, place.device, config.caches, config.torch_threads, dtype=place.dtype)
        self._batches = _batches(planner, config)
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        self._socket = socket.create_server((config.host, config.port), family=family)
        self._server = _uvicorn(make_app(planner, self._batches, config))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="planner-server")
        self._thread.daemon = True
        self._thread.start()
        host = f"[{config.host}]" if ":" in config.host else config.host
        self.url = f"http://{host}:{self._socket.getsockname()[1]}/v1"

    def wait(self) -> None:
        """Until the server ends."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        self._server.should_exit = True
        self._batches.close()
        self._thread.join(5.0)


class PlannerServerHandler:
    """A server in a process of its own, for `predimem.jobs.processes.ProcessHandle`; its greeting is the URL."""

    def __init__(self, config: PlannerServerConfig):
        self._server = PlannerServer(config)

    def greeting(self) -> str:
        return self._server.url

    def do(self, job: Any) -> None:
        """It has no jobs."""

    def close(self) -> None:
        self._server.close()


def make_app(planner: QwenPlanner, batches: Batches[Chat, ChatAnswer], config: PlannerServerConfig) -> FastAPI:
    """The interface: `/v1/chat/completions`, `/v1/models` and `/health`."""
    from fastapi import FastAPI, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.responses import JSONResponse

    app = FastAPI(title="PrediMem planner", docs_url=None, redoc_url=None, openapi_url=None)
    key = None if config.api_key_file is None else read_key(config.api_key_file)

    def answer(body: Any) -> dict[str, Any]:
        chat = read_chat(body, config.model, planner.spec.max_new_tokens)
        try:
            answered = batches.call(chat, time.monotonic() + config.timeout_s)
        except QueueFull as error:
            raise ChatError(429, str(error)) from None
        except (TooLate, Stopped) as error:
            raise ChatError(503, str(error)) from None
        except ValueError as error:
            raise ChatError(400, str(error)) from None
        return completion(answered, config.model, bool(body.get("logprobs")))

    async def chat_completions(request: Request) -> JSONResponse:
        try:
            _check_key(request, key)
            return JSONResponse(await run_in_threadpool(answer, await _body(request, config)))
        except ChatError as error:
            return JSONResponse(error_reply(error), error.status)

    async def models(request: Request) -> JSONResponse:
        try:
            _check_key(request, key)
        except ChatError as error:
            return JSONResponse(error_reply(error), error.status)
        return JSONResponse(models_reply(config.model))

    async def health() -> dict[str, Any]:
        return {"status": "ok", "waiting": batches.depth, "busy_s": round(batches.busy_s, 3)}

    # FastAPI resolves these annotations in the module, where the import would be heavy.
    for endpoint in (chat_completions, models):
        endpoint.__annotations__ = {"request": Request}
    app.post("/v1/chat/completions", response_model=None)(chat_completions)
    app.get("/v1/models", response_model=None)(models)
    app.get("/health")(health)
    return app


async def _body(request: Request, config: PlannerServerConfig) -> Any:
    """The JSON of a request. Raises ChatError for one that is none, or too large, or that stops in the middle."""
    import json

    data, parts = bytearray(), aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(config.stall_s):
                part = await anext(parts, None)
        except TimeoutError:
            raise ChatError(408, f"the request stopped in the middle: no byte for {config.stall_s:g} s") from None
        if part is None:
            break
        data += part
        if len(data) > config.body_mb << 20:
            raise ChatError(413, f"a request may have {config.body_mb} MiB at most")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ChatError(400, f"the request is no JSON: {error}") from None


def _check_key(request: Request, key: bytes | None) -> None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if key is not None and not (scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), key)):
        raise ChatError(401, "a key is needed: Authorization: Bearer ...")
    if request.headers.get("origin"):  # any page in a browser of this machine could ask
        raise ChatError(403, "web pages may not ask")


def _batches(planner: QwenPlanner, config: PlannerServerConfig) -> Batches[Chat, ChatAnswer]:
    def answer(chats: Sequence[Chat]) -> Sequence[ChatAnswer | Exception]:
        try:
            return planner.answer(chats)
        except ValueError as error:
            if len(chats) == 1:
                return [error]
            return [one for chat in chats for one in answer([chat])]  # one of them is at fault: it fails alone

    return Batches(answer, "planner", config.waiting, config.batches)


def _uvicorn(app: FastAPI) -> uvicorn.Server:
    import uvicorn

    return uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
