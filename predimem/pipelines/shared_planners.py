"""One planner process for all workers of an evaluation, in place of a copy of the weights in each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from planner.endpoint import EndpointConfig
from predimem.core.faults import SetupError
from predimem.core.progress import stage
from predimem.core.weight_files import weights_folder
from predimem.evaluation.run.config import PlayConfig
from predimem.jobs.pool import WorkerGone
from predimem.jobs.processes import LOG, ProcessHandle

if TYPE_CHECKING:
    from predimem.serving.planner_server import PlannerServerConfig

PATIENCE_S = 600.0  # all workers may ask at the same time


@contextmanager
def shared_planners(play: PlayConfig, out: Path) -> Iterator[PlayConfig]:
    """How episodes are played where `play.shared_planner` is set: with a process for each planner of the agents.

    Its output goes to `out`/workers.log. Raises SetupError where a planner cannot be started.
    """
    if not play.shared_planner:
        yield play
        return
    from predimem.serving.planner_server import PlannerServerConfig  # needs the extra `serve`

    names = {config.planner for config in play.agent_configs.values() if config.planner in config.weights}
    with ExitStack() as started:
        urls = {}
        for name in names - play.planner_endpoints.keys():
            folder = weights_folder(play.weights, name)
            config = PlannerServerConfig(
                str(folder),
                placement=play.planner_on,
                caches=play.planner_caches,
                torch_threads=play.torch_threads,
                timeout_s=PATIENCE_S,
            )
            with stage(f"starting {name}, which all workers share"):
                urls[name] = started.enter_context(_server(config, out))
        endpoints = {name: EndpointConfig(url, timeout_s=PATIENCE_S, retries=0) for name, url in urls.items()}
        yield replace(play, planner_endpoints=play.planner_endpoints | endpoints)


@contextmanager
def _server(config: PlannerServerConfig, out: Path) -> Iterator[str]:
    from predimem.serving.planner_server import PlannerServerHandler

    out.mkdir(parents=True, exist_ok=True)
    handle = ProcessHandle(partial(PlannerServerHandler, config), str(out / LOG))
    try:
        kind, value = handle.receive()
    except WorkerGone as gone:
        raise SetupError(f"the shared planner ended while it was started ({gone}), see {out / LOG}") from None
    if kind != "built":
        handle.end(kill=True)
        raise SetupError(f"the shared planner cannot be started: {str(value).splitlines()[0]}")
    try:
        yield value
    finally:
        handle.end(kill=True)
