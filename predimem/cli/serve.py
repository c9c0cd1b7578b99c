"""`predimem serve`: serves the models in openpi's protocol."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from predimem.cli.options import Weights
from predimem.core.files import check_folder


def serve(
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file with settings, see configs/serve.yaml; the options below override it."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 0 for any free one; default: 8000.")] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="What clients speak: `openpi` (default), or `robomme`, as RoboMME's challenge does."),
    ] = None,
    state_dir: Annotated[
        str | None, typer.Option(help="Folder in which episodes are kept, so that they survive a restart.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Address of a PostgreSQL database for it instead, such as postgresql://user@host/database, which "
            "servers on many machines share."
        ),
    ] = None,
    api_key_file: Annotated[str | None, typer.Option(help="File with the key that clients have to send.")] = None,
    tls_certificate: Annotated[
        str | None, typer.Option(help="PEM file with the TLS certificate; needs --tls-key.")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(help="PEM file with the TLS key; needs --tls-certificate.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Device that the models run on, such as `cuda`; default: cpu.")
    ] = None,
    planner_endpoint: Annotated[
        str | None,
        typer.Option(
            help="OpenAI-compatible server that serves the planner, such as http://localhost:8100/v1; its weights are "
            "then not loaded here."
        ),
    ] = None,
    weights: Weights = None,
    planner: Annotated[
        str | None,
        typer.Option(
            help="The planner's weights: a folder of --weights by its name, or any by its path; `instruction`: none."
        ),
    ] = None,
    actor: Annotated[
        str | None, typer.Option(help="The actor's weights: a folder of --weights by its name, or any by its path.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Run replicas on a Ray cluster: `local`, `auto`, or its address. Needs --state-dir or --store."
        ),
    ] = None,
    replicas: Annotated[int | None, typer.Option(help="With --ray: how many replicas to run; default: 2.")] = None,
) -> None:
    """Serve planner and actor to robots, in openpi's protocol or in that of RoboMME's challenge.

    After SIGTERM or Ctrl-C the server answers what was asked, and ends.
    """
    from predimem.core.progress import show_on, stage
    from predimem.serving.models import make_served

    show_on(sys.stdout)  # standard error is for the logs, which are JSON
    try:
        with stage("starting the server"):
            from predimem.serving.command import run_server, serve_config
    except ModuleNotFoundError as error:
        raise ValueError(f"serving needs {error.name}: pip install 'predimem[serve]'") from error

    access = {"api_key_file": api_key_file, "tls_certificate": tls_certificate, "tls_key": tls_key}
    given = {
        "host": host,
        "port": port,
        "protocol": protocol,
        "state.dir": state_dir,
        "state.store": store,
        "models.device": device,
        "models.planner_endpoint.url": planner_endpoint,
        "models.weights": weights,
    }
    given |= {"models.planner": planner, "models.actor": actor}
    given |= {"cluster.address": ray, "cluster.replicas": replicas}
    settings = serve_config(config, given | {f"access.{name}": value for name, value in access.items()})
    if settings.state.folder is not None:
        check_folder(settings.state.folder)
    if settings.cluster.address is not None:
        from predimem.serving.cluster.command import run_cluster

        run_cluster(settings, partial(make_served, settings.models))
        return
    run_server(settings, make_served(settings.models))


def serve_planner(
    planner: Annotated[
        str, typer.Option(help="The planner's weights: a folder of --weights by its name, or any by its path.")
    ] = "planner",
    weights: Weights = None,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML file with settings, see configs/serve_planner.yaml; the options below override it."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 0 for any free one; default: 8100.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Device that the planner runs on, such as `cuda`; default: cpu.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16; default: float32 on the CPU, else bfloat16.")
    ] = None,
    api_key_file: Annotated[str | None, typer.Option(help="File with the key that clients have to send.")] = None,
) -> None:
    """Serve a planner alone, behind OpenAI's chat-completions interface, for evaluations and servers that share it."""
    from predimem.core.progress import say
    from predimem.serving.models import model_folder

    try:
        from predimem.serving.planner_server import PlannerServer, planner_server_config

        place = {name: value for name, value in (("device", device), ("dtype", dtype)) if value is not None}
        given = {"host": host, "port": port, "placement": place or None, "api_key_file": api_key_file}
        folder = str(model_folder(weights, planner))
        server = PlannerServer(planner_server_config(config, folder, given))
    except ModuleNotFoundError as error:
        raise ValueError(f"serving a planner needs {error.name}: pip install 'predimem[serve]'") from error
    say(f"ready: {server.url}")
    try:
        server.wait()
    except KeyboardInterrupt:
        server.close()
