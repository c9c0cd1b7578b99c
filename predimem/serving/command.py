"""`predimem serve`: load, warm up, listen, drain."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from predimem.core.config import ConfigError, from_dict, merged, read_yaml
from predimem.core.progress import say
from predimem.serving import robomme
from predimem.serving.config import ServeConfig
from predimem.serving.engine import Engine
from predimem.serving.logs import log_as_json
from predimem.serving.memory import settle, share_heap
from predimem.serving.pages import open_page, page
from predimem.serving.planner_process import PlannerGone
from predimem.serving.robot import Served
from predimem.serving.server import Backend, OpenPage, PolicyServer, ShowPage

log = logging.getLogger(__name__)
SWITCH_S = 0.001  # how long a thread may hold the interpreter while another one waits with a request


class StartedBackend(Backend, Protocol):
    def start(self) -> None: ...

    def close(self) -> None: ...


def serve_config(path: str | Path | None, given: Mapping[str, Any]) -> ServeConfig:
    """A file's settings (None: the defaults) with what is given in their place ("state.dir", ...; None: not given).

    Raises ConfigError, or ValueError for settings that contradict each other.
    """
    data = {} if path is None else read_yaml(path)
    for name, value in given.items():
        if value is not None:
            *parents, last = name.split(".")
            place = data
            for parent in parents:
                place = _section(place, parent)
            place[last] = value
    _section(data, "time").setdefault("mode", "real")
    if data.get("protocol") == "robomme":
        data = merged(robomme.DEFAULTS, data)
    return from_dict(ServeConfig, data, "options" if path is None else str(path))


def _section(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The mapping of this name, which is made where there is none. Raises ConfigError for anything else."""
    if data.get(name) is None:
        data[name] = {}
    if not isinstance(data[name], dict):
        raise ConfigError(f"{name}: expected a mapping, got {data[name]!r}")
    return data[name]


def run_server(config: ServeConfig, served: Served) -> None:
    """Blocks until SIGTERM or SIGINT. The port answers `/healthz` with 503 while the models warm up.

    Raises ValueError where the planner cannot be started or the address cannot be listened on.
    """
    log_as_json()
    share_heap()
    if doubt := config.default_prompt and served.tasks.doubt(config.default_prompt, config.tasks):
        log.warning("default_prompt: %s", doubt)
    sys.setswitchinterval(SWITCH_S)
    try:
        serve_until_stopped(Engine(config, served), open_page, page)
    except PlannerGone as gone:
        raise ValueError(str(gone)) from gone


def serve_until_stopped(backend: StartedBackend, open_page: OpenPage, page: ShowPage) -> None:
    """Start a backend while its port is open already, and serve it until SIGTERM or SIGINT."""
    asyncio.run(_run(backend, PolicyServer(backend, open_page, page)))


def address_line(config: ServeConfig, port: int) -> str:
    """What a person is told when the server is ready: where its page is, and where robots connect."""
    host = "localhost" if config.host in ("0.0.0.0", "::") else config.host
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    tls = "s" if config.access.tls_certificate else ""
    key = "" if config.access.api_key_file is None else " (both ask for the key)"
    return f"ready: http{tls}://{place}/ shows what the robots remember; robots connect to ws{tls}://{place}{key}"


async def _run(engine: StartedBackend, server: PolicyServer) -> None:
    await server.start()
    warm = asyncio.get_running_loop().run_in_executor(None, engine.start)
    running = asyncio.create_task(server.run())
    try:
        done, _ = await asyncio.wait([warm, running], return_when=asyncio.FIRST_COMPLETED)
        if warm in done:
            warm.result()
            settle()
            say(address_line(engine.config, server.port))
        await running
    finally:
        server.stop()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, engine.close)
        await asyncio.gather(warm, return_exceptions=True)  # cut short where the server is stopped as it warms up
        log.info("stopped")
